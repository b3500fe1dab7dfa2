//! Where each stream stands: how much was written and read, and whether anybody wants it.
//!
//! Owns the offsets, which come from the return values of system calls and from nothing else, and
//! the counters of what was lost.

use std::collections::HashMap;

use crate::capture::event::{Loss, StreamId};

/// All streams that bytes moved through.
#[derive(Debug, Default)]
pub(super) struct Streams {
    states: HashMap<StreamId, State>,
    loss: Loss,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    written: u64,
    read: u64,
    /// What was in it, unread, when the capture joined it: reads of that count for nothing.
    backlog: u64,
    given_up: bool,
}

impl Streams {
    /// The stream was joined with so many bytes in it, unless it is known already.
    pub(super) fn join(&mut self, stream: StreamId, backlog: u64) {
        self.states.entry(stream).or_insert(State {
            backlog,
            ..State::default()
        });
    }

    /// So many bytes went in. The position of the first, if they are wanted.
    pub(super) fn write(&mut self, stream: StreamId, bytes: u64) -> Option<u64> {
        let state = self.states.entry(stream).or_default();
        let offset = state.written;
        state.written += bytes;
        self.loss.seen += bytes;
        if state.given_up {
            self.loss.filtered += bytes;
            return None;
        }
        Some(offset)
    }

    /// So many bytes were taken out. The position after the last, if it is wanted and new.
    pub(super) fn read(&mut self, stream: StreamId, bytes: u64) -> Option<u64> {
        let state = self.states.entry(stream).or_default();
        let old = state.backlog.min(bytes);
        state.backlog -= old;
        state.read += bytes - old;
        (!state.given_up && bytes > old).then_some(state.read)
    }

    /// Position after the last byte that is known to have been written.
    pub(super) fn written(&self, stream: StreamId) -> u64 {
        self.states.get(&stream).map_or(0, |state| state.written)
    }

    /// Whether anybody wants to know what goes on in it.
    pub(super) fn is_wanted(&self, stream: StreamId) -> bool {
        self.states.get(&stream).is_none_or(|state| !state.given_up)
    }

    /// The stream is no MCP.
    pub(super) fn give_up(&mut self, stream: StreamId) {
        self.states.entry(stream).or_default().given_up = true;
    }

    /// The stream is over.
    pub(super) fn forget(&mut self, stream: StreamId) {
        self.states.remove(&stream);
    }

    /// So many bytes were handed on.
    pub(super) fn submitted(&mut self, bytes: u64) {
        self.loss.submitted += bytes;
    }

    /// So many bytes could not be read.
    pub(super) fn unreadable(&mut self, bytes: u64) {
        self.loss.unreadable += bytes;
    }

    /// A write may have happened, and nobody knows how much it wrote.
    pub(super) fn unknown(&mut self) {
        self.loss.events_lost += 1;
    }

    /// The counters so far.
    pub(super) fn loss(&self) -> Loss {
        self.loss
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::event::StreamKind;

    const STREAM: StreamId = StreamId {
        kind: StreamKind::Pipe,
        object: 1,
        scope: 0,
    };

    #[test]
    fn offsets_count_what_moved() {
        let mut streams = Streams::default();
        assert_eq!(streams.write(STREAM, 5), Some(0));
        assert_eq!(streams.write(STREAM, 3), Some(5));
        assert_eq!(streams.read(STREAM, 4), Some(4));
        assert_eq!(streams.read(STREAM, 4), Some(8));
        assert_eq!(streams.written(STREAM), 8);
        streams.forget(STREAM);
        assert_eq!(streams.write(STREAM, 1), Some(0));
    }

    #[test]
    fn what_was_there_before_does_not_count() {
        let mut streams = Streams::default();
        streams.join(STREAM, 10);
        assert_eq!(streams.read(STREAM, 4), None);
        assert_eq!(streams.read(STREAM, 8), Some(2));
        assert_eq!(streams.read(STREAM, 1), Some(3));
    }

    #[test]
    fn what_nobody_wants_is_counted_still() {
        let mut streams = Streams::default();
        streams.write(STREAM, 5);
        streams.submitted(5);
        streams.give_up(STREAM);
        assert_eq!(streams.write(STREAM, 7), None);
        assert_eq!(streams.read(STREAM, 7), None);
        let loss = streams.loss();
        assert_eq!((loss.seen, loss.submitted, loss.filtered), (12, 5, 7));
        assert!(loss.complete());
    }
}
