//! Bytes through every system call that moves them, split at random.

use std::io;
use std::ptr;

/// The bytes of a transfer: no two neighbouring words are equal.
pub(crate) fn content(len: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        bytes.extend(random.next().to_ne_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// Xorshift, as good as a test needs.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

pub(crate) fn check(result: isize) -> usize {
    if result < 0 {
        let error = io::Error::last_os_error();
        eprintln!("a system call of the role failed: {error}");
        std::process::exit(99);
    }
    result as usize
}

/// A reading and a writing end.
pub(crate) fn channel(kind: &str) -> (i32, i32) {
    let mut fds = [0; 2];
    // SAFETY: both calls write two descriptors.
    let result = unsafe {
        match kind {
            "pipe" => libc::pipe(fds.as_mut_ptr()),
            _ => libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, fds.as_mut_ptr()),
        }
    };
    check(result as isize);
    (fds[0], fds[1])
}

fn iovecs(bytes: &[u8], pieces: usize) -> Vec<libc::iovec> {
    let each = (bytes.len() / pieces).max(1);
    let iovec = |chunk: &[u8]| libc::iovec {
        iov_base: chunk.as_ptr().cast_mut().cast(),
        iov_len: chunk.len(),
    };
    bytes.chunks(each).map(iovec).collect()
}

fn message(iov: &mut [libc::iovec]) -> libc::msghdr {
    // SAFETY: all zeros are a valid msghdr.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = iov.as_mut_ptr();
    message.msg_iovlen = iov.len();
    message
}

fn messages(halves: &mut [Vec<libc::iovec>]) -> Vec<libc::mmsghdr> {
    halves
        .iter_mut()
        .map(|iov| libc::mmsghdr {
            msg_hdr: message(iov),
            msg_len: 0,
        })
        .collect()
}

pub(crate) fn write_all(how: &str, fd: i32, bytes: &[u8], longest: usize, seed: u64) {
    let mut random = Random::new(seed);
    let mut done = 0;
    while done < bytes.len() {
        let len = (1 + random.below(longest)).min(bytes.len() - done);
        done += write_some(how, fd, &bytes[done..done + len], 1 + random.below(9));
    }
}

fn write_some(how: &str, fd: i32, piece: &[u8], pieces: usize) -> usize {
    let (data, len) = (piece.as_ptr().cast(), piece.len());
    let mut iov = iovecs(piece, pieces);
    let (iov_data, iov_len) = (iov.as_ptr(), iov.len() as i32);
    // SAFETY: buffers, vectors and messages point into `piece`, and live until the call returns.
    unsafe {
        match how {
            "write" => check(libc::write(fd, data, len)),
            "writev" => check(libc::writev(fd, iov_data, iov_len)),
            "pwritev2" => check(libc::pwritev2(fd, iov_data, iov_len, -1, 0)),
            "sendto" => check(libc::sendto(fd, data, len, 0, ptr::null(), 0)),
            "sendmsg" => check(libc::sendmsg(fd, &message(&mut iov), 0)),
            "sendmmsg" => {
                let (one, other) = piece.split_at(len / 2);
                let mut halves = [iovecs(one, pieces), iovecs(other, pieces)];
                let mut messages = messages(&mut halves);
                let sent = check(libc::sendmmsg(fd, messages.as_mut_ptr(), 2, 0) as isize);
                messages[..sent]
                    .iter()
                    .map(|message| message.msg_len as usize)
                    .sum()
            }
            "vmsplice" => check(libc::vmsplice(fd, iov_data, iov.len(), 0)),
            "splice" => {
                let (reader, writer) = channel("pipe");
                let len = check(libc::write(writer, data, len.min(65536)));
                let moved = check(libc::splice(
                    reader,
                    ptr::null_mut(),
                    fd,
                    ptr::null_mut(),
                    len,
                    0,
                ));
                libc::close(reader);
                libc::close(writer);
                moved
            }
            "sendfile" => {
                let file = check(libc::memfd_create(c"piece".as_ptr(), 0) as isize) as i32;
                check(libc::write(file, data, len));
                let moved = check(libc::sendfile(fd, file, &mut 0, len));
                libc::close(file);
                moved
            }
            other => panic!("no call {other}"),
        }
    }
}

pub(crate) fn read_all(how: &str, fd: i32, longest: usize, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = Vec::new();
    let mut buffer = vec![0; longest];
    loop {
        let len = 1 + random.below(longest);
        let read = read_some(how, fd, &mut buffer[..len], 1 + random.below(9));
        if read == 0 {
            return bytes;
        }
        bytes.extend_from_slice(&buffer[..read]);
    }
}

pub(crate) fn read_some(how: &str, fd: i32, piece: &mut [u8], pieces: usize) -> usize {
    let (data, len) = (piece.as_mut_ptr().cast(), piece.len());
    let mut iov = iovecs(piece, pieces);
    let (iov_data, iov_len) = (iov.as_ptr(), iov.len() as i32);
    // SAFETY: buffers, vectors and messages point into `piece`, and live until the call returns.
    unsafe {
        match how {
            "read" => check(libc::read(fd, data, len)),
            "readv" => check(libc::readv(fd, iov_data, iov_len)),
            "preadv2" => check(libc::preadv2(fd, iov_data, iov_len, -1, 0)),
            "recvfrom" => {
                check(libc::recv(fd, data, len, libc::MSG_PEEK));
                check(libc::recv(fd, data, len, 0))
            }
            "recvmsg" => check(libc::recvmsg(fd, &mut message(&mut iov), 0)),
            "recvmmsg" => {
                let mut whole = [iov];
                let mut messages = messages(&mut whole);
                let flags = libc::MSG_WAITFORONE;
                check(
                    libc::recvmmsg(fd, messages.as_mut_ptr(), 1, flags as _, ptr::null_mut())
                        as isize,
                );
                messages[0].msg_len as usize
            }
            other => panic!("no call {other}"),
        }
    }
}
