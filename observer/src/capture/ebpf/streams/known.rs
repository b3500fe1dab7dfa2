//! One stream: what arrived of it, what is held back, what is missing.

use std::collections::BTreeMap;

use bytes::Bytes;
use observer_ebpf::wire::{StreamKey, Transfer, loss};

use crate::capture::{CaptureEvent, Captured, GapReason, Pid, StreamId, Timestamp};

use super::name::{id, key};

/// How many bytes of one stream may wait.
const HELD_BYTES: usize = 16 << 20;

/// A stream. Positions are those of the events, unless they are called the kernel's.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) id: StreamId,
    pub(super) generation: u32,
    /// The kernel's offset of the next piece.
    pub(super) next: u64,
    /// From the kernel's count of written bytes to positions: what was written unseen.
    pub(super) written_base: u64,
    /// The same for its count of read bytes.
    pub(super) read_base: u64,
    /// Of the bytes that the kernel has lost, those that a gap already tells of.
    pub(super) lost: u64,
    /// Pieces that came before an earlier one, by the kernel's offset.
    pub(super) held: BTreeMap<u64, Piece>,
    held_bytes: usize,
    pub(super) held_since: Timestamp,
    /// How far it was read.
    pub(super) read: u64,
    /// Since when a reader is ahead of the writes.
    pub(super) ahead_since: Option<Timestamp>,
    /// How many bytes may have waited in it before the probe came, and were not met yet.
    pub(super) waiting: u64,
}

/// Bytes that were written.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) at: Timestamp,
    pub(super) len: u64,
    /// `None`: moved by a call that shows none.
    pub(super) bytes: Option<Bytes>,
    pub(super) writer: Pid,
    pub(super) fd: i32,
    pub(super) lost: u64,
    pub(super) loss: u32,
}

impl Piece {
    /// How much memory it holds.
    fn size(&self) -> usize {
        self.bytes.as_ref().map_or(0, Bytes::len)
    }
}

impl Known {
    pub(super) fn new(key: StreamKey, generation: u32) -> Self {
        Self {
            id: id(key),
            generation,
            next: 0,
            written_base: 0,
            read_base: 0,
            lost: 0,
            held: BTreeMap::new(),
            held_bytes: 0,
            held_since: Timestamp::ZERO,
            read: 0,
            ahead_since: None,
            waiting: 0,
        }
    }

    /// The probe forgot the stream and met it again: nobody knows what went by in between.
    pub(super) fn restart(&mut self, at: Timestamp, generation: u32, out: &mut Vec<Captured>) {
        self.release(true, at, out);
        let position = self.written_base + self.next;
        let event = CaptureEvent::Gap {
            stream: self.id,
            offset: position,
            bytes: None,
            reason: GapReason::MidStream,
        };
        out.push(Captured { at, event });
        *self = Self {
            generation,
            written_base: position,
            read_base: position,
            read: position,
            ..Self::new(key(self.id), generation)
        };
    }

    pub(super) fn accept(&mut self, offset: u64, piece: Piece, out: &mut Vec<Captured>) {
        if offset < self.next {
            return; // A gap already tells of it: it came after all patience.
        }
        if self.held.is_empty() {
            self.held_since = piece.at;
        }
        let at = piece.at;
        self.held_bytes += piece.size();
        if let Some(twin) = self.held.insert(offset, piece) {
            self.held_bytes -= twin.size();
        }
        let too_much = self.held_bytes > HELD_BYTES;
        self.release(too_much, at, out);
    }

    /// Hands out the pieces that are next, and those after holes that are known to be lost, or
    /// after any hole where `all` is set.
    pub(super) fn release(&mut self, all: bool, now: Timestamp, out: &mut Vec<Captured>) {
        while let Some(entry) = self.held.first_entry() {
            let offset = *entry.key();
            let Some(hole) = offset.checked_sub(self.next) else {
                // It overlaps another piece, which the probe never makes.
                self.held_bytes -= entry.remove().size();
                continue;
            };
            let newly_lost = entry.get().lost.saturating_sub(self.lost);
            if hole > 0 {
                if !all && newly_lost < hole {
                    break;
                }
                let why = reason(entry.get().loss);
                out.push(self.gap(now, self.next, hole, why));
                self.lost += hole;
                self.next = offset;
                continue;
            }
            let piece = entry.remove();
            self.held_bytes -= piece.size();
            self.held_since = now;
            self.hand_out(piece, out);
        }
        self.note_reader(now);
    }

    fn hand_out(&mut self, piece: Piece, out: &mut Vec<Captured>) {
        let offset = self.next;
        self.next += piece.len;
        let Piece {
            at,
            len,
            bytes,
            writer,
            fd,
            ..
        } = piece;
        out.push(match bytes {
            Some(bytes) => Captured {
                at,
                event: CaptureEvent::Chunk {
                    stream: self.id,
                    offset: self.written_base + offset,
                    bytes,
                    writer,
                    fd: Some(fd),
                },
            },
            None => self.gap(at, offset, len, GapReason::UnsupportedSyscall),
        });
    }

    /// At the end of the stream: what was read and never arrived will not come any more.
    pub(super) fn catch_up(&mut self, at: Timestamp, transfer: &Transfer, out: &mut Vec<Captured>) {
        let arrived = self.written_base + self.next;
        let missing = (self.read_base + transfer.offset).saturating_sub(arrived);
        if missing == 0 {
            return;
        }
        if transfer.lost.saturating_sub(self.lost) >= missing {
            out.push(self.gap(at, self.next, missing, reason(transfer.loss)));
            self.lost += missing;
            self.next += missing;
        } else {
            self.skip_unseen(at, missing, out);
        }
        self.ahead_since = None;
    }

    /// Bytes were read that nobody was seen to write.
    pub(super) fn skip_unseen(&mut self, at: Timestamp, bytes: u64, out: &mut Vec<Captured>) {
        let waited = bytes <= self.waiting;
        self.waiting -= bytes.min(self.waiting);
        let why = match waited {
            true => GapReason::MidStream,
            false => GapReason::UnsupportedSyscall,
        };
        out.push(self.gap(at, self.next, bytes, why));
        self.written_base += bytes;
    }

    /// A gap at a kernel's offset.
    pub(super) fn gap(
        &self,
        at: Timestamp,
        offset: u64,
        bytes: u64,
        reason: GapReason,
    ) -> Captured {
        let event = CaptureEvent::Gap {
            stream: self.id,
            offset: self.written_base + offset,
            bytes: Some(bytes),
            reason,
        };
        Captured { at, event }
    }

    pub(super) fn note_reader(&mut self, now: Timestamp) {
        if self.read <= self.written_base + self.next {
            self.ahead_since = None;
        } else {
            self.ahead_since.get_or_insert(now);
        }
    }
}

pub(super) fn reason(why: u32) -> GapReason {
    if why == loss::UNREADABLE {
        GapReason::Unreadable
    } else {
        GapReason::RingFull
    }
}
