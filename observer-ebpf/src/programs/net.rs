//! How much a watched process sends to the network, and to whom. Never what.

use observer_ebpf::wire::{NetSend, kind};

use crate::file::internet_peer;
use crate::kernel::{current_tgid, read_user};
use crate::ring::{emit_event, header};

/// Reports bytes sent through an internet socket. `destination` is the address that the call
/// itself named, in user memory, or 0.
#[inline(always)]
pub(crate) fn sent(sock: u64, family: u16, bytes: u64, destination: u64) -> Option<()> {
    let (port, address) = match internet_peer(sock, family) {
        Some((port, address)) if port != [0; 2] => (port, address),
        _ => named_peer(destination).unwrap_or(([0; 2], [0; 16])),
    };
    emit_event(NetSend {
        header: header(kind::NET_SEND, 0),
        pid: current_tgid(),
        family,
        port,
        bytes,
        address,
    });
    Some(())
}

/// The port and address of a `struct sockaddr_in` or `sockaddr_in6`.
#[inline(always)]
fn named_peer(address: u64) -> Option<([u8; 2], [u8; 16])> {
    const AF_INET6: u16 = 10;
    if address == 0 {
        return None;
    }
    let family = read_user::<u16>(address)?;
    let port = read_user::<[u8; 2]>(address + 2)?;
    if family == AF_INET6 {
        return Some((port, read_user::<[u8; 16]>(address + 8)?));
    }
    let mut host = [0; 16];
    host[..4].copy_from_slice(&read_user::<[u8; 4]>(address + 4)?);
    Some((port, host))
}
