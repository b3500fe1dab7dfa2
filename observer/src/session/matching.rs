//! Streams find their connections.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::connection::{ConnKey, Connection};
use super::event::Side;
use super::pairing::{self, Fit};
use super::processes::ProcId;
use super::streams::{Role, Stream};
use super::{Session, Timer};
use crate::capture::{StreamId, Timestamp};

impl Session {
    /// Binds an undecided stream if its content, or a connection that lacks it, tells which
    /// direction it is.
    pub(super) fn consider(&mut self, at: Timestamp, id: StreamId) {
        let Some(stream) = self.streams.get(&id) else {
            return;
        };
        let Some(undecided) = stream.undecided() else {
            return;
        };
        let has_frames = undecided.evidence.frames > 0;
        let side = pairing::writing_side(stream, &self.processes);
        if let Some((key, side)) = self.partner(stream, side) {
            self.bind_and_open(at, key, id, side);
            return;
        }
        // A server that speaks, or a client of which a connection is half known, is waited for:
        // who is at its other end often shows only when that one reads.
        let expected = self
            .half
            .iter()
            .any(|&key| self.loose_fit(stream, key).is_some());
        match (side, self.is_inner(stream)) {
            (Some(Side::Client), Some(true)) => self.give_up(id),
            (Some(Side::Client), Some(false)) if !expected => {
                self.connect_as(at, id, Side::Client);
            }
            _ if side.is_some() || has_frames => self.start_pairing(at, id),
            _ => {}
        }
    }

    /// Whether what the client seems to say here only passes from one stage of a pipeline to the
    /// next (`tee log | server`): its writer reads what a client says, and did not start its
    /// reader, as a proxy would have. `None` while the reader is not known.
    fn is_inner(&self, stream: &Stream) -> Option<bool> {
        let writers = stream.writers.known();
        let feeds = self.client_streams(writers);
        let mut feeds = (feeds.iter())
            .filter_map(|id| self.streams.get(id))
            .filter(|feed| feed.readers.meet(&stream.writers) == Some(true))
            .peekable();
        if feeds.peek().is_some() && stream.readers.known().is_empty() {
            return None;
        }
        let passes = |writer, feed: &Stream| {
            stream.readers.known().iter().any(|&reader| {
                !self.processes.descends(reader, writer)
                    && self
                        .processes
                        .are_kin_below(reader, writer, feed.writers.known())
            })
        };
        Some(feeds.any(|feed| writers.iter().any(|&writer| passes(writer, feed))))
    }

    /// What clients say on known connections, to any of these processes at least.
    ///
    /// A process may use thousands of streams that are no MCP, and there may be thousands of
    /// connections; one new stream must not cost a walk over the larger of the two.
    fn client_streams(&self, processes: &[ProcId]) -> Vec<StreamId> {
        let used = || processes.iter().filter_map(|it| self.streams_of.get(it));
        if used().map(BTreeSet::len).sum::<usize>() > self.connections.len() {
            return (self.connections.values())
                .filter_map(|connection| connection.stream(Side::Client))
                .collect();
        }
        let from_client = |id: &StreamId| {
            let role = self.streams.get(id).map(|stream| &stream.role);
            matches!(
                role,
                Some(Role::Bound {
                    from: Side::Client,
                    ..
                })
            )
        };
        used().flatten().copied().filter(from_client).collect()
    }

    /// Another try for it by weaker evidence, once its readers have had time to show themselves.
    fn start_pairing(&mut self, at: Timestamp, id: StreamId) {
        let Some(Role::Undecided(undecided)) = self.streams.get_mut(&id).map(|it| &mut it.role)
        else {
            return;
        };
        let due = at + self.settings.hold;
        match *undecided.evidence.waits_until.get_or_insert(due) {
            until if until == due => {
                self.timers.insert((until, Timer::Pair(id)));
            }
            until if until <= at => self.pair_late(at, id),
            _ => {}
        }
    }

    /// The connection that lacks exactly this stream, and as whose.
    fn partner(&self, stream: &Stream, side: Option<Side>) -> Option<(ConnKey, Side)> {
        let sides: &[Side] = match side {
            Some(Side::Client) => &[Side::Client],
            Some(Side::Server) => &[Side::Server],
            None => &[Side::Server, Side::Client],
        };
        self.half.iter().find_map(|&key| {
            let connection = self.connections.get(&key)?;
            let side = sides
                .iter()
                .find(|&&side| self.completes(stream, side, connection))?;
            Some((key, *side))
        })
    }

    /// Whether the stream fits a connection fully, as what `side` sends.
    fn completes(&self, stream: &Stream, side: Side, connection: &Connection) -> bool {
        if connection.stream(side).is_some() {
            return false;
        }
        let other = connection
            .stream(side.peer())
            .and_then(|id| self.streams.get(&id));
        let Some(other) = other else { return false };
        match side {
            Side::Server => {
                pairing::may_answer(stream, other, &connection.asked)
                    && pairing::fit(other, stream, &self.processes) == Fit::Both
            }
            Side::Client => {
                let speaks = stream
                    .undecided()
                    .is_some_and(|held| held.evidence.frames > 0);
                (speaks || stream.readers.is_stdin())
                    && pairing::fit(stream, other, &self.processes) == Fit::Both
            }
        }
    }

    /// A half connection looks for its other stream among those that its processes use.
    pub(super) fn adopt(&mut self, at: Timestamp, key: ConnKey) {
        let Some(connection) = self.connections.get(&key) else {
            return;
        };
        let (side, bound) = match (connection.client, connection.server) {
            (Some(client), None) => (Side::Server, client),
            (None, Some(server)) => (Side::Client, server),
            _ => return,
        };
        let Some(stream) = self.streams.get(&bound) else {
            return;
        };
        let mut candidates: Vec<&Stream> = (stream.writers.known().iter())
            .chain(stream.readers.known())
            .filter_map(|process| self.streams_of.get(process))
            .flatten()
            .copied()
            .chain(pairing::relay_peer(bound))
            .filter_map(|id| self.streams.get(&id))
            .filter(|candidate| self.completes(candidate, side, connection))
            .collect();
        candidates.sort_by_key(|candidate| {
            let answers = candidate.undecided().is_some_and(|undecided| {
                pairing::answers(&undecided.evidence.answers, &connection.asked)
            });
            let frames = candidate
                .undecided()
                .map_or(0, |undecided| undecided.evidence.frames);
            (Reverse((answers, frames > 0)), candidate.id)
        });
        if let Some(id) = candidates.first().map(|candidate| candidate.id) {
            self.bind_and_open(at, key, id, side);
        }
    }

    /// A stream has found no connection that it fits fully: it takes the one that it fits best by
    /// looser rules, if that is the only one and no other stream fits it as well; else it begins
    /// one of its own, if it is MCP.
    pub(super) fn pair_late(&mut self, at: Timestamp, id: StreamId) {
        let Some(stream) = self.streams.get(&id) else {
            return;
        };
        if stream.undecided().is_none() {
            return;
        }
        let side = pairing::writing_side(stream, &self.processes);
        let fits = self
            .half
            .iter()
            .filter_map(|&key| Some((self.loose_fit(stream, key)?, key)));
        let rivals = |key, (fit, _): (Fit, Side)| {
            let others = self.streams.values().filter(|other| other.id != id);
            others
                .filter_map(|other| self.loose_fit(other, key))
                .any(|(other, _)| other >= fit)
        };
        match sole_best(fits) {
            Some((best, key)) if !rivals(key, best) => self.bind_and_open(at, key, id, best.1),
            _ => match side {
                Some(Side::Client) if self.is_inner(stream) == Some(true) => self.give_up(id),
                Some(side) => self.connect_as(at, id, side),
                None => self.settle(at, id),
            },
        }
    }

    /// How well a stream fits a half connection, and as what whose side sends, where the ends
    /// alone do not tell: an answer to one of its requests is needed, or else that the one side
    /// is the same and nothing is known that speaks against the other.
    fn loose_fit(&self, stream: &Stream, key: ConnKey) -> Option<(Fit, Side)> {
        let connection = self.connections.get(&key)?;
        let evidence = &stream.undecided()?.evidence;
        let side = pairing::writing_side(stream, &self.processes);
        let known = |id: StreamId| self.streams.get(&id);
        let (fit, from) = match (connection.client, connection.server) {
            (Some(client), None) if side != Some(Side::Client) => (
                pairing::fit(known(client)?, stream, &self.processes),
                Side::Server,
            ),
            (None, Some(server)) if side == Some(Side::Client) => (
                pairing::fit(stream, known(server)?, &self.processes),
                Side::Client,
            ),
            _ => return None,
        };
        let answers = pairing::answers(&evidence.answers, &connection.asked);
        let enough = match fit {
            Fit::None => false,
            Fit::HalfKnown | Fit::Both => answers || side.is_some(),
            Fit::Server | Fit::ServerKin => answers,
        };
        (enough && !stream.writers.is_only_stderr()).then_some((fit, from))
    }

    fn connect_as(&mut self, at: Timestamp, id: StreamId, side: Side) {
        let key = self.connect(at);
        self.bind(at, key, id, side);
        self.adopt(at, key);
        self.open_if_known(at, key);
    }
}

/// The best fit, unless two are equally good.
fn sole_best(fits: impl Iterator<Item = ((Fit, Side), ConnKey)>) -> Option<((Fit, Side), ConnKey)> {
    let mut best: Option<((Fit, Side), ConnKey)> = None;
    let mut sole = true;
    for ((fit, side), key) in fits {
        match &best {
            Some(((greatest, _), _)) if *greatest > fit => {}
            Some(((greatest, _), _)) if *greatest == fit => sole = false,
            _ => (best, sole) = (Some(((fit, side), key)), true),
        }
    }
    best.filter(|_| sole)
}
