//! Which socket is at the other end of an `AF_UNIX` socket: asked of the kernel for one socket at a
//! time.

use crate::capture::sock_diag::{Answer, Question, SockDiag, answers};

/// A way to ask, opened at the first question.
#[derive(Debug, Default)]
pub(super) struct PeerLookup {
    kernel: Option<SockDiag>,
}

impl PeerLookup {
    /// The peer of the socket with this inode. `None` where it has none, the peer is closed, or
    /// the socket lives in another network namespace.
    pub(super) fn peer(&mut self, inode: u64) -> Option<u64> {
        let inode = u32::try_from(inode).ok()?;
        if self.kernel.is_none() {
            self.kernel = SockDiag::open().ok();
        }
        let kernel = self.kernel.as_ref()?;
        kernel.ask(Question::One(inode)).ok()?;
        let reply = kernel.receive().ok()?;
        match answers(&reply).next()? {
            Ok(Answer::Socket(socket)) if socket.inode == inode => socket.peer,
            _ => None,
        }
    }
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
}
