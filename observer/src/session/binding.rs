//! Streams become directions of connections, and connections are opened.

use super::connection::{ConnKey, Connection};
use super::ends::Ends;
use super::event::{ConnId, Side};
use super::processes::ProcId;
use super::streams::Role;
use super::{Output, Session, Timer, Visibility};
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
                if stream.is_hopeless(at) || stream.undecided().is_some() && hoards {
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

    /// A connection that has no streams yet.
    pub(super) fn connect(&mut self, at: Timestamp) -> ConnKey {
        let key = ConnKey(self.created);
        self.created += 1;
        self.connections.insert(key, Connection::default());
        self.half.insert(key);
        self.timers
            .insert((at + self.settings.hold, Timer::Open(key)));
        key
    }

    /// The stream is what `side` sends; what it has carried so far follows.
    pub(super) fn bind(&mut self, at: Timestamp, key: ConnKey, id: StreamId, side: Side) {
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
        for (at, content) in undecided.held {
            if let Some(stream) = self.streams.get_mut(&id) {
                stream.delivery.pass(&content);
            }
            self.put(at, id, content);
        }
        self.tell_delivery(at, id);
    }

    /// Binds, and opens what can be opened by that.
    pub(super) fn bind_and_open(&mut self, at: Timestamp, key: ConnKey, id: StreamId, side: Side) {
        self.bind(at, key, id, side);
        self.open_if_known(at, key);
        self.close_if_over(at, key);
    }

    /// Opens the connection once both parties are known; an open one is shown again if more is
    /// known of it.
    pub(super) fn open_if_known(&mut self, at: Timestamp, key: ConnKey) {
        let Some(connection) = self.connections.get(&key) else {
            return;
        };
        let known = self.parties(connection).iter().all(Option::is_some);
        if connection.number.is_some() || known && self.scratch(connection).is_none() {
            self.open(at, key);
        }
    }

    /// The only stream of a connection, where one process has it to itself: a host's own pipe, to
    /// splice from. A process that talks to itself has the answers' stream besides.
    fn scratch(&self, connection: &Connection) -> Option<StreamId> {
        let ((Some(id), None) | (None, Some(id))) = (connection.client, connection.server) else {
            return None;
        };
        self.streams.get(&id)?.is_private().then_some(id)
    }

    /// Opens the connection with what is known, or shows it again if more is known. It is none
    /// after all where a process has kept its only stream to itself.
    pub(super) fn open(&mut self, at: Timestamp, key: ConnKey) {
        let Some(connection) = self.connections.get(&key) else {
            return;
        };
        if connection.number.is_none()
            && let Some(id) = self.scratch(connection)
        {
            self.connections.remove(&key);
            self.half.remove(&key);
            return self.give_up(id);
        }
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

    /// The stream is none of ours.
    pub(super) fn give_up(&mut self, id: StreamId) {
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
