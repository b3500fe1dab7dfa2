//! From the probe's records about streams to chunks and gaps, in order. Pure.
//!
//! Owns where each stream stands. Two CPUs may put the pieces of two writes into the ring in
//! another order than their offsets; a jump in the offsets may be that, or a loss. The records
//! say how much of a stream was lost so far, which tells the two apart at once; where it does
//! not, a piece waits for [`PATIENCE`] before the hole before it is called a gap.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use bytes::Bytes;
use observer_ebpf::wire::{StreamKey, StreamState, Transfer, loss, stream_kind};

use crate::capture::{CaptureEvent, Captured, GapReason, Pid, StreamId, StreamKind, Timestamp};

/// How long a piece waits for an earlier one that another CPU may still be copying.
pub(super) const PATIENCE: Duration = Duration::from_millis(100);

/// How long a reader may be ahead of all known writes before they count as moved unseen.
const UNSEEN_AFTER: Duration = Duration::from_secs(1);

/// How many bytes of one stream may wait.
const HELD_BYTES: usize = 16 << 20;

/// All streams that the probe has reported.
#[derive(Debug, Default)]
pub(super) struct Streams {
    known: HashMap<StreamKey, Known>,
    /// Those that the pipeline has given up; records of theirs may still be under way.
    given_up: HashSet<StreamKey>,
}

/// A stream. Positions are those of the events, unless they are called the kernel's.
#[derive(Debug)]
struct Known {
    id: StreamId,
    generation: u32,
    /// The kernel's offset of the next piece.
    next: u64,
    /// From the kernel's count of written bytes to positions: what was written unseen.
    written_base: u64,
    /// The same for its count of read bytes.
    read_base: u64,
    /// Of the bytes that the kernel has lost, those that a gap already tells of.
    lost: u64,
    /// Pieces that came before an earlier one, by the kernel's offset.
    held: BTreeMap<u64, Piece>,
    held_bytes: usize,
    held_since: Timestamp,
    /// How far it was read.
    read: u64,
    /// Since when a reader is ahead of the writes.
    ahead_since: Option<Timestamp>,
}

/// Bytes that were written.
#[derive(Debug)]
struct Piece {
    at: Timestamp,
    len: u64,
    /// `None`: moved by a call that shows none.
    bytes: Option<Bytes>,
    writer: Pid,
    fd: i32,
    lost: u64,
    loss: u32,
}

impl Streams {
    /// Bytes were written; `None` where the call shows none.
    pub(super) fn written(
        &mut self,
        at: Timestamp,
        transfer: &Transfer,
        bytes: Option<Bytes>,
        out: &mut Vec<Captured>,
    ) {
        let piece = Piece {
            at,
            len: bytes.as_ref().map_or(u64::from(transfer.header.len), |bytes| bytes.len() as u64),
            bytes,
            writer: Pid(transfer.pid),
            fd: transfer.fd,
            lost: transfer.lost,
            loss: transfer.loss,
        };
        self.stream(at, transfer, out).accept(transfer.offset, piece, out);
    }

    /// Bytes were read.
    pub(super) fn read(&mut self, at: Timestamp, transfer: &Transfer, out: &mut Vec<Captured>) {
        let known = self.stream(at, transfer, out);
        let end = known.read_base + transfer.offset;
        known.read = known.read.max(end);
        known.note_reader(at);
        let event = CaptureEvent::Read {
            stream: known.id,
            end,
            reader: Pid(transfer.pid),
            fd: Some(transfer.fd),
        };
        out.push(Captured { at, event });
    }

    /// A reader met the end of the stream.
    pub(super) fn ended(&mut self, at: Timestamp, transfer: &Transfer, out: &mut Vec<Captured>) {
        let known = self.stream(at, transfer, out);
        // All that was written was read, so nothing can be under way any more.
        known.release(true, at, out);
        known.catch_up(at, transfer, out);
        out.push(Captured { at, event: CaptureEvent::Eof { stream: known.id } });
    }

    /// A write failed for want of a reader.
    pub(super) fn refused(&mut self, at: Timestamp, transfer: &Transfer, out: &mut Vec<Captured>) {
        let stream = self.stream(at, transfer, out).id;
        let event = CaptureEvent::Refused { stream, writer: Pid(transfer.pid) };
        out.push(Captured { at, event });
    }

    /// From now on says nothing about a stream.
    pub(super) fn give_up(&mut self, key: StreamKey) {
        self.known.remove(&key);
        self.given_up.insert(key);
    }

    /// Drops all knowledge of a stream.
    pub(super) fn forget(&mut self, key: StreamKey) {
        self.known.remove(&key);
        self.given_up.remove(&key);
    }

    /// Whether it says nothing about a stream.
    pub(super) fn has_given_up(&self, key: StreamKey) -> bool {
        self.given_up.contains(&key)
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    pub(super) fn poll_timeout(&self) -> Option<Timestamp> {
        let holding = self.known.values().filter(|known| !known.held.is_empty());
        holding.map(|known| known.held_since + PATIENCE).min()
    }

    /// Stops waiting for pieces that must have been lost.
    pub(super) fn handle_timeout(&mut self, now: Timestamp, out: &mut Vec<Captured>) {
        for known in self.known.values_mut() {
            if !known.held.is_empty() && now >= known.held_since + PATIENCE {
                known.release(true, now, out);
            }
        }
    }

    /// The streams whose reader has been ahead of the writes for long.
    pub(super) fn suspects(&self, now: Timestamp) -> Vec<StreamKey> {
        let ahead = self.known.iter().filter(|(_, known)| {
            known.ahead_since.is_some_and(|since| now.since(since) >= UNSEEN_AFTER)
        });
        ahead.map(|(&key, _)| key).collect()
    }

    /// Judges a suspect by what the kernel knows of it: what was read and never written was
    /// moved by calls that the probe does not see (`io_uring`), or by a process out of scope.
    pub(super) fn judge(
        &mut self,
        now: Timestamp,
        key: StreamKey,
        state: &StreamState,
        out: &mut Vec<Captured>,
    ) {
        let Some(known) = self.known.get_mut(&key) else { return };
        known.ahead_since = None;
        if state.generation != known.generation || !known.held.is_empty() {
            return;
        }
        let written = known.written_base + state.written;
        let unseen = (known.read_base + state.read).saturating_sub(written);
        // Where the kernel has written more than came, the end is lost, and reconciled elsewhere.
        if unseen > 0 && state.written == known.next {
            out.push(known.gap(now, known.next, unseen, GapReason::UnsupportedSyscall));
            known.written_base += unseen;
        }
    }

    /// Compares what arrived of a stream with what the kernel has counted: finds losses that no
    /// later piece tells of. `state` must be older than all records that were read since.
    pub(super) fn reconcile(
        &mut self,
        now: Timestamp,
        key: StreamKey,
        state: &StreamState,
        out: &mut Vec<Captured>,
    ) {
        if state.lost == 0 {
            return;
        }
        let known = self.known.entry(key).or_insert_with(|| Known::new(key, state.generation));
        if known.generation != state.generation || state.written <= known.next {
            return;
        }
        known.release(true, now, out);
        if let Some(missing) = state.written.checked_sub(known.next).filter(|&missing| missing > 0) {
            out.push(known.gap(now, known.next, missing, reason(state.loss)));
            known.next = state.written;
            known.lost += missing;
        }
    }

    /// The stream of a record, as the record's generation knows it.
    fn stream(
        &mut self,
        at: Timestamp,
        transfer: &Transfer,
        out: &mut Vec<Captured>,
    ) -> &mut Known {
        let generation = transfer.generation;
        let known = self
            .known
            .entry(transfer.stream)
            .or_insert_with(|| Known::new(transfer.stream, generation));
        if known.generation != generation {
            known.restart(at, generation, out);
        }
        known
    }
}

impl Known {
    fn new(key: StreamKey, generation: u32) -> Self {
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
        }
    }

    /// The probe forgot the stream and met it again: nobody knows what went by in between.
    fn restart(&mut self, at: Timestamp, generation: u32, out: &mut Vec<Captured>) {
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

    fn accept(&mut self, offset: u64, piece: Piece, out: &mut Vec<Captured>) {
        if offset < self.next {
            return; // A gap already tells of it: it came after all patience.
        }
        if self.held.is_empty() {
            self.held_since = piece.at;
        }
        let at = piece.at;
        self.held_bytes += piece.bytes.as_ref().map_or(0, Bytes::len);
        self.held.insert(offset, piece);
        let too_much = self.held_bytes > HELD_BYTES;
        self.release(too_much, at, out);
    }

    /// Hands out the pieces that are next, and those after holes that are known to be lost, or
    /// after any hole where `all` is set.
    fn release(&mut self, all: bool, now: Timestamp, out: &mut Vec<Captured>) {
        while let Some(entry) = self.held.first_entry() {
            let offset = *entry.key();
            let hole = offset - self.next;
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
            self.held_bytes -= piece.bytes.as_ref().map_or(0, Bytes::len);
            self.held_since = now;
            self.hand_out(piece, out);
        }
        self.note_reader(now);
    }

    fn hand_out(&mut self, piece: Piece, out: &mut Vec<Captured>) {
        let offset = self.next;
        self.next += piece.len;
        let Piece { at, len, bytes, writer, fd, .. } = piece;
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
    fn catch_up(&mut self, at: Timestamp, transfer: &Transfer, out: &mut Vec<Captured>) {
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
            out.push(self.gap(at, self.next, missing, GapReason::UnsupportedSyscall));
            self.written_base += missing;
        }
        self.ahead_since = None;
    }

    /// A gap at a kernel's offset.
    fn gap(&self, at: Timestamp, offset: u64, bytes: u64, reason: GapReason) -> Captured {
        let event = CaptureEvent::Gap {
            stream: self.id,
            offset: self.written_base + offset,
            bytes: Some(bytes),
            reason,
        };
        Captured { at, event }
    }

    fn note_reader(&mut self, now: Timestamp) {
        if self.read <= self.written_base + self.next {
            self.ahead_since = None;
        } else {
            self.ahead_since.get_or_insert(now);
        }
    }
}

fn reason(why: u32) -> GapReason {
    if why == loss::UNREADABLE { GapReason::Unreadable } else { GapReason::RingFull }
}

/// The stream's name in events.
fn id(key: StreamKey) -> StreamId {
    let kind =
        if key.kind == stream_kind::SOCKET { StreamKind::Socket } else { StreamKind::Pipe };
    StreamId { kind, object: key.object, scope: device_to_user(key.scope) }
}

/// The stream's name in the probe's maps.
pub(super) fn key(stream: StreamId) -> StreamKey {
    let kind = match stream.kind {
        StreamKind::Socket => stream_kind::SOCKET,
        StreamKind::Pipe | StreamKind::Relay => stream_kind::PIPE,
    };
    StreamKey { object: stream.object, scope: device_to_kernel(stream.scope), kind }
}

/// From the kernel's own form of a device number (`major << 20 | minor`) to that of `st_dev`
/// (`new_encode_dev` of `include/linux/kdev_t.h`).
const fn device_to_user(device: u32) -> u32 {
    let (major, minor) = (device >> 20, device & 0xf_ffff);
    (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12)
}

/// The way back.
const fn device_to_kernel(device: u32) -> u32 {
    let major = (device >> 8) & 0xfff;
    let minor = (device & 0xff) | ((device >> 12) & 0xf_ff00);
    major << 20 | minor
}
