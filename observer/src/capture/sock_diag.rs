//! What the kernel tells of `AF_UNIX` sockets, above all which one is at the other end: by netlink,
//! as `ss -x` asks. `/proc` does not tell.
//!
//! Owns the form of questions and answers. Who asks, and what it makes of an answer, is for `proc`
//! and `ptrace` to say.
//!
//! Sources: `sock_diag(7)`; the kernel's `include/uapi/linux/unix_diag.h` (Linux 6.1).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

/// Of a [`Socket`]'s `kind`.
pub(super) const SOCK_STREAM: u8 = 1;

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
/// `struct nlmsghdr`.
const HEADER: usize = 16;
/// `struct unix_diag_msg`.
const UNIX_DIAG_MSG: usize = 16;
/// The kernel fills at most so much a time for a reader whose buffer is that large.
const LONGEST: usize = 32 * 1024;

/// The sockets that are asked about.
#[derive(Clone, Copy, Debug)]
pub(super) enum Question {
    /// The one with this inode: one answer.
    One(u32),
    /// All of the network namespace: answers until [`Answer::Done`].
    All,
}

/// What the kernel says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// There is such a socket.
    Socket(Socket),
    /// That was all.
    Done,
}

/// A socket, as far as it was told.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Socket {
    /// `SOCK_STREAM` and its like.
    pub(super) kind: u8,
    pub(super) inode: u32,
    /// The inode of the socket at the other end; `None` where there is none any more, or not yet.
    pub(super) peer: Option<u64>,
    /// Whether it has an address.
    pub(super) is_named: bool,
}

/// A netlink socket, which asks in the network namespace of the thread that opened it.
#[derive(Debug)]
pub(super) struct SockDiag {
    netlink: OwnedFd,
}

impl SockDiag {
    pub(super) fn open() -> io::Result<Self> {
        let netlink = socket(
            AddressFamily::Netlink,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            SockProtocol::NetlinkSockDiag,
        )?;
        Ok(Self { netlink })
    }

    pub(super) fn ask(&self, question: Question) -> io::Result<()> {
        let request = request(question);
        send(self.netlink.as_raw_fd(), &request, MsgFlags::empty())?;
        Ok(())
    }

    /// Waits for the next datagram of answers: see [`answers`].
    pub(super) fn receive(&self) -> io::Result<Vec<u8>> {
        let mut datagram = vec![0; LONGEST];
        let read = recv(self.netlink.as_raw_fd(), &mut datagram, MsgFlags::empty())?;
        datagram.truncate(read);
        Ok(datagram)
    }
}

/// `struct nlmsghdr` and `struct unix_diag_req`.
fn request(question: Question) -> Vec<u8> {
    const LENGTH: u32 = 16 + 24;
    let (flags, inode) = match question {
        Question::One(inode) => (NLM_F_REQUEST, inode),
        Question::All => (NLM_F_REQUEST | NLM_F_DUMP, 0),
    };
    let mut bytes = Vec::new();
    bytes.extend(LENGTH.to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(1_u32.to_ne_bytes()); // sequence
    bytes.extend(0_u32.to_ne_bytes()); // port: the kernel
    bytes.extend([AF_UNIX, 0, 0, 0]); // family, protocol, padding
    bytes.extend(u32::MAX.to_ne_bytes()); // all states
    bytes.extend(inode.to_ne_bytes());
    bytes.extend((UDIAG_SHOW_NAME | UDIAG_SHOW_PEER).to_ne_bytes());
    bytes.extend(u64::MAX.to_ne_bytes()); // cookie: any
    bytes
}

/// The answers in a datagram, up to the first that cannot be read, or says that asking failed.
pub(super) fn answers(mut datagram: &[u8]) -> impl Iterator<Item = io::Result<Answer>> {
    std::iter::from_fn(move || {
        let length = usize::try_from(u32_at(datagram, 0)?).unwrap_or(usize::MAX);
        let (kind, message) = (u16_at(datagram, 4), datagram.get(HEADER..length));
        datagram = datagram.get(align(length)..).unwrap_or_default();
        let answer = kind
            .zip(message)
            .map_or_else(|| Err(cut_short()), |(kind, message)| answer(kind, message));
        if answer.is_err() {
            datagram = &[];
        }
        Some(answer)
    })
}

fn answer(kind: u16, message: &[u8]) -> io::Result<Answer> {
    match kind {
        NLMSG_DONE => Ok(Answer::Done),
        NLMSG_ERROR => {
            let errno = u32_at(message, 0).unwrap_or(0).cast_signed();
            Err(io::Error::from_raw_os_error(errno.saturating_neg()))
        }
        _ => parse(message).map(Answer::Socket).ok_or_else(cut_short),
    }
}

fn cut_short() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "netlink message cut short")
}

/// `struct unix_diag_msg` with its attributes.
fn parse(message: &[u8]) -> Option<Socket> {
    let mut socket = Socket {
        kind: *message.get(1)?,
        inode: u32_at(message, 4)?,
        peer: None,
        is_named: false,
    };
    let mut attributes = message.get(UNIX_DIAG_MSG..)?;
    while let (Some(length), Some(kind)) = (u16_at(attributes, 0), u16_at(attributes, 2)) {
        let length = usize::from(length);
        let value = attributes.get(4..length)?;
        match kind {
            UNIX_DIAG_NAME => socket.is_named = !value.is_empty(),
            UNIX_DIAG_PEER => {
                socket.peer = u32_at(value, 0).map(u64::from).filter(|&peer| peer != 0);
            }
            _ => {}
        }
        attributes = attributes.get(align(length)..).unwrap_or_default();
    }
    Some(socket)
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
    use super::*;

    /// A message with its header.
    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(HEADER + body.len()).unwrap();
        let mut bytes = length.to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend(body);
        bytes
    }

    /// The socket 7, whose peer is 9.
    fn socket() -> Vec<u8> {
        let mut body = vec![AF_UNIX, SOCK_STREAM, 1, 0];
        body.extend(7_u32.to_ne_bytes());
        body.extend([0; 8]);
        body.extend(8_u16.to_ne_bytes());
        body.extend(UNIX_DIAG_PEER.to_ne_bytes());
        body.extend(9_u32.to_ne_bytes());
        message(SOCK_DIAG_BY_FAMILY, &body)
    }

    fn read(datagram: &[u8]) -> io::Result<Vec<Answer>> {
        answers(datagram).collect()
    }

    #[test]
    fn answers_follow_one_another() {
        let datagram = [socket(), message(NLMSG_DONE, &[0; 4])].concat();
        let told = Socket {
            kind: SOCK_STREAM,
            inode: 7,
            peer: Some(9),
            is_named: false,
        };
        let expected = [Answer::Socket(told), Answer::Done];
        assert_eq!(read(&datagram).unwrap(), expected);
    }

    #[test]
    fn a_damaged_answer_is_an_error_and_no_panic() {
        for whole in [socket(), message(NLMSG_DONE, &[0; 4])] {
            for cut in 4..whole.len() {
                let cut_off = &whole[..cut];
                assert!(read(cut_off).is_err(), "cut at {cut}");
            }
        }
        // Cut with its length put right: no peer is made up.
        let body = &socket()[HEADER..];
        for cut in 0..body.len() {
            if let Ok(told) = read(&message(SOCK_DIAG_BY_FAMILY, &body[..cut])) {
                let [Answer::Socket(Socket { peer: None, .. })] = told[..] else {
                    panic!("cut at {cut}: {told:?}");
                };
            }
        }
    }

    #[test]
    fn a_refusal_is_the_kernels_own_error() {
        let refused = message(NLMSG_ERROR, &(-13_i32).to_ne_bytes());
        let error = read(&refused).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(13));
    }
}
