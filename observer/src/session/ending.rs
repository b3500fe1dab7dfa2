//! Streams and connections end, and the dead are forgotten.

use std::time::Duration;

use super::connection::ConnKey;
use super::content::Content;
use super::ends::Ends;
use super::event::{ConnectionChange, Event, Side};
use super::processes::ProcId;
use super::streams::{Role, Stream};
use super::{Output, Session, Timer};
use crate::capture::{End, StreamId, Timestamp};

/// After a death the backend has so long to tell of ends of files itself, and the other
/// processes to die as well.
const SETTLE: Duration = Duration::from_millis(200);

const SIDES: [Side; 2] = [Side::Client, Side::Server];

/// So many streams are known at most; the least recently used undecided ones go first.
const STREAMS: usize = 8192;

impl Session {
    /// A process has ended.
    pub(super) fn buried(&mut self, at: Timestamp, process: ProcId) {
        for &id in self.streams_of.get(&process).into_iter().flatten() {
            self.timers.insert((at + SETTLE, Timer::Settle(id)));
        }
        // A wrapper's death counts for the streams that it handed down.
        let kin = self.connections.values().filter(|connection| {
            connection
                .parties
                .iter()
                .flatten()
                .any(|&party| self.processes.descends(party, process))
        });
        for id in kin
            .flat_map(|connection| [connection.client, connection.server])
            .flatten()
        {
            self.timers.insert((at + SETTLE, Timer::Settle(id)));
        }
        if self.processes.is_crowded() {
            let ends = self
                .streams
                .values()
                .flat_map(|stream| stream.writers.all().chain(stream.readers.all()));
            let parties = self
                .connections
                .values()
                .flat_map(|connection| connection.parties);
            self.processes.forget_dead(ends.chain(parties.flatten()));
        }
    }

    /// The writing side of a stream is closed.
    pub(super) fn end_stream(&mut self, at: Timestamp, id: StreamId) {
        self.mark_over(at, id);
        if let Some(&Role::Bound { conn, .. }) = self.streams.get(&id).map(|stream| &stream.role) {
            self.close_if_over(at, conn);
        }
        self.timers.insert((at + SETTLE, Timer::Settle(id)));
    }

    /// A write failed: the reading side of a stream is closed.
    pub(super) fn refuse(&mut self, at: Timestamp, id: StreamId) {
        self.put(at, id, Content::Refused);
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.refused = true;
            self.timers.insert((at + SETTLE, Timer::Settle(id)));
        }
    }

    /// Tells of the end of a stream, once.
    fn mark_over(&mut self, at: Timestamp, id: StreamId) {
        if self.streams.get(&id).is_none_or(|stream| stream.over) {
            return;
        }
        self.feed(at, id, |stream| stream.framer.eof());
        self.put(at, id, Content::Eof);
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.over = true;
        }
    }

    /// Somebody at the stream's ends died a while ago: concludes what follows.
    pub(super) fn settle(&mut self, at: Timestamp, id: StreamId) {
        let Some(stream) = self.streams.get(&id) else {
            return;
        };
        let ended = stream.over || self.all_dead(&stream.writers);
        match &stream.role {
            &Role::Bound { conn, .. } => self.conclude(at, conn),
            Role::Undecided(undecided) => {
                let waits = undecided
                    .evidence
                    .waits_until
                    .is_some_and(|until| until > at);
                if ended && !waits {
                    self.forget(id);
                }
            }
            Role::GivenUp if ended => self.forget(id),
            Role::GivenUp => {}
        }
    }

    /// Ends the streams that have no writer any more, and the connection if none of its streams
    /// can carry anything.
    fn conclude(&mut self, at: Timestamp, key: ConnKey) {
        let Some(connection) = self.connections.get(&key) else {
            return;
        };
        let ids = SIDES.map(|side| connection.stream(side));
        let stream = |side: Side| ids[usize::from(side == Side::Server)];
        let known = |side| stream(side).and_then(|id| self.streams.get(&id));
        let over = SIDES
            .iter()
            .all(|&side| match (known(side), known(side.peer())) {
                (Some(stream), peer) => {
                    // A dead server's children may live on without holding its end: when what it
                    // wrote has ended, so has what it read.
                    let orphaned =
                        peer.is_some_and(|peer| peer.over) && self.all_dead(&stream.readers);
                    stream.over || stream.refused || orphaned || self.has_lost_an_end(stream, side)
                }
                // A stream that was never seen is over when the one that was has lost an end.
                (None, peer) => peer.is_none_or(|peer| self.has_lost_an_end(peer, side.peer())),
            });
        let deserted = SIDES.map(|side| {
            known(side)
                .filter(|stream| self.is_deserted(stream, End::Writer, side))
                .map(|it| it.id)
        });
        for id in deserted.into_iter().flatten() {
            self.mark_over(at, id);
        }
        if over {
            self.close(at, key);
        }
    }

    /// Closes a connection of which both directions have ended.
    pub(super) fn close_if_over(&mut self, at: Timestamp, key: ConnKey) {
        let Some(connection) = self.connections.get(&key) else {
            return;
        };
        let over = SIDES.iter().all(|&side| {
            let stream = connection.stream(side).and_then(|id| self.streams.get(&id));
            stream.is_some_and(|stream| stream.over)
        });
        if over {
            self.close(at, key);
        }
    }

    fn close(&mut self, at: Timestamp, key: ConnKey) {
        if self
            .connections
            .get(&key)
            .is_some_and(|connection| connection.number.is_none())
        {
            self.open(at, key);
        }
        self.half.remove(&key);
        let Some(connection) = self.connections.remove(&key) else {
            return;
        };
        if let Some(conn) = connection.number {
            self.emit(
                at,
                Event::Connection {
                    conn,
                    change: ConnectionChange::Close,
                },
            );
        }
        for id in [connection.client, connection.server].into_iter().flatten() {
            self.forget(id);
        }
    }

    fn has_lost_an_end(&self, stream: &Stream, from: Side) -> bool {
        [End::Writer, End::Reader]
            .iter()
            .any(|&end| self.is_deserted(stream, end, from))
    }

    /// Whether everybody at one end of a bound stream is dead. At the server's end a wrapper or a
    /// child may still hold it unseen; a host keeps its descriptors to itself.
    fn is_deserted(&self, stream: &Stream, end: End, from: Side) -> bool {
        let (ends, peers, side) = match end {
            End::Writer => (&stream.writers, &stream.readers, from),
            End::Reader => (&stream.readers, &stream.writers, from.peer()),
        };
        let held = |&process| self.processes.has_live_kin_below(process, peers.known());
        self.all_dead(ends) && (side == Side::Client || !ends.known().iter().any(held))
    }

    fn all_dead(&self, ends: &Ends) -> bool {
        let known = !ends.known().is_empty() && !ends.is_crowded();
        known && !ends.all().any(|process| self.processes.is_alive(process))
    }

    pub(super) fn forget(&mut self, id: StreamId) {
        let Some(stream) = self.streams.remove(&id) else {
            return;
        };
        self.held = self.held.saturating_sub(stream.weight());
        for process in stream.writers.all().chain(stream.readers.all()) {
            if let Some(streams) = self.streams_of.get_mut(&process) {
                streams.remove(&id);
                if streams.is_empty() {
                    self.streams_of.remove(&process);
                }
            }
        }
        self.out.push_back(Output::Forget(id));
    }

    /// Forgets old streams of no connection when there are too many.
    pub(super) fn make_room(&mut self) {
        if self.streams.len() < STREAMS {
            return;
        }
        let mut idle: Vec<(Timestamp, StreamId)> = (self.streams.values())
            .filter(|stream| !matches!(stream.role, Role::Bound { .. }))
            .map(|stream| (stream.touched, stream.id))
            .collect();
        idle.sort_unstable();
        for (_, id) in idle.into_iter().take(STREAMS / 4) {
            self.forget(id);
        }
    }
}
