//! E1: the same call is sent again while the first is open.

use std::time::Duration;

use super::clue;
use crate::session::{ConnId, Side};
use crate::verdict::Revision;
use crate::verdict::Settings;
use crate::verdict::call::{Call, Seq, Weight, spoken};
use crate::verdict::connection::Connection;
use crate::verdict::host::{Calls, Conversations};
use crate::verdict::judge::Judge;

/// More equal calls in flight than this are not kept.
const EQUALS: usize = 64;

impl Judge {
    /// Looks for an earlier call that this one repeats. A call is the retry of one call only.
    pub(in super::super) fn watch_retries(&mut self, conn: ConnId, seq: Seq) {
        let Some(connection) = self.state.conns.get_mut(&conn) else {
            return;
        };
        let Some(print) = connection
            .lane(Side::Client)
            .get(seq)
            .and_then(|call| call.fingerprint)
        else {
            return;
        };
        let mut equals = connection.repeats.remove(&print).unwrap_or_default();
        let found = connection.lane(Side::Client).get(seq).and_then(|newer| {
            equals
                .iter()
                .take(EQUALS)
                .enumerate()
                .find_map(|(place, older)| {
                    let older = connection.lane(Side::Client).get(*older)?;
                    let weight = weigh(connection, older, newer, &self.state.settings)?;
                    Some((place, older.seq, weight, gap(older, newer)))
                })
        });
        if let Some((place, ..)) = found {
            equals.remove(place);
        }
        if equals.len() >= EQUALS {
            equals.pop_front();
        }
        equals.push_back(seq);
        connection.repeats.insert(print, equals);
        if let Some((_, older, weight, gap)) = found {
            let detail = format!("the same call was sent again {} later", spoken(gap));
            let clue = clue("retry", weight, self.state.now, detail);
            self.brew(conn, older, clue);
        }
    }
}

/// The time between the two, without the time that the server waited for the host.
fn gap(older: &Call, newer: &Call) -> Duration {
    newer.sent_active.saturating_sub(older.sent_active)
}

/// What the second call says about the first, if it says anything.
fn weigh(conn: &Connection, older: &Call, newer: &Call, settings: &Settings) -> Option<Weight> {
    let gap = gap(older, newer);
    let threads = older.turn.thread.as_ref().zip(newer.turn.thread.as_ref());
    if gap < settings.burst || threads.is_some_and(|(older, newer)| older != newer) {
        return None;
    }
    // One conversation, by the host's own word.
    if threads.is_some() {
        return Some(Weight::Sure);
    }
    let limit = limit(conn, newer, settings);
    let long = gap >= limit.map_or(settings.retry, |limit| limit.min(settings.retry));
    let stateless = newer.revision.is_some_and(Revision::is_stateless);
    match &conn.known {
        Some(host) if host.conversations == Conversations::Several => None,
        Some(host) if host.calls == Some(Calls::Serial) => Some(Weight::Sure),
        Some(host) if host.calls == Some(Calls::Parallel) && !long => None,
        // Conversations may share the process, and nothing tells them apart.
        None if stateless => long.then_some(Weight::Weak),
        // Proof where the host could not have waited any longer; else it may be another
        // conversation's.
        _ if limit.is_some_and(|limit| gap >= limit) => Some(Weight::Sure),
        _ if long => Some(Weight::Strong),
        _ => Some(Weight::Weak),
    }
}

/// How long the host waits for the call, as far as is known.
fn limit(conn: &Connection, call: &Call, settings: &Settings) -> Option<Duration> {
    let tool = call.name.as_deref();
    let own = tool.and_then(|tool| settings.deadline(tool));
    own.or(conn.known.as_ref().and_then(|host| host.limit))
}
