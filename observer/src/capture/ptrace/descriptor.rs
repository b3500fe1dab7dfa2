//! What a descriptor of a tracee is: an end of a stream, a terminal, a way to the network.
//!
//! Owns the look at `/proc/PID/fd` while the tracee stands still. It looks anew at every call, so
//! no close, dup or exec can make it wrong; only what can never change is remembered: what kind of
//! socket has an inode, and which is its peer.

use std::collections::HashMap;
use std::fs;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use nix::errno::Errno;
use nix::sys::stat::{major, minor};

use super::address::parse_address;
use super::peers::PeerLookup;
use super::sys::Tid;
use crate::capture::event::{Pid, StreamId, StreamKind};

/// What a descriptor is open on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A pipe or named pipe.
    Pipe(StreamId),
    /// An `AF_UNIX` stream socket, by its inode.
    Socket(u64),
    /// An internet socket, and its peer where it is connected.
    Internet(Option<SocketAddr>),
    /// A terminal, by its device.
    Terminal(u64),
    /// Anything else.
    Other,
}

/// What a socket is, for as long as it lives.
#[derive(Clone, Copy, Debug)]
enum Socket {
    Unix,
    /// Of a TCP connection the peer stays; of any other it may change.
    Internet(Option<SocketAddr>),
    Other,
}

/// Sockets that are remembered; more than that, and all are asked for anew.
const REMEMBERED: usize = 1 << 16;

/// Resolves descriptors.
#[derive(Debug, Default)]
pub(super) struct Descriptors {
    /// The device of the file system that unnamed pipes are on.
    pipefs: Option<u64>,
    sockets: HashMap<u64, Socket>,
    peers: HashMap<u64, u64>,
    lookup: PeerLookup,
}

impl Descriptors {
    pub(super) fn new() -> Self {
        let pipefs = std::io::pipe()
            .ok()
            .and_then(|(reader, _)| nix::sys::stat::fstat(reader).ok());
        Self {
            pipefs: pipefs.map(|stat| stat.st_dev),
            ..Self::default()
        }
    }

    /// What descriptor `fd` of a thread that stands still is open on.
    pub(super) fn target(&mut self, pid: Pid, tid: Tid, fd: i32) -> Target {
        if fd < 0 {
            return Target::Other;
        }
        let Ok(file) = fs::metadata(format!("/proc/{tid}/fd/{fd}")) else {
            return Target::Other;
        };
        let kind = file.file_type();
        if kind.is_fifo() {
            Target::Pipe(self.pipe(&file))
        } else if kind.is_socket() {
            self.socket(pid, fd, file.ino())
        } else if kind.is_char_device() && is_terminal(file.rdev()) {
            Target::Terminal(file.rdev())
        } else {
            Target::Other
        }
    }

    fn pipe(&self, file: &fs::Metadata) -> StreamId {
        let device = file.dev();
        let named = self.pipefs != Some(device);
        // As the kernel encodes a device inside: 12 bits and 20.
        let scope = if named {
            major(device) << 20 | minor(device) & 0xf_ffff
        } else {
            0
        };
        #[expect(clippy::cast_possible_truncation, reason = "12 bits and 20 bits")]
        StreamId {
            kind: StreamKind::Pipe,
            object: file.ino(),
            scope: scope as u32,
        }
    }

    fn socket(&mut self, pid: Pid, fd: i32, inode: u64) -> Target {
        let socket = match self.sockets.get(&inode) {
            Some(known) => *known,
            None => {
                let Some((socket, settled)) = ask(pid, fd, inode) else {
                    return Target::Other;
                };
                if settled {
                    if self.sockets.len() >= REMEMBERED {
                        self.sockets.clear();
                    }
                    self.sockets.insert(inode, socket);
                }
                socket
            }
        };
        match socket {
            Socket::Unix => Target::Socket(inode),
            Socket::Internet(peer) => Target::Internet(peer),
            Socket::Other => Target::Other,
        }
    }

    /// The stream that is written through a descriptor with this target.
    pub(super) fn written(&self, target: Target) -> Option<StreamId> {
        match target {
            Target::Pipe(stream) => Some(stream),
            Target::Socket(own) => Some(socket_stream(own)),
            Target::Internet(_) | Target::Terminal(_) | Target::Other => None,
        }
    }

    /// The stream that is read through it: what comes out of a socket bears the name of its peer.
    pub(super) fn read(&mut self, target: Target) -> Option<StreamId> {
        match target {
            Target::Pipe(stream) => Some(stream),
            Target::Socket(own) => self.peer(own).map(socket_stream),
            Target::Internet(_) | Target::Terminal(_) | Target::Other => None,
        }
    }

    /// The socket at the other end; `None` where there is none yet, or nobody knows it.
    fn peer(&mut self, own: u64) -> Option<u64> {
        if let Some(&peer) = self.peers.get(&own) {
            return Some(peer);
        }
        let peer = self.lookup.peer(own)?;
        self.pair(own, peer);
        Some(peer)
    }

    /// Two sockets are each other's peer.
    pub(super) fn pair(&mut self, one: u64, other: u64) {
        if self.peers.len() >= REMEMBERED {
            self.peers.clear();
        }
        self.peers.insert(one, other);
        self.peers.insert(other, one);
    }

    /// The streams that a process can read, and how many bytes wait in each.
    pub(super) fn waiting(&mut self, pid: Pid) -> Vec<(StreamId, u64)> {
        let tid = Tid(pid.0.cast_signed());
        let entries = fs::read_dir(format!("/proc/{pid}/fd"))
            .into_iter()
            .flatten()
            .flatten();
        let fds = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        fds.filter_map(|fd: i32| {
            let target = self.target(pid, tid, fd);
            Some((self.read(target)?, bytes_waiting(&copy_of(pid, fd).ok()?)?))
        })
        .collect()
    }
}

fn bytes_waiting(file: &OwnedFd) -> Option<u64> {
    let mut waiting: libc::c_int = 0;
    // SAFETY: FIONREAD writes one int, to valid memory.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::FIONREAD, &raw mut waiting) };
    if result == 0 {
        u64::try_from(waiting).ok()
    } else {
        None
    }
}

fn socket_stream(object: u64) -> StreamId {
    StreamId {
        kind: StreamKind::Socket,
        object,
        scope: 0,
    }
}

/// Virtual consoles and serial lines, `/dev/tty` and its like, pseudo-terminals
/// (`Documentation/admin-guide/devices.txt`).
fn is_terminal(device: u64) -> bool {
    matches!(major(device), 4 | 5 | 136..=143)
}

/// For what a descriptor is open: `O_RDONLY`, `O_WRONLY` or `O_RDWR`.
pub(super) fn access(tid: Tid, fd: i32) -> Option<i32> {
    let info = fs::read_to_string(format!("/proc/{tid}/fdinfo/{fd}")).ok()?;
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
    Some(i32::from_str_radix(flags.trim(), 8).ok()? & libc::O_ACCMODE)
}

/// What the socket behind a descriptor is, and whether it stays so.
fn ask(pid: Pid, fd: i32, inode: u64) -> Option<(Socket, bool)> {
    let copy = copy_of(pid, fd).ok()?;
    if nix::sys::stat::fstat(&copy).ok()?.st_ino != inode {
        // Another thread was faster. The call itself may have had either.
        return None;
    }
    let stream = option(&copy, libc::SO_TYPE)? == libc::SOCK_STREAM;
    Some(match option(&copy, libc::SO_DOMAIN)? {
        libc::AF_UNIX if stream => (Socket::Unix, true),
        libc::AF_INET | libc::AF_INET6 => {
            let peer = peer_address(&copy);
            (Socket::Internet(peer), stream && peer.is_some())
        }
        _ => (Socket::Other, true),
    })
}

/// An option of a socket that is a number.
fn option(socket: &OwnedFd, name: libc::c_int) -> Option<libc::c_int> {
    let mut value: libc::c_int = 0;
    let mut len: libc::socklen_t = 4;
    // SAFETY: the kernel writes at most `len` bytes to `value`, which has as many.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            name,
            (&raw mut value).cast(),
            &raw mut len,
        )
    };
    (result == 0).then_some(value)
}

fn peer_address(socket: &OwnedFd) -> Option<SocketAddr> {
    const SIZE: u8 = 128;
    #[repr(align(8))]
    struct Address([u8; SIZE as usize]);
    let mut address = Address([0; SIZE as usize]);
    let mut len = libc::socklen_t::from(SIZE);
    // SAFETY: the kernel writes at most `len` bytes to `address`, which has as many.
    let result =
        unsafe { libc::getpeername(socket.as_raw_fd(), (&raw mut address).cast(), &raw mut len) };
    if result == 0 {
        parse_address(address.0.get(..len as usize)?)
    } else {
        None
    }
}

/// The file that a tracee's descriptor is open on, for as long as we need it (Linux 5.6).
fn copy_of(pid: Pid, fd: i32) -> nix::Result<OwnedFd> {
    // SAFETY: two numbers, no memory.
    let process = owned(unsafe { libc::syscall(libc::SYS_pidfd_open, pid.0, 0) })?;
    let process = process.as_fd().as_raw_fd();
    // SAFETY: three numbers, no memory; the process's descriptor is open.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process, fd, 0) })
}

fn owned(result: libc::c_long) -> nix::Result<OwnedFd> {
    let fd = i32::try_from(Errno::result(result)?).map_err(|_| Errno::EBADF)?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::RawFd;
    use std::os::unix::net::{UnixDatagram, UnixStream};

    use super::*;

    fn own() -> (Pid, Tid) {
        let pid = std::process::id();
        (Pid(pid), Tid(pid.cast_signed()))
    }

    fn target(descriptors: &mut Descriptors, fd: RawFd) -> Target {
        let (pid, tid) = own();
        descriptors.target(pid, tid, fd)
    }

    fn inode(fd: impl AsFd) -> u64 {
        nix::sys::stat::fstat(fd).unwrap().st_ino
    }

    #[test]
    fn a_pipe_is_one_stream_with_two_ends() {
        let (reader, writer) = std::io::pipe().unwrap();
        let mut descriptors = Descriptors::new();
        let stream = StreamId {
            kind: StreamKind::Pipe,
            object: inode(&reader),
            scope: 0,
        };
        assert_eq!(
            target(&mut descriptors, writer.as_raw_fd()),
            Target::Pipe(stream)
        );
        let found = target(&mut descriptors, reader.as_raw_fd());
        assert_eq!(descriptors.read(found), Some(stream));
        assert_eq!(descriptors.written(found), Some(stream));
    }

    #[test]
    fn a_named_pipe_is_known_by_its_device_as_well() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let fifo = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .unwrap();
        match target(&mut Descriptors::new(), fifo.as_raw_fd()) {
            Target::Pipe(stream) => assert_ne!(stream.scope, 0),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_socket_is_written_under_its_own_name_and_read_under_its_peers() {
        let (one, other) = UnixStream::pair().unwrap();
        let mut descriptors = Descriptors::new();
        let found = target(&mut descriptors, one.as_raw_fd());
        assert_eq!(found, Target::Socket(inode(&one)));
        assert_eq!(descriptors.written(found), Some(socket_stream(inode(&one))));
        assert_eq!(descriptors.read(found), Some(socket_stream(inode(&other))));
        // Once known, also when the other end is gone.
        let peer = inode(&other);
        drop(other);
        assert_eq!(descriptors.read(found), Some(socket_stream(peer)));
        assert_eq!(Descriptors::new().read(found), None);
    }

    #[test]
    fn internet_sockets_have_a_peer_once_connected() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let client = TcpStream::connect(address).unwrap();
        let mut descriptors = Descriptors::new();
        let peer = Target::Internet(Some(address));
        assert_eq!(target(&mut descriptors, client.as_raw_fd()), peer);
        assert_eq!(
            target(&mut descriptors, listener.as_raw_fd()),
            Target::Internet(None)
        );
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(
            target(&mut descriptors, udp.as_raw_fd()),
            Target::Internet(None)
        );
        udp.connect(address).unwrap();
        assert_eq!(target(&mut descriptors, udp.as_raw_fd()), peer);
    }

    #[test]
    fn all_else_is_of_no_interest() {
        let mut descriptors = Descriptors::new();
        let (one, _other) = UnixDatagram::pair().unwrap();
        let file = tempfile::tempfile().unwrap();
        for fd in [one.as_raw_fd(), file.as_raw_fd(), -1, 1 << 20] {
            assert_eq!(target(&mut descriptors, fd), Target::Other);
        }
    }

    #[test]
    fn terminals_are_known_by_their_number() {
        let pty = nix::pty::openpty(None, None).unwrap();
        let found = target(&mut Descriptors::new(), pty.slave.as_raw_fd());
        assert!(matches!(found, Target::Terminal(_)), "{found:?}");
        assert!(!is_terminal(nix::sys::stat::makedev(1, 3))); // /dev/null
    }
}
