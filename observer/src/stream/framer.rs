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
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMIT: usize = 64;

    fn pieces(framer: &mut Framer) -> Vec<Piece> {
        std::iter::from_fn(|| framer.poll()).collect()
    }

    fn line(offset: u64, text: &'static str) -> Piece {
        let bytes = text.len() as u64 + 1;
        Piece::Line {
            offset,
            bytes,
            text: Bytes::from_static(text.as_bytes()),
            after: None,
        }
    }

    fn gap(offset: u64, bytes: impl Into<Option<u64>>, reason: GapReason) -> Piece {
        Piece::Gap {
            offset,
            bytes: bytes.into(),
            reason,
        }
    }

    fn torn(piece: Piece, reason: GapReason) -> Piece {
        let Piece::Line {
            offset,
            bytes,
            text,
            ..
        } = piece
        else {
            panic!("no line: {piece:?}")
        };
        Piece::Line {
            offset,
            bytes,
            text,
            after: Some(reason),
        }
    }

    fn push(framer: &mut Framer, offset: u64, text: &'static str) {
        framer.push(offset, Bytes::from_static(text.as_bytes()));
    }

    /// The extent of a piece, for those whose size is known.
    fn extent(piece: &Piece) -> (u64, u64) {
        match *piece {
            Piece::Line { offset, bytes, .. }
            | Piece::Oversized { offset, bytes, .. }
            | Piece::Unterminated { offset, bytes, .. } => (offset, bytes),
            Piece::Gap { offset, bytes, .. } => (offset, bytes.unwrap_or(0)),
        }
    }

    #[test]
    fn lines_over_chunks_and_in_chunks() {
        let mut framer = Framer::new(LIMIT);
        push(&mut framer, 0, "one\ntwo\n\nth");
        push(&mut framer, 11, "re");
        push(&mut framer, 13, "e\r\n");
        let expected = [
            line(0, "one"),
            line(4, "two"),
            line(8, ""),
            line(9, "three\r"),
        ];
        assert_eq!(pieces(&mut framer), expected);
        framer.eof();
        assert_eq!(pieces(&mut framer), []);
        push(&mut framer, 16, "x");
        framer.eof();
        let head = Bytes::from_static(b"x");
        assert_eq!(
            pieces(&mut framer),
            [Piece::Unterminated {
                offset: 16,
                bytes: 1,
                head
            }]
        );
    }

    #[test]
    fn a_line_inside_a_chunk_is_not_copied() {
        let chunk = Bytes::from_static(b"one\ntwo\n");
        let mut framer = Framer::new(LIMIT);
        framer.push(0, chunk.clone());
        let [_, Piece::Line { text, .. }] = &pieces(&mut framer)[..] else {
            panic!("two lines")
        };
        assert_eq!(text.as_ptr(), chunk[4..].as_ptr());
    }

    #[test]
    fn a_gap_takes_the_torn_line_with_it_and_marks_the_next() {
        let mut framer = Framer::new(LIMIT);
        push(&mut framer, 0, "one\ntw");
        framer.gap(6, Some(10), GapReason::RingFull);
        push(&mut framer, 16, "ail\nfour\n");
        let tail = torn(line(16, "ail"), GapReason::RingFull);
        let expected = [
            line(0, "one"),
            gap(4, 12, GapReason::RingFull),
            tail,
            line(20, "four"),
        ];
        assert_eq!(pieces(&mut framer), expected);
    }

    #[test]
    fn a_hole_nobody_told_of_is_a_gap() {
        let mut framer = Framer::new(LIMIT);
        push(&mut framer, 5, "x\n");
        push(&mut framer, 9, "y\n");
        let expected = [
            gap(0, 5, GapReason::MidStream),
            torn(line(5, "x"), GapReason::MidStream),
            gap(7, 2, GapReason::RingFull),
            torn(line(9, "y"), GapReason::RingFull),
        ];
        assert_eq!(pieces(&mut framer), expected);
    }

    #[test]
    fn a_gap_of_unknown_length_ends_where_the_next_chunk_is() {
        let mut framer = Framer::new(LIMIT);
        framer.gap(0, None, GapReason::MidStream);
        framer.gap(0, None, GapReason::MidStream);
        push(&mut framer, 1000, "x\ny\n");
        let tail = torn(line(1000, "x"), GapReason::MidStream);
        assert_eq!(
            pieces(&mut framer),
            [gap(0, None, GapReason::MidStream), tail, line(1002, "y")]
        );
    }

    #[test]
    fn what_was_seen_is_not_seen_again() {
        let mut framer = Framer::new(LIMIT);
        push(&mut framer, 0, "one\nt");
        push(&mut framer, 2, "e\ntwo\n");
        push(&mut framer, 0, "one\n");
        framer.gap(3, Some(2), GapReason::Unreadable);
        assert_eq!(pieces(&mut framer), [line(0, "one"), line(4, "two")]);
    }

    #[test]
    fn a_line_without_end_costs_no_more_than_the_limit() {
        let mut framer = Framer::new(LIMIT);
        let chunk = Bytes::from(vec![b'a'; 10_000]);
        for index in 0..1000 {
            framer.push(index * 10_000, chunk.clone());
            assert_eq!(framer.poll(), None);
            assert!(
                framer.partial.capacity() <= 2 * HEAD,
                "held: {}",
                framer.partial.capacity()
            );
        }
        push(&mut framer, 10_000_000, "\nok\n");
        let head = Bytes::from(vec![b'a'; HEAD]);
        let oversized = Piece::Oversized {
            offset: 0,
            bytes: 10_000_001,
            head,
        };
        assert_eq!(pieces(&mut framer), [oversized, line(10_000_001, "ok")]);
    }

    #[test]
    fn the_limit_is_inclusive() {
        for (length, fits) in [(LIMIT, true), (LIMIT + 1, false)] {
            for split in [0, 1, LIMIT, length] {
                let text = vec![b'a'; length];
                let mut framer = Framer::new(LIMIT);
                framer.push(0, Bytes::copy_from_slice(&text[..split]));
                framer.push(split as u64, Bytes::from([&text[split..], b"\n"].concat()));
                let got = pieces(&mut framer);
                assert_eq!(
                    matches!(got[..], [Piece::Line { .. }]),
                    fits,
                    "{length} {split}"
                );
                assert_eq!(
                    matches!(got[..], [Piece::Oversized { .. }]),
                    !fits,
                    "{length} {split}"
                );
            }
        }
    }

    #[test]
    fn offsets_at_the_end_of_the_world_do_not_overflow() {
        let mut framer = Framer::new(LIMIT);
        push(&mut framer, u64::MAX, "a\nb");
        framer.gap(u64::MAX - 1, Some(u64::MAX), GapReason::RingFull);
        framer.gap(u64::MAX, None, GapReason::RingFull);
        push(&mut framer, u64::MAX - 2, "a\nb\n");
        framer.eof();
        pieces(&mut framer);
    }

    fn text() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![4 => any::<u8>(), 1 => Just(b'\n'), 1 => Just(b'a')];
        prop::collection::vec(byte, 0..400)
    }

    /// Pushes a text in pieces that end at the cuts.
    fn split(framer: &mut Framer, text: &[u8], cuts: &[prop::sample::Index]) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        for pair in cuts.windows(2) {
            framer.push(
                pair[0] as u64,
                Bytes::copy_from_slice(&text[pair[0]..pair[1]]),
            );
        }
    }

    fn cuts() -> impl Strategy<Value = Vec<prop::sample::Index>> {
        prop::collection::vec(any::<prop::sample::Index>(), 0..12)
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_pieces(text in text(), cuts in cuts()) {
            let mut whole = Framer::new(LIMIT);
            whole.push(0, Bytes::copy_from_slice(&text));
            whole.eof();
            let mut parts = Framer::new(LIMIT);
            split(&mut parts, &text, &cuts);
            parts.eof();
            let expected = pieces(&mut whole);
            prop_assert_eq!(&pieces(&mut parts), &expected);
            let lines = text.split(|&byte| byte == b'\n').count();
            let ended = text.last().is_none_or(|&byte| byte == b'\n');
            prop_assert_eq!(expected.len(), lines - usize::from(ended));
        }

        #[test]
        fn pieces_tile_the_stream(
            events in prop::collection::vec((0..4u8, 0..600u64, text(), 0..80u64), 0..12)
        ) {
            let mut framer = Framer::new(LIMIT);
            let mut got = Vec::new();
            for (kind, offset, text, bytes) in events {
                match kind {
                    0 | 1 => framer.push(offset, text.into()),
                    2 => framer.gap(offset, Some(bytes), GapReason::RingFull),
                    _ => framer.eof(),
                }
                got.extend(pieces(&mut framer));
            }
            let mut position = 0;
            for piece in &got {
                let (offset, bytes) = extent(piece);
                prop_assert_eq!(offset, position, "{:?}", got);
                position += bytes;
            }
            prop_assert_eq!(position, framer.start);
        }

        #[test]
        fn a_gap_changes_only_the_lines_it_touches(
            text in text(), from in any::<prop::sample::Index>(), length in 1..60usize,
        ) {
            let from = from.index(text.len() + 1);
            let to = (from + length).min(text.len());
            let mut whole = Framer::new(LIMIT);
            whole.push(0, Bytes::copy_from_slice(&text));
            let mut lossy = Framer::new(LIMIT);
            lossy.push(0, Bytes::copy_from_slice(&text[..from]));
            lossy.gap(from as u64, Some((to - from) as u64), GapReason::RingFull);
            lossy.push(to as u64, Bytes::copy_from_slice(&text[to..]));
            let whole = pieces(&mut whole);
            for piece in pieces(&mut lossy) {
                let certain = matches!(
                    piece, Piece::Line { after: None, .. } | Piece::Oversized { .. }
                );
                prop_assert!(!certain || whole.contains(&piece), "{:?} of {:?}", piece, whole);
            }
        }
    }
}
