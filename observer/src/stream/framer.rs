//! One direction's framer.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};

use crate::capture::GapReason;

/// How much of a line that is no frame is kept to show it, in bytes.
pub const HEAD: usize = 4096;

/// A part of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A complete line.
    Line {
        /// Position of its first byte.
        offset: u64,
        /// Its size with its `\n`.
        bytes: u64,
        /// The line without its `\n`.
        text: Bytes,
        /// The reason of the gap right before it, if there was one: then this may be only the
        /// end of a line.
        after: Option<GapReason>,
    },
    /// A line longer than the limit.
    Oversized {
        /// Position of its first byte.
        offset: u64,
        /// Its size, with its `\n` unless the stream ended.
        bytes: u64,
        /// Its first bytes, at most [`HEAD`].
        head: Bytes,
    },
    /// The stream ended in the middle of a line.
    Unterminated {
        /// Position of its first byte.
        offset: u64,
        /// Its size.
        bytes: u64,
        /// Its first bytes, at most [`HEAD`].
        head: Bytes,
    },
    /// Bytes that are in no line: those that went by unseen, and the beginning of the line that
    /// they tore.
    Gap {
        /// Position of the first such byte.
        offset: u64,
        /// How many; `None` where nobody knows.
        bytes: Option<u64>,
        /// Why.
        reason: GapReason,
    },
}

/// Cuts one direction's bytes into lines.
///
/// Feed it with [`push`](Self::push), [`gap`](Self::gap) and [`eof`](Self::eof), then take what
/// there is with [`poll`](Self::poll). A line inside one chunk is a slice of it; a line in several
/// is copied once, and each byte is searched once. Memory is bounded by the limit.
///
/// Offsets may be anything: a chunk behind the position reached is cut or dropped, a chunk ahead
/// of it leaves a gap. A gap is put out at once, together with the line that it tore. The line
/// after it is marked ([`Piece::Line::after`]); only who understands lines can tell whether it is
/// whole.
#[derive(Debug)]
pub struct Framer {
    limit: usize,
    input: VecDeque<Input>,
    /// What is left of the chunk that is being cut; its first byte is at `next`.
    chunk: Bytes,
    /// Position after the last byte that was cut.
    next: u64,
    /// Where the line in progress began.
    start: u64,
    /// The line in progress, or its head once it is oversized.
    partial: BytesMut,
    oversized: bool,
    /// The gap right before the line in progress.
    after: Option<GapReason>,
    /// The last gap was of unknown length: the next chunk says where the stream is.
    adrift: bool,
    /// Nothing has come yet.
    fresh: bool,
}

#[derive(Debug)]
enum Input {
    Chunk {
        offset: u64,
        bytes: Bytes,
    },
    Gap {
        offset: u64,
        bytes: Option<u64>,
        reason: GapReason,
    },
    Eof,
}

impl Framer {
    /// A framer at position 0 that takes lines of up to `limit` bytes, without the `\n`.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            input: VecDeque::new(),
            chunk: Bytes::new(),
            next: 0,
            start: 0,
            partial: BytesMut::new(),
            oversized: false,
            after: None,
            adrift: false,
            fresh: true,
        }
    }

    /// Bytes whose first is at `offset`.
    pub fn push(&mut self, offset: u64, bytes: Bytes) {
        self.input.push_back(Input::Chunk { offset, bytes });
    }

    /// Bytes from `offset` on went by unseen; `None`: nobody knows how many.
    pub fn gap(&mut self, offset: u64, bytes: Option<u64>, reason: GapReason) {
        self.input.push_back(Input::Gap {
            offset,
            bytes,
            reason,
        });
    }

    /// The stream ended. More may come all the same (a named pipe is opened again).
    pub fn eof(&mut self) {
        self.input.push_back(Input::Eof);
    }

    /// The next piece, as far as the input goes.
    pub fn poll(&mut self) -> Option<Piece> {
        loop {
            if !self.chunk.is_empty() {
                match self.cut() {
                    None => continue,
                    piece => return piece,
                }
            }
            let piece = match self.input.pop_front()? {
                Input::Chunk { offset, bytes } => self.accept(offset, bytes),
                Input::Gap {
                    offset,
                    bytes,
                    reason,
                } => self.lose(offset, bytes, reason),
                Input::Eof => self.end(),
            };
            if piece.is_some() {
                return piece;
            }
        }
    }

    /// Whether nothing has come yet.
    pub const fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// Position after the last byte that was seen, or is known to have gone by unseen.
    pub const fn position(&self) -> u64 {
        self.next
    }

    /// The line in progress: its size so far.
    pub const fn pending(&self) -> u64 {
        self.next - self.start
    }

    /// The line in progress: what is held of it; only its head where it is oversized.
    pub fn partial(&self) -> &[u8] {
        &self.partial
    }

    /// Whether the line in progress comes right after a gap.
    pub const fn is_torn(&self) -> bool {
        self.after.is_some()
    }

    /// Takes the chunk up to its first newline, or whole.
    fn cut(&mut self) -> Option<Piece> {
        let Some(newline) = memchr::memchr(b'\n', &self.chunk) else {
            let rest = std::mem::take(&mut self.chunk);
            self.next = self.next.saturating_add(rest.len() as u64);
            self.append(&rest);
            return None;
        };
        let mut line = self.chunk.split_to(newline + 1);
        line.truncate(newline);
        self.next = self.next.saturating_add(newline as u64 + 1);
        if line.len() > self.limit || !self.partial.is_empty() || self.oversized {
            self.append(&line);
            line = Bytes::new();
        }
        Some(self.finish_line(line, true))
    }

    fn append(&mut self, bytes: &[u8]) {
        if !self.oversized && self.partial.len() + bytes.len() > self.limit {
            self.oversized = true;
            let mut head = BytesMut::with_capacity(HEAD);
            head.extend_from_slice(&self.partial[..self.partial.len().min(HEAD)]);
            self.partial = head;
        }
        let room = if self.oversized {
            HEAD.saturating_sub(self.partial.len())
        } else {
            usize::MAX
        };
        self.partial
            .extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// The line in progress is over. `line` is its text where nothing of it was held.
    fn finish_line(&mut self, line: Bytes, terminated: bool) -> Piece {
        let (offset, bytes) = (self.start, self.pending());
        self.start = self.next;
        let partial = std::mem::take(&mut self.partial).freeze();
        let text = if line.is_empty() { partial } else { line };
        let head = text.slice(..text.len().min(HEAD));
        match (
            self.after.take(),
            std::mem::take(&mut self.oversized),
            terminated,
        ) {
            (after, false, true) => Piece::Line {
                offset,
                bytes,
                text,
                after,
            },
            (Some(reason), _, _) => Piece::Gap {
                offset,
                bytes: Some(bytes),
                reason,
            },
            (None, true, _) => Piece::Oversized {
                offset,
                bytes,
                head,
            },
            (None, false, false) => Piece::Unterminated {
                offset,
                bytes,
                head,
            },
        }
    }

    /// Makes a chunk the current one. The gap before it, if the backend told of none.
    fn accept(&mut self, offset: u64, mut bytes: Bytes) -> Option<Piece> {
        let seen = usize::try_from(self.next.saturating_sub(offset)).unwrap_or(usize::MAX);
        if seen >= bytes.len() {
            return None;
        }
        bytes.advance(seen);
        self.chunk = bytes;
        let hole = offset > self.next;
        let fresh = std::mem::replace(&mut self.fresh, false);
        if std::mem::replace(&mut self.adrift, false) && hole {
            (self.next, self.start) = (offset, offset);
        } else if hole {
            let reason = if fresh {
                GapReason::MidStream
            } else {
                GapReason::RingFull
            };
            return Some(self.skip_to(offset, reason));
        }
        None
    }

    fn lose(&mut self, offset: u64, bytes: Option<u64>, reason: GapReason) -> Option<Piece> {
        let known = bytes.map(|bytes| offset.saturating_add(bytes));
        let nothing_new = match known {
            Some(end) => end <= self.next,
            None => self.adrift,
        };
        if nothing_new {
            return None;
        }
        if std::mem::replace(&mut self.adrift, known.is_none()) {
            self.next = self.next.max(offset);
            self.start = self.next;
        }
        self.fresh = false;
        let gap = self.skip_to(known.unwrap_or(self.next.max(offset)), reason);
        Some(match (gap, known) {
            (Piece::Gap { offset, reason, .. }, None) => Piece::Gap {
                offset,
                bytes: None,
                reason,
            },
            (gap, _) => gap,
        })
    }

    /// Gives up everything from the beginning of the line in progress to `position`.
    fn skip_to(&mut self, position: u64, reason: GapReason) -> Piece {
        let offset = self.start;
        self.partial = BytesMut::new();
        self.oversized = false;
        self.after = Some(reason);
        (self.next, self.start) = (position, position);
        Piece::Gap {
            offset,
            bytes: Some(position - offset),
            reason,
        }
    }

    fn end(&mut self) -> Option<Piece> {
        (self.pending() > 0).then(|| self.finish_line(Bytes::new(), false))
    }
}

#[cfg(test)]
mod tests;
