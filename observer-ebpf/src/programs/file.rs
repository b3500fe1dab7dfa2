//! What a descriptor of the current process is: a pipe, a socket, a terminal, or of no interest.

use observer_ebpf::config::ABSENT;
use observer_ebpf::wire::{StreamKey, stream_kind};

use crate::kernel::{current_task, offset, read};

const S_IFMT: u16 = 0o170_000;
const S_IFSOCK: u16 = 0o140_000;
const S_IFIFO: u16 = 0o010_000;
const S_IFCHR: u16 = 0o020_000;

/// `PIPEFS_MAGIC` of `include/uapi/linux/magic.h`: the file system of pipes without a name.
const PIPEFS_MAGIC: u64 = 0x5049_5045;

const AF_UNIX: u16 = 1;
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;
const SOCK_STREAM: i16 = 1;

/// `FMODE_WRITE` of `include/linux/fs.h`.
const FMODE_WRITE: u32 = 2;

/// Character devices whose major number marks a terminal: virtual consoles and serial lines,
/// `/dev/tty` and its like, pseudo-terminals (`Documentation/admin-guide/devices.txt`).
#[inline(always)]
fn is_terminal(device: u32) -> bool {
    matches!(device >> 20, 4 | 5 | 136..=143)
}

/// What a descriptor refers to.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    /// A pipe: one stream.
    Pipe(StreamKey),
    /// A connected `AF_UNIX` stream socket: what is written to it is one stream, what is read
    /// from it another, which carries the name of the socket at the other end.
    Socket { own: u64, peer: Option<u64> },
    /// An internet socket, by its `struct sock`.
    Internet { sock: u64, family: u16 },
    /// A terminal, by its device.
    Terminal(u32),
}

/// An open file of the current process.
#[derive(Clone, Copy)]
pub(crate) struct File {
    file: u64,
    inode: u64,
}

impl File {
    /// The file behind a descriptor.
    #[inline(always)]
    pub(crate) fn of(fd: i32) -> Option<Self> {
        let files = read::<u64>(current_task(), offset!(task_files))?;
        let table = read::<u64>(files, offset!(files_fdt))?;
        if fd as u32 >= read::<u32>(table, offset!(fdt_max_fds))? {
            return None;
        }
        let array = read::<u64>(table, offset!(fdt_fd))?;
        let file = read::<u64>(array + u64::from(fd as u32) * 8, 0)?;
        let inode = read::<u64>(file, offset!(file_inode))?;
        Some(Self { file, inode })
    }

    /// What kind of thing it is.
    #[inline(always)]
    pub(crate) fn target(self) -> Option<Target> {
        match read::<u16>(self.inode, offset!(inode_mode))? & S_IFMT {
            S_IFIFO => self.pipe(),
            S_IFSOCK => self.socket(),
            S_IFCHR => {
                let device = read::<u32>(self.inode, offset!(inode_rdev))?;
                is_terminal(device).then_some(Target::Terminal(device))
            }
            _ => None,
        }
    }

    /// Whether it is open for writing.
    #[inline(always)]
    pub(crate) fn is_writable(self) -> bool {
        read::<u32>(self.file, offset!(file_mode)).is_some_and(|mode| mode & FMODE_WRITE != 0)
    }

    #[inline(always)]
    fn pipe(self) -> Option<Target> {
        let object = read::<u64>(self.inode, offset!(inode_ino))?;
        let sb = read::<u64>(self.inode, offset!(inode_sb))?;
        let scope = if read::<u64>(sb, offset!(sb_magic))? == PIPEFS_MAGIC {
            0
        } else {
            read::<u32>(sb, offset!(sb_dev))?
        };
        Some(Target::Pipe(StreamKey {
            object,
            scope,
            kind: stream_kind::PIPE,
        }))
    }

    #[inline(always)]
    fn socket(self) -> Option<Target> {
        let socket = read::<u64>(self.file, offset!(file_private_data))?;
        let sock = read::<u64>(socket, offset!(socket_sk))?;
        let family = read::<u16>(sock, offset!(sock_family))?;
        match family {
            AF_UNIX if read::<i16>(socket, offset!(socket_type))? == SOCK_STREAM => {
                let own = read::<u64>(self.inode, offset!(inode_ino))?;
                Some(Target::Socket {
                    own,
                    peer: peer_inode(sock),
                })
            }
            AF_INET | AF_INET6 => Some(Target::Internet { sock, family }),
            _ => None,
        }
    }
}

/// The inode of the socket at the other end; `None` once that is closed.
#[inline(always)]
fn peer_inode(sock: u64) -> Option<u64> {
    let peer = read::<u64>(sock, offset!(unix_peer))?;
    let socket = read::<u64>(peer, offset!(sock_socket))?;
    if socket == 0 {
        return None;
    }
    let inode = socket + u64::from(offset!(socket_inode));
    read::<u64>(inode, offset!(inode_ino))
}

/// The address of an internet socket's peer: port in network order, address.
#[inline(always)]
pub(crate) fn internet_peer(sock: u64, family: u16) -> Option<([u8; 2], [u8; 16])> {
    let port = read::<[u8; 2]>(sock, offset!(sock_dport))?;
    if family == AF_INET6 && offset!(sock_v6_daddr) != ABSENT {
        return Some((port, read::<[u8; 16]>(sock, offset!(sock_v6_daddr))?));
    }
    let mut address = [0; 16];
    address[..4].copy_from_slice(&read::<[u8; 4]>(sock, offset!(sock_daddr))?);
    Some((port, address))
}
