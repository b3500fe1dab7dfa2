//! What the watched children do. A child is the test binary itself, run again.
//!
//! It says what the test must know on stdout, in lines that begin with `@ `, and takes a step
//! whenever a line comes in on stdin.

use std::fs::File;
use std::io::{Read, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::process::Command;
use std::sync::LazyLock;

use crate::streams;

const VARIABLE: &str = "OBSERVER_KERNEL_CHILD";

/// The command that runs this file's `child` and nothing else.
pub(crate) fn command(what: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["child::child", "--exact", "--nocapture", "--test-threads=1"]);
    command.env(VARIABLE, what);
    command
}

/// No test: the entry point of children.
#[test]
fn child() {
    let Ok(what) = std::env::var(VARIABLE) else {
        return;
    };
    wait();
    let words: Vec<_> = what.split(' ').collect();
    match words.as_slice() {
        ["move", transport, seed, sizes] => {
            let sizes: Vec<usize> = sizes.split(',').map(|size| size.parse().unwrap()).collect();
            streams::move_messages(transport, seed.parse().unwrap(), &sizes);
        }
        ["blocks", transport, call, count, size] => {
            streams::move_blocks(
                transport,
                call,
                count.parse().unwrap(),
                size.parse().unwrap(),
            );
        }
        [step] => streams::single(step),
        _ => panic!("no such child: {what}"),
    }
    std::process::exit(0);
}

/// Waits for the test to say go.
pub(crate) fn wait() {
    // Not through `std::io::stdin()`, which would read ahead.
    // SAFETY: the descriptor is open, and stays open: the file is never dropped.
    let mut stdin = ManuallyDrop::new(unsafe { File::from_raw_fd(0) });
    stdin.read_exact(&mut [0]).unwrap();
}

/// Tells the test something.
pub(crate) fn say(what: impl std::fmt::Display) {
    let mut stdout = std::io::stdout().lock();
    // The harness may have left a line unfinished.
    writeln!(stdout, "\n@ {what}").unwrap();
    stdout.flush().unwrap();
}

/// The name of the stream that is written through a descriptor.
pub(crate) fn stream_of(fd: RawFd) -> String {
    std::fs::read_link(format!("/proc/self/fd/{fd}"))
        .unwrap()
        .to_string_lossy()
        .into_owned()
}

/// A pair of descriptors: first the reading end.
pub(crate) fn pair(transport: &str) -> (OwnedFd, OwnedFd) {
    let mut fds = [0; 2];
    // SAFETY: `fds` has room for two descriptors.
    let made = unsafe {
        match transport {
            "pipe" => libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC),
            "socketpair" => libc::socketpair(
                libc::AF_UNIX,
                libc::SOCK_STREAM | libc::SOCK_CLOEXEC,
                0,
                fds.as_mut_ptr(),
            ),
            other => panic!("no transport {other}"),
        }
    };
    assert_eq!(made, 0);
    // SAFETY: both descriptors are new and nobody else owns them.
    unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) }
}

/// A small generator of numbers: xorshift64*.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// From 1 to `max`.
    pub(crate) fn up_to(&mut self, max: usize) -> usize {
        1 + (self.next() % max as u64) as usize
    }
}

/// What every stream of a child repeats. A prime length: no piece is like one nearby.
static BLOCK: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut random = Random::new(1);
    (0..1_048_583)
        .map(|_| (random.next() >> 40) as u8)
        .collect()
});

/// The pieces of the block that make up a stream from `start` to `start + len`.
fn blocks(start: u64, len: usize) -> impl Iterator<Item = &'static [u8]> {
    let mut at = (start % BLOCK.len() as u64) as usize;
    let mut left = len;
    std::iter::from_fn(move || {
        let piece = &BLOCK[at..BLOCK.len().min(at + left)];
        at = 0;
        left -= piece.len();
        (!piece.is_empty()).then_some(piece)
    })
}

/// The bytes that a child writes from position `start` on.
pub(crate) fn content(start: u64, len: usize) -> Vec<u8> {
    blocks(start, len).collect::<Vec<_>>().concat()
}

/// Whether a chunk holds what a child wrote there.
pub(crate) fn is_content(offset: u64, mut bytes: &[u8]) -> bool {
    blocks(offset, bytes.len()).all(|piece| {
        let equal = bytes.starts_with(piece);
        bytes = &bytes[piece.len().min(bytes.len())..];
        equal
    })
}

/// A descriptor's number.
pub(crate) fn raw(fd: &OwnedFd) -> RawFd {
    fd.as_raw_fd()
}
