//! A tracee's memory: bytes, and the structures that system calls pass by pointer.
//!
//! What cannot be read is left out, never an error: the tracee may have passed a bad pointer, or
//! may have ended.

use std::io::IoSliceMut;

use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};

use super::sys::{self, Tid};

/// How many buffers, or messages, one call may name (`UIO_MAXIOV`).
const MAX_VECTOR: u64 = 1024;

/// `struct iovec`, `struct msghdr` and `struct mmsghdr` of a 64-bit program, in words.
const IOVEC: usize = 2;
const MSGHDR: usize = 7;
const MMSGHDR: usize = 8;

/// The memory of a thread that stands still.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory(Tid);

/// Where bytes are, piece by piece.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spans(Vec<Span>);

/// A piece of a tracee's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    address: u64,
    len: u64,
}

impl Memory {
    pub(super) fn of(tid: Tid) -> Self {
        Self(tid)
    }

    /// Reads from `address` on; returns how many bytes it got.
    fn read(self, address: u64, buffer: &mut [u8]) -> usize {
        let Ok(base) = usize::try_from(address) else {
            return 0;
        };
        let remote = [RemoteIoVec {
            base,
            len: buffer.len(),
        }];
        match process_vm_readv(self.0.raw(), &mut [IoSliceMut::new(buffer)], &remote) {
            Ok(read) => read,
            // A sandbox or a security module may forbid the call; a tracer may always peek.
            Err(Errno::EPERM | Errno::ENOSYS) => self.peek(address, buffer),
            Err(_) => 0,
        }
    }

    /// Word by word.
    fn peek(self, address: u64, buffer: &mut [u8]) -> usize {
        const WORD: usize = size_of::<u64>();
        let mut read = 0;
        for (chunk, at) in buffer.chunks_mut(WORD).zip((address..).step_by(WORD)) {
            let Ok(word) = sys::peek(self.0, at) else {
                break;
            };
            chunk.copy_from_slice(&word.to_ne_bytes()[..chunk.len()]);
            read += chunk.len();
        }
        read
    }

    fn words<const N: usize>(self, address: u64) -> Option<[u64; N]> {
        let mut words = [0; N];
        for (word, bytes) in words
            .iter_mut()
            .zip(self.bytes(address, N * 8)?.chunks_exact(8))
        {
            *word = u64::from_ne_bytes(bytes.try_into().ok()?);
        }
        Some(words)
    }

    /// `len` bytes, all or nothing.
    pub(super) fn bytes(self, address: u64, len: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; len];
        (self.read(address, &mut bytes) == len).then_some(bytes)
    }

    /// The two descriptors that `socketpair` wrote.
    pub(super) fn pair(self, address: u64) -> Option<[i32; 2]> {
        let bytes = self.bytes(address, 8)?;
        let fd = |at| i32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Some([fd(0), fd(4)])
    }

    /// The buffers of a `struct iovec` array; `None` where it cannot be read.
    pub(super) fn vector(self, address: u64, count: u64) -> Option<Spans> {
        let count = usize::try_from(count.min(MAX_VECTOR)).ok()?;
        let bytes = self.bytes(address, count * IOVEC * 8)?;
        let word = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_ne_bytes);
        let spans = bytes.chunks_exact(IOVEC * 8).filter_map(|iovec| {
            let (address, len) = iovec.split_at(8);
            Some(Span {
                address: word(address)?,
                len: word(len)?,
            })
        });
        Some(Spans(spans.collect()))
    }

    /// A `struct msghdr`: its buffers, and the address that it names (pointer and length).
    pub(super) fn message(self, address: u64) -> Option<(Spans, (u64, u64))> {
        let [name, name_len, iov, iov_len, ..] = self.words::<MSGHDR>(address)?;
        // A `socklen_t` of 32 bits and padding.
        Some((self.vector(iov, iov_len)?, (name, name_len & 0xffff_ffff)))
    }

    /// The messages of a `struct mmsghdr` array that moved: buffers, and the bytes of each.
    pub(super) fn messages(self, address: u64, count: u64) -> Option<Vec<(Spans, u64)>> {
        (0..count.min(MAX_VECTOR))
            .map(|n| {
                let at = address.checked_add(n * MMSGHDR as u64 * 8)?;
                let header = self.words::<MMSGHDR>(at)?;
                let (spans, _) = self.message(at)?;
                Some((spans, header[MSGHDR] & 0xffff_ffff))
            })
            .collect()
    }

    /// The bytes of `spans`, up to the first that cannot be read, in pieces of at most `limit`.
    pub(super) fn read_spans(self, spans: &Spans, limit: usize, mut piece: impl FnMut(Vec<u8>)) {
        let mut pending = Vec::new();
        for &Span {
            mut address,
            mut len,
        } in &spans.0
        {
            while len > 0 {
                let room = limit - pending.len();
                let want = usize::try_from(len).map_or(room, |len| len.min(room));
                let start = pending.len();
                pending.resize(start + want, 0);
                let read = self.read(address, &mut pending[start..]);
                pending.truncate(start + read);
                if read < want {
                    if !pending.is_empty() {
                        piece(pending);
                    }
                    return;
                }
                if pending.len() == limit {
                    piece(std::mem::take(&mut pending));
                }
                address = address.saturating_add(read as u64);
                len -= read as u64;
            }
        }
        if !pending.is_empty() {
            piece(pending);
        }
    }
}

impl Spans {
    /// One buffer.
    pub(super) fn one(address: u64, len: u64) -> Self {
        Self(vec![Span { address, len }])
    }

    /// How many bytes they have room for.
    pub(super) fn len(&self) -> u64 {
        self.0
            .iter()
            .fold(0, |sum, span| sum.saturating_add(span.len))
    }

    /// The first `len` bytes of them.
    pub(super) fn first(mut self, mut len: u64) -> Self {
        self.0.retain_mut(|span| {
            span.len = span.len.min(len);
            len -= span.len;
            span.len > 0
        });
        self
    }

    /// These, then those.
    pub(super) fn chain(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This process may read itself, through the same call.
    fn own() -> Memory {
        Memory::of(Tid(std::process::id().cast_signed()))
    }

    fn address<T: ?Sized>(value: &T) -> u64 {
        std::ptr::from_ref(value).addr() as u64
    }

    fn content(spans: &Spans, limit: usize) -> Vec<Vec<u8>> {
        let mut pieces = Vec::new();
        own().read_spans(spans, limit, |piece| pieces.push(piece));
        pieces
    }

    #[test]
    fn pieces_are_as_large_as_allowed_and_cross_buffers() {
        let (one, two) = (*b"abcde", *b"fgh");
        let iov = [address(&one), 5, 0, 0, address(&two), 3];
        let spans = own().vector(address(&iov), 3).unwrap();
        assert_eq!(spans.len(), 8);
        assert_eq!(content(&spans, 100), [b"abcdefgh"]);
        assert_eq!(content(&spans, 4), [b"abcd", b"efgh"]);
        assert_eq!(content(&spans.clone().first(6), 4), [&b"abcd"[..], b"ef"]);
        assert_eq!(content(&spans.first(0), 4), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn a_bad_pointer_ends_the_content() {
        let good = *b"abc";
        let spans = Spans::one(address(&good), 3).chain(Spans::one(16, 3));
        assert_eq!(content(&spans, 100), [b"abc"]);
        assert_eq!(own().vector(16, 1), None);
        assert_eq!(own().messages(16, 1), None);
        assert_eq!(own().pair(16), None);
    }

    #[test]
    fn messages_have_buffers_and_counts() {
        let (one, two, name) = (*b"abcde", *b"fgh", [9_u8; 16]);
        let iov = [address(&one), 5, address(&two), 3];
        let garbage = 0xdead_beef_0000_0000;
        let mut messages = [0; 16];
        messages[..4].copy_from_slice(&[address(&name), garbage | 16, address(&iov), 2]);
        messages[7] = garbage | 7;
        messages[10..12].copy_from_slice(&[address(&iov[2]), 1]);
        messages[15] = 2;
        let (spans, to) = own().message(address(&messages)).unwrap();
        assert_eq!((spans.len(), to), (8, (address(&name), 16)));
        let read = own().messages(address(&messages), 2).unwrap();
        let sizes: Vec<_> = read
            .iter()
            .map(|(spans, moved)| (spans.len(), *moved))
            .collect();
        assert_eq!(sizes, [(8, 7), (3, 2)]);
    }

    #[test]
    fn a_pair_is_two_descriptors() {
        let fds = [7_i32, -1];
        assert_eq!(own().pair(address(&fds)), Some([7, -1]));
    }
}
