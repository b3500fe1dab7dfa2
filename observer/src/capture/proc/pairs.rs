//! Which `AF_UNIX` stream sockets are the two ends of one pair: asked of the kernel for all of a
//! network namespace at once.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::thread;

use nix::sched::{CloneFlags, setns};

use crate::capture::sock_diag::{Answer, Question, SOCK_STREAM, SockDiag, Socket, answers};

/// The unnamed, connected `AF_UNIX` stream sockets of a network namespace: inode to peer's inode.
/// A socket with a name is somebody's service (D-Bus, the journal), never a server's stdio.
pub(super) type Peers = BTreeMap<u64, u64>;

/// The peers in the network namespace of this thread.
pub(super) fn peers() -> io::Result<Peers> {
    let kernel = SockDiag::open()?;
    kernel.ask(Question::All)?;
    let mut sockets = Sockets::default();
    loop {
        let datagram = kernel.receive()?;
        if datagram.is_empty() {
            return Ok(sockets.unnamed_pairs());
        }
        for answer in answers(&datagram) {
            match answer? {
                Answer::Socket(socket) => sockets.add(&socket),
                Answer::Done => return Ok(sockets.unnamed_pairs()),
            }
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

/// What was told so far: for each stream socket its peer, and whether it has a name.
#[derive(Debug, Default)]
struct Sockets {
    by_inode: BTreeMap<u64, (Option<u64>, bool)>,
}

impl Sockets {
    fn add(&mut self, socket: &Socket) {
        if socket.kind == SOCK_STREAM {
            let known = (socket.peer, socket.is_named);
            self.by_inode.insert(socket.inode.into(), known);
        }
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
}
