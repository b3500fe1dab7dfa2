//! Streams find their connections.

use std::cmp::Reverse;

use super::connection::{ConnKey, Connection};
use super::content::Content;
use super::ends::Ends;
use super::event::{ConnId, Side};
use super::pairing::{self, Fit};
use super::processes::ProcId;
use super::streams::{Role, Stream};
use super::{Output, Session, Timer, Visibility, sends};
use crate::capture::{StreamId, Timestamp};

/// All undecided streams together may hold so much, in bytes.
const HELD: usize = 64 * 1024 * 1024;

impl Session {
    /// After an undecided stream has carried something: whether that decides it.
    pub(super) fn weigh(&mut self, at: Timestamp, id: StreamId, before: usize) {
        let Some(stream) = self.streams.get(&id) else {
            return;
        };
        match stream.role {
            Role::Bound { conn, .. } => {
                if self.connections.get(&conn).is_some_and(Connection::is_full) {
                    self.open(at, conn);
                }
            }
            Role::Undecided(_) => {
                self.held = (self.held + stream.weight()).saturating_sub(before);
                self.consider(at, id);
                let Some(stream) = self.streams.get(&id) else {
                    return;
                };
                let hoards = self.held > HELD && stream.weight() > HELD / 1024;
                if stream.is_hopeless() || stream.undecided().is_some() && hoards {
                    self.give_up(id);
                }
            }
            Role::GivenUp => {}
        }
    }

    /// Somebody came to an end of the stream.
    pub(super) fn ends_changed(&mut self, at: Timestamp, id: StreamId) {
        match self.streams.get(&id).map(|stream| &stream.role) {
            Some(Role::Undecided(_)) => self.consider(at, id),
            Some(&Role::Bound { conn, .. }) => {
                self.adopt(at, conn);
                self.open_if_known(at, conn);
            }
            Some(Role::GivenUp) | None => {}
        }
    }

    /// Binds an undecided stream if its content, or a connection that lacks it, tells which
    /// direction it is.
    fn consider(&mut self, at: Timestamp, id: StreamId) {
        let Some(stream) = self.streams.get(&id) else {
            return;
        };
        let Some(undecided) = stream.undecided() else {
            return;
        };
        let has_frames = undecided.evidence.frames > 0;
        let side = pairing::writing_side(stream, &self.processes);
        if let Some((conn, side)) = self.partner(stream, side) {
            self.bind(at, conn, id, side);
        } else if let Some(side) = side {
            let conn = self.connect(at);
            self.bind(at, conn, id, side);
            self.adopt(at, conn);
        } else if has_frames {
            self.start_pairing(at, id);
        }
    }

    /// Another try for it, by weaker evidence, when its readers had time to show themselves.
    fn start_pairing(&mut self, at: Timestamp, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        if let Role::Undecided(undecided) = &mut stream.role
            && !std::mem::replace(&mut undecided.evidence.timed, true)
        {
            self.timers
                .insert((at + self.settings.hold, Timer::Pair(id)));
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
    fn adopt(&mut self, at: Timestamp, key: ConnKey) {
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
            .filter_map(|id| self.streams.get(id))
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
            self.bind(at, key, id, side);
        }
    }

    /// A stream with messages has found no connection that it fits fully: it takes the one whose
    /// requests it answers, if that fits half and no other stream fits it as well.
    pub(super) fn pair_late(&mut self, at: Timestamp, id: StreamId) {
        let Some(stream) = self.streams.get(&id) else {
            return;
        };
        let best = self.half.iter().filter_map(|&key| {
            let fit = self.half_fit(stream, key);
            (fit > Fit::None).then_some((fit, key))
        });
        let Some((fit, key)) = sole_best(best) else {
            return;
        };
        let rivals = self.streams.values().filter(|rival| rival.id != id);
        if rivals
            .map(|rival| self.half_fit(rival, key))
            .all(|rival| rival < fit)
        {
            self.bind(at, key, id, Side::Server);
        }
    }

    fn half_fit(&self, stream: &Stream, key: ConnKey) -> Fit {
        let client = self
            .connections
            .get(&key)
            .filter(|connection| connection.server.is_none());
        let client = client.and_then(|connection| Some((connection.client?, &connection.asked)));
        let (Some(undecided), Some((client, asked))) = (stream.undecided(), client) else {
            return Fit::None;
        };
        let answers = pairing::answers(&undecided.evidence.answers, asked);
        match self.streams.get(&client) {
            Some(client) if answers && !stream.writers.is_only_stderr() => {
                pairing::fit(client, stream, &self.processes)
            }
            _ => Fit::None,
        }
    }

    fn connect(&mut self, at: Timestamp) -> ConnKey {
        let key = ConnKey(self.created);
        self.created += 1;
        self.connections.insert(key, Connection::default());
        self.half.insert(key);
        self.timers
            .insert((at + self.settings.hold, Timer::Open(key)));
        key
    }

    /// The stream is what `side` sends; what it has carried so far follows.
    fn bind(&mut self, at: Timestamp, key: ConnKey, id: StreamId, side: Side) {
        let (Some(stream), Some(connection)) =
            (self.streams.get_mut(&id), self.connections.get_mut(&key))
        else {
            return;
        };
        self.held = self.held.saturating_sub(stream.weight());
        let role = std::mem::replace(
            &mut stream.role,
            Role::Bound {
                conn: key,
                from: side,
            },
        );
        connection.bind(side, id);
        if !connection.is_half() {
            self.half.remove(&key);
        }
        let Role::Undecided(undecided) = role else {
            return;
        };
        if connection.number.is_some() {
            // It has become better known, and says so before it says more.
            self.open(at, key);
        }
        let mut delivered = false;
        for (at, content) in undecided.held {
            if let Some(stream) = self.streams.get_mut(&id) {
                delivered |= sends(&content).is_some_and(|end| stream.delivery.sent(end));
            }
            self.put(at, id, content);
        }
        if delivered && let Some(stream) = self.streams.get(&id) {
            let offset = stream.delivery.position();
            self.put(at, id, Content::Delivered { offset });
        }
        self.open_if_known(at, key);
        self.close_if_over(at, key);
    }

    /// Opens the connection once both parties are known; an open one is shown again if more is
    /// known of it.
    fn open_if_known(&mut self, at: Timestamp, key: ConnKey) {
        let Some(connection) = self.connections.get(&key) else {
            return;
        };
        if connection.number.is_some() || self.parties(connection).iter().all(Option::is_some) {
            self.open(at, key);
        }
    }

    /// Opens the connection with what is known, or shows it again if more is known.
    pub(super) fn open(&mut self, at: Timestamp, key: ConnKey) {
        let Some(connection) = self.connections.get(&key) else {
            return;
        };
        let parties = self.parties(connection);
        if self.settings.processes == Visibility::Connected {
            parties
                .iter()
                .flatten()
                .for_each(|&party| self.introduce(at, party, parties));
        }
        let named = parties.map(|party| party.and_then(|id| self.processes.party(id)));
        let Some(connection) = self.connections.get_mut(&key) else {
            return;
        };
        connection.parties = parties;
        let number = connection.number.unwrap_or_else(|| {
            self.opened += 1;
            ConnId(self.opened)
        });
        connection.show(number, named, at, &mut self.out);
    }

    /// Announces a party with those who started it, up to the host's own launcher.
    fn introduce(&mut self, at: Timestamp, party: ProcId, parties: [Option<ProcId>; 2]) {
        let [client, _] = parties;
        let lineage: Vec<ProcId> = std::iter::once(party)
            .chain(self.processes.ancestors(party))
            .collect();
        let host = client.and_then(|host| lineage.iter().position(|&id| id == host));
        let generations = host.unwrap_or(0) + 2;
        for &id in lineage.iter().take(generations).rev() {
            if let Some(event) = self.processes.show(id) {
                self.emit(at, event);
            }
        }
    }

    /// Who host and server are, as far as the ends of the streams tell.
    fn parties(&self, connection: &Connection) -> [Option<ProcId>; 2] {
        let stream = |id: Option<StreamId>| id.and_then(|id| self.streams.get(&id));
        let (client, server) = (stream(connection.client), stream(connection.server));
        let host = both_or_one(
            client.map(|stream| &stream.writers),
            server.map(|stream| &stream.readers),
        );
        let peer = both_or_one(
            client.map(|stream| &stream.readers),
            server.map(|stream| &stream.writers),
        );
        // Those who hold a host's descriptors are its children, those who hold a server's are
        // the wrappers that started it.
        let eldest = |ids: &[ProcId]| {
            ids.iter()
                .copied()
                .find(|&id| !ids.iter().any(|&other| self.processes.descends(id, other)))
        };
        let youngest = |ids: &[ProcId]| {
            ids.iter()
                .copied()
                .find(|&id| !ids.iter().any(|&other| self.processes.descends(other, id)))
        };
        [eldest(&host), youngest(&peer)]
    }

    fn give_up(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        self.held = self.held.saturating_sub(stream.weight());
        stream.role = Role::GivenUp;
        self.out.push_back(Output::GiveUp(id));
    }
}

/// Those at both ends; else those at either, users before holders.
fn both_or_one(one: Option<&Ends>, other: Option<&Ends>) -> Vec<ProcId> {
    let known = |ends: Option<&Ends>| ends.map_or(Vec::new(), |ends| ends.known().to_vec());
    let (first, second) = (known(one), known(other));
    let both: Vec<ProcId> = first
        .iter()
        .copied()
        .filter(|id| second.contains(id))
        .collect();
    let used = |ends: Option<&Ends>| ends.is_some_and(Ends::is_used);
    if !both.is_empty() {
        both
    } else if used(one) || !used(other) && !first.is_empty() {
        first
    } else {
        second
    }
}

/// The greatest, unless two are equally great.
fn sole_best<K>(fits: impl Iterator<Item = (Fit, K)>) -> Option<(Fit, K)> {
    let mut best: Option<(Fit, K)> = None;
    let mut sole = true;
    for (fit, key) in fits {
        match &best {
            Some((greatest, _)) if *greatest > fit => {}
            Some((greatest, _)) if *greatest == fit => sole = false,
            _ => (best, sole) = (Some((fit, key)), true),
        }
    }
    best.filter(|_| sole)
}
