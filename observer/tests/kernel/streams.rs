//! The children that move bytes, with every system call that can.

use std::os::fd::{OwnedFd, RawFd};
use std::ptr;

use crate::child::{Random, content, pair, raw, say, stream_of, wait};

/// How a child writes.
const WRITES_PIPE: &[&str] = &["write", "writev", "pwritev2", "vmsplice"];
const WRITES_SOCKET: &[&str] = &[
    "write", "writev", "pwritev2", "sendto", "sendmsg", "sendmmsg",
];

/// How a child reads.
const READS_PIPE: &[&str] = &["read", "readv", "preadv2", "vmsplice"];
const READS_SOCKET: &[&str] = &[
    "read", "readv", "preadv2", "recvfrom", "recvmsg", "recvmmsg", "peek",
];

fn calls(transport: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match transport {
        "pipe" => (WRITES_PIPE, READS_PIPE),
        _ => (WRITES_SOCKET, READS_SOCKET),
    }
}

/// Moves messages of these sizes, each with one call after the other, split at random.
pub(crate) fn move_messages(transport: &str, seed: u64, sizes: &[usize]) {
    let (reader, writer) = pair(transport);
    say(stream_of(raw(&writer)));
    let (writes, reads) = calls(transport);
    let reading = std::thread::spawn(move || read_all(&reader, reads, seed));
    let mut random = Random::new(seed);
    let mut position = 0;
    for &call in writes {
        for &size in sizes {
            let message = content(position, size);
            let mut rest = message.as_slice();
            while !rest.is_empty() {
                let piece = random.up_to(rest.len());
                let written = write(call, raw(&writer), &rest[..piece], &mut random);
                rest = &rest[written..];
            }
            position += size as u64;
        }
    }
    drop(writer);
    assert_eq!(reading.join().unwrap(), position);
    say(position);
}

/// Moves `count` messages of one size, each with one system call, back to back.
pub(crate) fn move_blocks(transport: &str, call: &str, count: usize, size: usize) {
    let (reader, writer) = pair(transport);
    say(stream_of(raw(&writer)));
    let reading = std::thread::spawn(move || read_all(&reader, &["read"], 1));
    let messages: Vec<_> = (0..count)
        .map(|n| content((n * size) as u64, size))
        .collect();
    let mut random = Random::new(7);
    for message in &messages {
        let mut rest = message.as_slice();
        while !rest.is_empty() {
            let written = write(call, raw(&writer), rest, &mut random);
            rest = &rest[written..];
        }
    }
    drop(writer);
    reading.join().unwrap();
    say(count * size);
}

/// Reads to the end with one call after the other; returns how many bytes came.
fn read_all(reader: &OwnedFd, calls: &[&str], seed: u64) -> u64 {
    let mut random = Random::new(seed);
    let mut buffer = vec![0; 300_000];
    let mut total = 0;
    for &call in calls.iter().cycle() {
        let room = random.up_to(buffer.len());
        let n = read(call, raw(reader), &mut buffer[..room], &mut random);
        if n == 0 && call != "peek" {
            break;
        }
        if call != "peek" {
            total += n as u64;
        }
    }
    total
}

/// Cuts a buffer into at most `parts` pieces at random.
fn split(base: *mut u8, len: usize, parts: usize, random: &mut Random) -> Vec<libc::iovec> {
    let mut iov = Vec::new();
    let mut at = 0;
    while at < len && iov.len() + 1 < parts {
        let n = random.up_to(len - at);
        iov.push(libc::iovec {
            iov_base: base.wrapping_add(at).cast(),
            iov_len: n,
        });
        at += n;
    }
    iov.push(libc::iovec {
        iov_base: base.wrapping_add(at).cast(),
        iov_len: len - at,
    });
    iov
}

fn header(iov: &mut [libc::iovec]) -> libc::msghdr {
    // SAFETY: a message header of zeros is valid.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = iov.as_mut_ptr();
    header.msg_iovlen = iov.len();
    header
}

fn done(returned: isize, call: &str) -> usize {
    usize::try_from(returned)
        .unwrap_or_else(|_| panic!("{call}: {}", std::io::Error::last_os_error()))
}

/// Writes with the named system call; returns how much of it was taken.
pub(crate) fn write(call: &str, fd: RawFd, bytes: &[u8], random: &mut Random) -> usize {
    let (base, len) = (bytes.as_ptr().cast_mut(), bytes.len());
    let mut iov = split(base, len, 20, random);
    let count = i32::try_from(iov.len()).unwrap();
    let header = header(&mut iov);
    // SAFETY: all pointers are into `bytes` and `iov`, which outlive the calls, with their sizes.
    let returned = unsafe {
        match call {
            "write" => libc::write(fd, base.cast(), len),
            "writev" => libc::writev(fd, iov.as_ptr(), count),
            "pwritev2" => libc::pwritev2(fd, iov.as_ptr(), count, -1, 0),
            "vmsplice" => libc::vmsplice(fd, iov.as_ptr(), iov.len(), 0),
            "sendto" => libc::sendto(fd, base.cast(), len, libc::MSG_NOSIGNAL, ptr::null(), 0),
            "sendmsg" => libc::sendmsg(fd, &raw const header, libc::MSG_NOSIGNAL),
            "sendmmsg" => return write_messages(fd, base, len, random),
            _ => panic!("no call {call}"),
        }
    };
    done(returned, call)
}

fn write_messages(fd: RawFd, base: *mut u8, len: usize, random: &mut Random) -> usize {
    let parts = split(base, len, 4, random);
    let mut iovs: Vec<_> = parts
        .iter()
        .map(|part| split(part.iov_base.cast(), part.iov_len, 3, random))
        .collect();
    let mut messages: Vec<_> = iovs
        .iter_mut()
        .map(|iov| libc::mmsghdr {
            msg_hdr: header(iov),
            msg_len: 0,
        })
        .collect();
    let count = u32::try_from(messages.len()).unwrap();
    // SAFETY: the headers point to arrays that outlive the call.
    let sent = unsafe { libc::sendmmsg(fd, messages.as_mut_ptr(), count, libc::MSG_NOSIGNAL) };
    messages[..done(sent as isize, "sendmmsg")]
        .iter()
        .map(|message| message.msg_len as usize)
        .sum()
}

/// Reads with the named system call; returns how much came.
fn read(call: &str, fd: RawFd, buffer: &mut [u8], random: &mut Random) -> usize {
    let (base, len) = (buffer.as_mut_ptr(), buffer.len());
    let mut iov = split(base, len, 20, random);
    let count = i32::try_from(iov.len()).unwrap();
    let mut header = header(&mut iov);
    // SAFETY: all pointers are into `buffer` and `iov`, which outlive the calls, with their sizes.
    let returned = unsafe {
        match call {
            "read" => libc::read(fd, base.cast(), len),
            "readv" => libc::readv(fd, iov.as_ptr(), count),
            "preadv2" => libc::preadv2(fd, iov.as_ptr(), count, -1, 0),
            "vmsplice" => libc::vmsplice(fd, iov.as_ptr(), iov.len(), 0),
            "recvfrom" => libc::recv(fd, base.cast(), len, 0),
            "peek" => libc::recv(fd, base.cast(), len, libc::MSG_PEEK),
            "recvmsg" => libc::recvmsg(fd, &raw mut header, 0),
            "recvmmsg" => {
                let mut messages = [libc::mmsghdr {
                    msg_hdr: header,
                    msg_len: 0,
                }];
                let n = libc::recvmmsg(fd, messages.as_mut_ptr(), 1, 0, ptr::null_mut());
                assert_eq!(n, 1);
                return messages[0].msg_len as usize;
            }
            _ => panic!("no call {call}"),
        }
    };
    done(returned, call)
}

/// The children with a part of their own.
pub(crate) fn single(step: &str) {
    match step {
        "short" => short_writes(),
        "positioned" => positioned(),
        "spliced" => spliced(),
        "given-up" => given_up(),
        "threads" => threads(),
        "borrowed" => borrowed(),
        "slow-reader" => slow_reader(),
        "exits" => std::process::exit(3),
        other => crate::evidence::single(other),
    }
}

/// A full pipe takes a part, then nothing (EAGAIN); a pipe without a reader refuses (EPIPE).
fn short_writes() {
    let (reader, writer) = pair("pipe");
    let fd = raw(&writer);
    say(stream_of(fd));
    // SAFETY: takes numbers only.
    unsafe { libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK) };
    let bytes = content(0, 200_000);
    let taken = write("write", fd, &bytes, &mut Random::new(1));
    assert!(taken < bytes.len(), "the pipe is smaller than that");
    // SAFETY: the buffer is as long as told.
    let refused = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
    assert_eq!((refused, errno()), (-1, libc::EAGAIN));
    drop(reader);
    // SAFETY: as above. Rust's runtime ignores SIGPIPE.
    let refused = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
    assert_eq!((refused, errno()), (-1, libc::EPIPE));
    say(taken);
}

/// pread, pwrite, preadv, pwritev: a pipe has no positions.
fn positioned() {
    let (reader, writer) = pair("pipe");
    say(stream_of(raw(&writer)));
    let mut random = Random::new(1);
    write("write", raw(&writer), &content(0, 10), &mut random);
    let mut buffer = [0u8; 10];
    let iov = split(buffer.as_mut_ptr(), buffer.len(), 2, &mut random);
    let (r, w, count) = (
        raw(&reader),
        raw(&writer),
        i32::try_from(iov.len()).unwrap(),
    );
    let base = buffer.as_mut_ptr().cast();
    // SAFETY: all pointers are into `buffer` and `iov`, with their sizes.
    unsafe {
        assert_eq!(
            (libc::pwrite64(w, base, 10, 0), errno()),
            (-1, libc::ESPIPE)
        );
        assert_eq!((libc::pread64(r, base, 10, 0), errno()), (-1, libc::ESPIPE));
        assert_eq!(
            (libc::pwritev(w, iov.as_ptr(), count, 0), errno()),
            (-1, libc::ESPIPE)
        );
        assert_eq!(
            (libc::preadv(r, iov.as_ptr(), count, 0), errno()),
            (-1, libc::ESPIPE)
        );
    }
    say(10);
}

/// 100 bytes written, then 30 spliced in, 20 teed in, 50 sent from a file, then 100 written.
fn spliced() {
    let (reader, writer) = pair("pipe");
    let (other_reader, other_writer) = pair("pipe");
    say(stream_of(raw(&writer)));
    say(stream_of(raw(&other_writer)));
    let mut random = Random::new(1);
    write("write", raw(&writer), &content(0, 100), &mut random);
    write("write", raw(&other_writer), &content(0, 60), &mut random);
    let (from, to) = (raw(&other_reader), raw(&writer));
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, &[b'f'; 50]).unwrap();
    // SAFETY: null pointers stand for the descriptors' own positions; the rest are numbers.
    unsafe {
        assert_eq!(
            libc::splice(from, ptr::null_mut(), to, ptr::null_mut(), 30, 0),
            30
        );
        assert_eq!(libc::tee(from, to, 20, 0), 20);
        let mut start = 0;
        let file = std::os::fd::AsRawFd::as_raw_fd(&file);
        assert_eq!(libc::sendfile(to, file, &raw mut start, 50), 50);
    }
    write("write", raw(&writer), &content(200, 100), &mut random);
    drop(writer);
    assert_eq!(read_all(&reader, &["read"], 1), 300);
    say(300);
}

/// Writes 1,000 bytes at a time, each after a step.
fn given_up() {
    let (reader, writer) = pair("socketpair");
    say(stream_of(raw(&writer)));
    let mut random = Random::new(1);
    let mut buffer = [0; 1000];
    for n in 0..3 {
        write("write", raw(&writer), &content(n * 1000, 1000), &mut random);
        read("read", raw(&reader), &mut buffer, &mut random);
        say(n);
        wait();
    }
}

/// Four threads write lines into one pipe at once.
fn threads() {
    let (reader, writer) = pair("pipe");
    say(stream_of(raw(&writer)));
    let reading = std::thread::spawn(move || read_all(&reader, &["read"], 1));
    let fd = raw(&writer);
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            scope.spawn(move || {
                for n in 0..2_000usize {
                    // Atomic up to PIPE_BUF.
                    let line = vec![b'a' + thread; 1 + (n * 37) % 3000];
                    let mut line = [line, vec![b'\n']].concat();
                    line.truncate(libc::PIPE_BUF);
                    assert_eq!(write("write", fd, &line, &mut Random::new(1)), line.len());
                }
            });
        }
    });
    drop(writer);
    say(reading.join().unwrap());
}

/// One thread writes 300,000 bytes at once; another reads a part, waits, and reads the rest.
fn slow_reader() {
    let (reader, writer) = pair("pipe");
    say(stream_of(raw(&writer)));
    let writing = std::thread::spawn(move || {
        write(
            "write",
            raw(&writer),
            &content(0, 300_000),
            &mut Random::new(1),
        )
    });
    let mut buffer = [0; 1000];
    read("read", raw(&reader), &mut buffer, &mut Random::new(1));
    std::thread::sleep(std::time::Duration::from_millis(2_500));
    assert_eq!(read_all(&reader, &["read"], 1), 299_000);
    say(writing.join().unwrap());
}

/// Reads 500 bytes from stdin, which somebody out of the scope has written.
fn borrowed() {
    let name = stream_of(0);
    let mut buffer = [0; 500];
    let mut got = 0;
    while got < buffer.len() {
        got += read("read", 0, &mut buffer[got..], &mut Random::new(1));
    }
    say(name);
    wait();
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}
