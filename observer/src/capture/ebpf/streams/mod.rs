//! From the probe's records about streams to chunks and gaps, in order. Pure.
//!
//! Owns where each stream stands. Two CPUs may put the pieces of two writes into the ring in
//! another order than their offsets; a jump in the offsets may be that, or a loss. The records
//! say how much of a stream was lost so far, which tells the two apart at once; where it does
//! not, a piece waits for [`PATIENCE`] before the hole before it is called a gap.

mod known;
mod name;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use bytes::Bytes;
use observer_ebpf::wire::{StreamKey, StreamState, Transfer};

use crate::capture::{CaptureEvent, Captured, Pid, Timestamp};

use known::{Known, Piece, reason};

pub(super) use name::{id, key};

/// How long a piece waits for an earlier one that another CPU may still be copying.
pub(super) const PATIENCE: Duration = Duration::from_millis(100);

/// How long a reader may be ahead of all known writes before they count as moved unseen.
const UNSEEN_AFTER: Duration = Duration::from_secs(1);

/// No more than this waits in a stream that is not read: a pipe holds 64 KiB, a socket some 208
/// (`net.core.wmem_default`), unless somebody wanted more.
const WAITING: u64 = 256 << 10;

/// Twice as many streams as the kernel remembers.
const MANY_STREAMS: usize = 1 << 15;

/// All streams that the probe has reported.
#[derive(Debug, Default)]
pub(super) struct Streams {
    known: HashMap<StreamKey, Known>,
    /// Those that the pipeline has given up; records of theirs may still be under way.
    given_up: HashSet<StreamKey>,
    /// Those that were open before the probe, and have not been heard of since.
    joined: HashSet<StreamKey>,
}

impl Streams {
    /// A stream was open before: some of what will be read of it may have been in it by then.
    pub(super) fn join(&mut self, key: StreamKey) {
        self.joined.insert(key);
    }

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
            len: bytes
                .as_ref()
                .map_or(u64::from(transfer.header.len), |bytes| bytes.len() as u64),
            bytes,
            writer: Pid(transfer.pid),
            fd: transfer.fd,
            lost: transfer.lost,
            loss: transfer.loss,
        };
        self.stream(at, transfer, out)
            .accept(transfer.offset, piece, out);
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
        out.push(Captured {
            at,
            event: CaptureEvent::Eof { stream: known.id },
        });
    }

    /// A write failed for want of a reader.
    pub(super) fn refused(&mut self, at: Timestamp, transfer: &Transfer, out: &mut Vec<Captured>) {
        let stream = self.stream(at, transfer, out).id;
        let event = CaptureEvent::Refused {
            stream,
            writer: Pid(transfer.pid),
        };
        out.push(Captured { at, event });
    }

    /// From now on says nothing about a stream.
    pub(super) fn give_up(&mut self, key: StreamKey) {
        self.known.remove(&key);
        if self.given_up.len() >= MANY_STREAMS {
            // Those that are still written to come back, and are given up once more.
            self.given_up.clear();
        }
        self.given_up.insert(key);
    }

    /// Drops all knowledge of a stream.
    pub(super) fn forget(&mut self, key: StreamKey) {
        self.known.remove(&key);
        self.given_up.remove(&key);
    }

    /// Whether there are so many streams that those that the kernel no longer knows should go.
    pub(super) fn is_crowded(&self) -> bool {
        self.known.len() >= MANY_STREAMS
    }

    /// Drops all streams but those of the kernel's.
    pub(super) fn retain(&mut self, kernel: &[(StreamKey, StreamState)]) {
        let live: HashSet<_> = kernel.iter().map(|(key, _)| *key).collect();
        self.known.retain(|key, _| live.contains(key));
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
            known
                .ahead_since
                .is_some_and(|since| now.since(since) >= UNSEEN_AFTER)
        });
        ahead.map(|(&key, _)| key).collect()
    }

    /// Lets a suspect off for now: somebody is in the middle of writing to it.
    pub(super) fn acquit(&mut self, now: Timestamp, key: StreamKey) {
        if let Some(known) = self.known.get_mut(&key) {
            known.ahead_since = Some(now);
        }
    }

    /// Judges a suspect by what the kernel knows of it: what was read and never written was
    /// moved by calls that the probe does not see (`io_uring`), or by a process out of scope.
    /// A write that still blocks must have been ruled out: its bytes count when it returns.
    pub(super) fn judge(
        &mut self,
        now: Timestamp,
        key: StreamKey,
        state: &StreamState,
        out: &mut Vec<Captured>,
    ) {
        let Some(known) = self.known.get_mut(&key) else {
            return;
        };
        known.ahead_since = None;
        if state.generation != known.generation || !known.held.is_empty() {
            return;
        }
        let written = known.written_base + state.written;
        let unseen = (known.read_base + state.read).saturating_sub(written);
        // Where the kernel has written more than came, the end is lost, and reconciled elsewhere.
        if unseen > 0 && state.written == known.next {
            known.skip_unseen(now, unseen, out);
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
        let known = self
            .known
            .entry(key)
            .or_insert_with(|| first_met(&mut self.joined, key, state.generation));
        if known.generation != state.generation || state.written <= known.next {
            return;
        }
        known.release(true, now, out);
        if let Some(missing) = state
            .written
            .checked_sub(known.next)
            .filter(|&missing| missing > 0)
        {
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
            .or_insert_with(|| first_met(&mut self.joined, transfer.stream, generation));
        if known.generation != generation {
            known.restart(at, generation, out);
        }
        known
    }
}

fn first_met(joined: &mut HashSet<StreamKey>, key: StreamKey, generation: u32) -> Known {
    let mut known = Known::new(key, generation);
    if joined.remove(&key) {
        known.waiting = WAITING;
    }
    known
}

#[cfg(test)]
mod tests;
