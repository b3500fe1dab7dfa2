//! Which socket is at the other end of an `AF_UNIX` socket: asked of the kernel's `sock_diag`, for
//! one socket at a time.
//!
//! Sources: `sock_diag(7)`; `include/uapi/linux/unix_diag.h` (Linux 6.1).

use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const UDIAG_SHOW_PEER: u32 = 4;
const UNIX_DIAG_PEER: u16 = 2;
const AF_UNIX: u8 = 1;
/// `struct nlmsghdr`.
const HEADER: usize = 16;
/// `struct unix_diag_msg`.
const MESSAGE: usize = 16;

/// A way to ask, opened at the first question.
#[derive(Debug, Default)]
pub(super) struct PeerLookup {
    netlink: Option<OwnedFd>,
}

impl PeerLookup {
    /// The peer of the socket with this inode. `None` where it has none, the peer is closed, or
    /// the socket lives in another network namespace.
    pub(super) fn peer(&mut self, inode: u64) -> Option<u64> {
        let inode = u32::try_from(inode).ok()?;
        let netlink = self.open()?.as_raw_fd();
        send(netlink, &request(inode), MsgFlags::empty()).ok()?;
        let mut reply = [0; 512];
        let len = recv(netlink, &mut reply, MsgFlags::empty()).ok()?;
        parse(reply.get(..len)?, inode)
    }

    fn open(&mut self) -> Option<&OwnedFd> {
        if self.netlink.is_none() {
            let netlink = socket(
                AddressFamily::Netlink,
                SockType::Raw,
                SockFlag::SOCK_CLOEXEC,
                SockProtocol::NetlinkSockDiag,
            );
            self.netlink = netlink.ok();
        }
        self.netlink.as_ref()
    }
}

/// `struct nlmsghdr` and `struct unix_diag_req`.
fn request(inode: u32) -> Vec<u8> {
    const LENGTH: u32 = 16 + 24;
    let mut bytes = Vec::new();
    bytes.extend(LENGTH.to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(NLM_F_REQUEST.to_ne_bytes());
    bytes.extend([0; 8]); // sequence, port: the kernel
    bytes.extend([AF_UNIX, 0, 0, 0]); // family, protocol, padding
    bytes.extend([0; 4]); // states: for dumps only
    bytes.extend(inode.to_ne_bytes());
    bytes.extend(UDIAG_SHOW_PEER.to_ne_bytes());
    bytes.extend(u64::MAX.to_ne_bytes()); // cookie: any
    bytes
}

/// The peer in a reply about the socket `inode`.
fn parse(reply: &[u8], inode: u32) -> Option<u64> {
    let message = reply.get(HEADER..usize::try_from(u32_at(reply, 0)?).ok()?)?;
    if u16_at(reply, 4)? != SOCK_DIAG_BY_FAMILY || u32_at(message, 4)? != inode {
        return None;
    }
    let mut attributes = message.get(MESSAGE..)?;
    loop {
        let len = usize::from(u16_at(attributes, 0)?);
        let value = attributes.get(4..len)?;
        if u16_at(attributes, 2)? == UNIX_DIAG_PEER {
            return u32_at(value, 0).map(u64::from).filter(|&peer| peer != 0);
        }
        attributes = attributes.get(len.next_multiple_of(4)..)?;
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    fn inode(fd: impl AsFd) -> u64 {
        nix::sys::stat::fstat(fd).unwrap().st_ino
    }

    #[test]
    fn the_kernel_names_the_other_end() {
        let mut lookup = PeerLookup::default();
        let (one, other) = UnixStream::pair().unwrap();
        assert_eq!(lookup.peer(inode(&one)), Some(inode(&other)));
        assert_eq!(lookup.peer(inode(&other)), Some(inode(&one)));
        drop(other);
        assert_eq!(lookup.peer(inode(&one)), None);
        assert_eq!(lookup.peer(1), None);
        assert_eq!(lookup.peer(u64::MAX), None);
    }

    #[test]
    fn a_named_service_has_peers_as_well() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("service");
        let listener = UnixListener::bind(&path).unwrap();
        let mut lookup = PeerLookup::default();
        assert_eq!(lookup.peer(inode(&listener)), None);
        let client = UnixStream::connect(&path).unwrap();
        let (server, _) = listener.accept().unwrap();
        assert_eq!(lookup.peer(inode(&client)), Some(inode(&server)));
    }

    #[test]
    fn a_damaged_reply_names_nobody() {
        let mut reply = Vec::new();
        reply.extend(40_u32.to_ne_bytes());
        reply.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        reply.extend([0; 10]);
        reply.extend([1, 1, 1, 0]);
        reply.extend(7_u32.to_ne_bytes());
        reply.extend([0; 8]);
        reply.extend(8_u16.to_ne_bytes());
        reply.extend(UNIX_DIAG_PEER.to_ne_bytes());
        reply.extend(9_u32.to_ne_bytes());
        assert_eq!(parse(&reply, 7), Some(9));
        assert_eq!(parse(&reply, 8), None);
        for cut in 0..reply.len() {
            assert_eq!(parse(&reply[..cut], 7), None, "cut at {cut}");
        }
    }
}
