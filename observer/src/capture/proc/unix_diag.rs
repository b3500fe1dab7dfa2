//! Which `AF_UNIX` stream sockets are the two ends of one pair: asked from the kernel's
//! `sock_diag` by netlink, as `ss -x` does. `/proc` does not tell.
//!
//! Sources: `sock_diag(7)`; the kernel's `include/uapi/linux/unix_diag.h` (Linux 6.1).

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::thread;

use nix::sched::{CloneFlags, setns};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

/// The unnamed, connected `AF_UNIX` stream sockets of a network namespace: inode to peer's inode.
/// A socket with a name is somebody's service (D-Bus, the journal), never a server's stdio.
pub(super) type Peers = BTreeMap<u64, u64>;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const UDIAG_SHOW_NAME: u32 = 1;
const UDIAG_SHOW_PEER: u32 = 4;
const UNIX_DIAG_NAME: u16 = 0;
const UNIX_DIAG_PEER: u16 = 2;
const AF_UNIX: u8 = 1;
const SOCK_STREAM: u8 = 1;
/// `struct nlmsghdr`.
const HEADER: usize = 16;
/// `struct unix_diag_msg`.
const UNIX_DIAG_MSG: usize = 16;

/// The peers in the network namespace of this thread.
pub(super) fn peers() -> io::Result<Peers> {
    let netlink = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkSockDiag,
    )?;
    send(netlink.as_raw_fd(), &request(), MsgFlags::empty())?;
    let mut sockets = Sockets::default();
    // The kernel fills at most 32 KiB a time for a reader whose buffer is that large.
    let mut buffer = vec![0; 32 * 1024];
    loop {
        let read = recv(netlink.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
        if read == 0 || sockets.take_in(&buffer[..read])? == Dump::Done {
            return Ok(sockets.unnamed_pairs());
        }
    }
}

/// The peers in another network namespace, such as a container's: `/proc/PID/ns/net`.
pub(super) fn peers_in(namespace: &File) -> io::Result<Peers> {
    // A namespace is a property of a thread, and this one's must stay as it is.
    thread::scope(|scope| {
        scope
            .spawn(|| {
                setns(namespace, CloneFlags::CLONE_NEWNET)?;
                peers()
            })
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread that asked panicked")))
    })
}

/// `struct nlmsghdr` and `struct unix_diag_req`.
fn request() -> Vec<u8> {
    const LENGTH: u32 = 16 + 24;
    let mut bytes = Vec::new();
    bytes.extend(LENGTH.to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend((NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    bytes.extend(1_u32.to_ne_bytes()); // sequence
    bytes.extend(0_u32.to_ne_bytes()); // port: the kernel
    bytes.extend([AF_UNIX, 0, 0, 0]); // family, protocol, padding
    bytes.extend(u32::MAX.to_ne_bytes()); // all states
    bytes.extend(0_u32.to_ne_bytes()); // inode: any
    bytes.extend((UDIAG_SHOW_NAME | UDIAG_SHOW_PEER).to_ne_bytes());
    bytes.extend(u64::MAX.to_ne_bytes()); // cookie: any
    bytes
}

#[derive(Debug, PartialEq, Eq)]
enum Dump {
    More,
    Done,
}

/// What a dump has told so far: for each stream socket its peer, and whether it has a name.
#[derive(Debug, Default)]
struct Sockets {
    by_inode: BTreeMap<u64, (Option<u64>, bool)>,
}

impl Sockets {
    /// Takes in one datagram of a dump.
    fn take_in(&mut self, mut datagram: &[u8]) -> io::Result<Dump> {
        while let Some(length) = u32_at(datagram, 0) {
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let (Some(message), Some(kind)) = (datagram.get(HEADER..length), u16_at(datagram, 4))
            else {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "netlink message cut short",
                ));
            };
            match kind {
                NLMSG_DONE => return Ok(Dump::Done),
                NLMSG_ERROR => {
                    let errno = u32_at(message, 0)
                        .unwrap_or(0)
                        .cast_signed()
                        .saturating_neg();
                    return Err(io::Error::from_raw_os_error(errno));
                }
                _ => self.add(message),
            }
            datagram = datagram.get(align(length)..).unwrap_or_default();
        }
        Ok(Dump::More)
    }

    /// Adds the socket that a `struct unix_diag_msg` with its attributes tells of.
    fn add(&mut self, message: &[u8]) {
        let (Some(&[_, SOCK_STREAM, ..]), Some(inode)) = (message.get(..4), u32_at(message, 4))
        else {
            return;
        };
        let mut attributes = message.get(UNIX_DIAG_MSG..).unwrap_or_default();
        let (mut peer, mut named) = (None, false);
        while let (Some(length), Some(kind)) = (u16_at(attributes, 0), u16_at(attributes, 2)) {
            let length = usize::from(length);
            let Some(value) = attributes.get(4..length) else {
                break;
            };
            match kind {
                UNIX_DIAG_NAME => named = !value.is_empty(),
                UNIX_DIAG_PEER => peer = u32_at(value, 0).map(u64::from).filter(|&peer| peer != 0),
                _ => {}
            }
            attributes = attributes.get(align(length)..).unwrap_or_default();
        }
        self.by_inode.insert(inode.into(), (peer, named));
    }

    fn unnamed_pairs(&self) -> Peers {
        let unnamed = |inode: &u64| self.by_inode.get(inode).is_none_or(|&(_, named)| !named);
        let pair = |(&inode, &(peer, named)): (&u64, &(Option<u64>, bool))| {
            peer.filter(|peer| !named && unnamed(peer))
                .map(|peer| (inode, peer))
        };
        self.by_inode.iter().filter_map(pair).collect()
    }
}

/// Netlink's alignment of messages and attributes.
fn align(length: usize) -> usize {
    length.saturating_add(3) & !3
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, BorrowedFd};
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    fn inode(fd: BorrowedFd<'_>) -> u64 {
        nix::sys::stat::fstat(fd).unwrap().st_ino
    }

    #[test]
    fn the_kernel_names_both_ends_of_a_pair() {
        let (a, b) = UnixStream::pair().unwrap();
        let (a, b) = (inode(a.as_fd()), inode(b.as_fd()));
        let peers = peers().unwrap();
        assert_eq!((peers.get(&a), peers.get(&b)), (Some(&b), Some(&a)));
    }

    #[test]
    fn a_service_is_no_pair() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("service");
        let listener = UnixListener::bind(&path).unwrap();
        let client = UnixStream::connect(&path).unwrap();
        let (server, _) = listener.accept().unwrap();
        let peers = peers().unwrap();
        assert_eq!(peers.get(&inode(client.as_fd())), None);
        assert_eq!(peers.get(&inode(server.as_fd())), None);
    }

    #[test]
    fn a_damaged_dump_is_an_error_and_no_panic() {
        let mut done = 20_u32.to_ne_bytes().to_vec();
        done.extend(NLMSG_DONE.to_ne_bytes());
        done.extend([0; 14]);
        assert_eq!(Sockets::default().take_in(&done).unwrap(), Dump::Done);
        for cut in 4..done.len() {
            assert!(
                Sockets::default().take_in(&done[..cut]).is_err(),
                "cut at {cut}"
            );
        }
        let mut refused = 20_u32.to_ne_bytes().to_vec();
        refused.extend(NLMSG_ERROR.to_ne_bytes());
        refused.extend([0; 10]);
        refused.extend((-13_i32).to_ne_bytes());
        let error = Sockets::default().take_in(&refused).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(13));
    }
}
