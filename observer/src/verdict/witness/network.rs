//! The host talks to its model again before the call is answered: of a host that runs one turn at
//! a time that says that it has stopped waiting. Sizes only, never content.
//!
//! A conversation with a model is sent anew with every request, and grows. So a burst of bytes to
//! the peer that the largest burst before the call went to, and of about its size or more, is
//! taken for the next request of the same conversation. One that is larger by no more than the
//! call itself and a few words of error is strong evidence of a host that calls one tool after the
//! other; any other is weak.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use super::clue;
use crate::capture::{Pid, Timestamp};
use crate::session::{ConnId, Side};
use crate::verdict::call::{Seq, Weight, spoken};
use crate::verdict::connection::Connection;
use crate::verdict::host::{Calls, Conversations};
use crate::verdict::judge::Judge;
use crate::verdict::process::Relation;
use crate::verdict::reading::repeatable;

/// Sends to one peer within this time of each other are one burst.
const PAUSE: Duration = Duration::from_millis(300);
/// A smaller burst is no request to a model: keep-alives, acknowledgements.
const LEAST: u64 = 1024;
/// A burst this soon after the call may have begun before it.
const SILENCE: Duration = Duration::from_secs(1);
/// A call and the words that stand for its result make the conversation grow by this at most.
const GROWTH: u64 = 16 << 10;
/// An older burst has nothing to do with the call.
const FRESH: Duration = Duration::from_secs(300);
/// How many peers of a host are watched.
const PEERS: usize = 16;

/// What a host sent to one peer without a pause.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Burst {
    peer: Option<SocketAddr>,
    began: Timestamp,
    last: Timestamp,
    bytes: u64,
}

impl Judge {
    pub(in super::super) fn net_sent(
        &mut self,
        pid: Pid,
        bytes: u64,
        peer: Option<SocketAddr>,
        at: Timestamp,
    ) {
        let conns: Vec<ConnId> = self.state.conns.keys().copied().collect();
        for conn in conns {
            if self.is_host(conn, pid)
                && let Some(connection) = self.state.conns.get_mut(&conn)
            {
                let burst = extend(&mut connection.bursts, peer, bytes, at);
                self.watch_burst(conn, burst);
            }
        }
    }

    fn is_host(&self, conn: ConnId, pid: Pid) -> bool {
        let Some(client) = self.state.conns.get(&conn).and_then(|conn| conn.client) else {
            return false;
        };
        match self.state.processes.relation(client, pid) {
            Some(Relation::Itself) => true,
            Some(Relation::Above) => self.state.processes.same_program(client, pid),
            _ => false,
        }
    }

    /// Notes which burst a call of the host most likely follows from.
    pub(in super::super) fn note_model(&mut self, conn: ConnId, seq: Seq) {
        let now = self.state.now;
        let Some(connection) = self.state.conns.get_mut(&conn) else {
            return;
        };
        let fresh = connection
            .bursts
            .iter()
            .filter(|burst| now.since(burst.last) <= FRESH);
        let request = fresh.max_by_key(|burst| burst.bytes).copied();
        let request = request.filter(|burst| burst.bytes >= LEAST);
        if let Some(call) = connection.lane_mut(Side::Client).get_mut(seq) {
            call.request = request;
        }
    }

    /// Whether the host has another connection to the same server: one for each of its
    /// conversations, whose requests to the model nobody can tell apart.
    fn has_twin(&self, conn: &Connection) -> bool {
        let command = |other: &Connection| {
            let servers = conn.server.zip(other.server);
            servers.is_some_and(|(own, others)| self.state.processes.same_command(own, others))
        };
        let named = |other: &Connection| {
            conn.server_name.is_some() && conn.server_name == other.server_name
        };
        let is_twin = |other: &Connection| {
            other.id != conn.id
                && other.client == conn.client
                && other.ends.over().is_none()
                && (command(other) || named(other))
        };
        conn.client.is_some() && self.state.conns.values().any(is_twin)
    }

    fn watch_burst(&mut self, conn: ConnId, burst: Burst) {
        let Some(connection) = self.state.conns.get(&conn) else {
            return;
        };
        if !runs_one_turn(connection) || connection.asks_person() || self.has_twin(connection) {
            return;
        }
        let now = connection.clock.at(burst.began);
        let serial = connection
            .known
            .as_ref()
            .is_some_and(|host| host.calls == Some(Calls::Serial));
        let mut meant = Vec::new();
        for call in connection
            .work()
            .filter(|call| repeatable(&call.method))
            .take(PEERS)
        {
            let silent = now >= call.sent_active + SILENCE;
            if let Some(request) = call.request.filter(|_| silent)
                && burst.goes_on(&request)
            {
                let strong = serial && burst.grows(&request);
                let weight = if strong { Weight::Strong } else { Weight::Weak };
                let after = spoken(now.saturating_sub(call.sent_active));
                let detail = format!(
                    "{after} later the host sent {} bytes to the peer that it had sent {} bytes \
                     to before the call",
                    burst.bytes, request.bytes
                );
                meant.push((call.seq, clue("model-request", weight, burst.last, detail)));
            }
        }
        for (seq, clue) in meant {
            self.brew_latest(conn, seq, clue);
        }
    }
}

impl Burst {
    /// Whether this may be the next request of the conversation that `before` belongs to.
    fn goes_on(&self, before: &Self) -> bool {
        self.peer == before.peer && self.bytes >= before.bytes - before.bytes / 10
    }

    /// Whether it is that request and no other, by its size.
    fn grows(&self, before: &Self) -> bool {
        (1..=GROWTH).contains(&self.bytes.saturating_sub(before.bytes))
    }
}

/// Adds a send to the burst of its peer, or begins a new one.
fn extend(bursts: &mut Vec<Burst>, peer: Option<SocketAddr>, bytes: u64, at: Timestamp) -> Burst {
    let known = bursts.iter().position(|burst| burst.peer == peer);
    let mut burst = match known {
        Some(place) => bursts.remove(place),
        None => Burst {
            peer,
            began: at,
            last: at,
            bytes: 0,
        },
    };
    if at.since(burst.last) > PAUSE {
        burst = Burst {
            peer,
            began: at,
            last: at,
            bytes: 0,
        };
    }
    burst.last = burst.last.max(at);
    burst.bytes = burst.bytes.saturating_add(bytes);
    if bursts.len() >= PEERS {
        bursts.remove(0);
    }
    bursts.push(burst);
    burst
}

/// Whether the host waits for its calls before it asks the model again, as far as is known.
fn runs_one_turn(conn: &Connection) -> bool {
    let calls = conn.lane(Side::Client).calls();
    let threads: BTreeSet<_> = calls
        .filter_map(|call| call.turn.thread.as_deref())
        .collect();
    if threads.len() > 1 {
        return false;
    }
    match &conn.known {
        Some(host) => host.conversations == Conversations::One && !host.background,
        None => conn.stateless.is_none(),
    }
}
