//! What speaks for a call's having been given up. Each witness looks at one kind of evidence and
//! adds clues to a call's [`Case`](super::call::Case); none of them convicts.

mod deadline;
mod interrupt;
mod nested;
mod network;
mod retry;
mod turn;

use super::Evidence;
use super::call::{Clue, Seq, Weight};
use super::judge::{Due, Judge};
use super::occurrence::Occurrence;
use crate::capture::Timestamp;
use crate::session::{ConnId, Side};

pub(super) use network::Burst;

impl Judge {
    /// Lets all witnesses look at a request that the host has just sent.
    pub(super) fn watch(&mut self, conn: ConnId, seq: Seq) {
        self.watch_limits(conn, seq);
        self.watch_turns(conn, seq);
        self.watch_retries(conn, seq);
        self.set_deadline(conn, seq);
        self.note_model(conn, seq);
    }

    /// Adds clues to a call of the host, if it is judged at all.
    fn accuse(&mut self, conn: ConnId, seq: Seq, clues: impl IntoIterator<Item = Clue>) {
        let Some(connection) = self.state.conns.get_mut(&conn) else {
            return;
        };
        let unseen = connection.has_unseen();
        let read = connection.delivered(Side::Client);
        let Some(call) = connection.lane_mut(Side::Client).get_mut(seq) else {
            return;
        };
        let unread = read.zip(call.end).is_some_and(|(read, end)| read < end);
        if unseen || !call.is_judged() {
            return;
        }
        let sent = call.sent;
        let case = call.case.get_or_insert_default();
        if unread {
            let detail = "the server has not read the request".into();
            case.add(clue("unread-request", Weight::Effect, sent, detail));
        }
        let mut new = false;
        for clue in clues {
            new |= case.add(clue);
        }
        if new {
            self.tell_of_call((conn, Side::Client, seq), |_, call| Occurrence::Suspected {
                call,
            });
        }
    }

    /// Adds a clue once a cancellation has had time to come.
    fn brew(&mut self, conn: ConnId, seq: Seq, clue: Clue) {
        let lag = self.state.settings.lag;
        let Some(connection) = self.state.conns.get_mut(&conn) else {
            return;
        };
        let Some(call) = connection.lane_mut(Side::Client).get_mut(seq) else {
            return;
        };
        if call.is_judged() {
            call.case.get_or_insert_default().brewing.push(clue);
            self.set_timer(lag, Due::Ripe(conn, seq));
        }
    }

    /// The same, where the clue becomes clearer with each time that it comes: the last counts.
    fn brew_latest(&mut self, conn: ConnId, seq: Seq, clue: Clue) {
        let kind = clue.evidence.kind;
        let Some(connection) = self.state.conns.get_mut(&conn) else {
            return;
        };
        let call = connection.lane_mut(Side::Client).get_mut(seq);
        if let Some(case) = call.and_then(|call| call.case.as_mut()) {
            if case.has(kind) {
                return;
            }
            case.brewing.retain(|clue| clue.evidence.kind != kind);
        }
        self.brew(conn, seq, clue);
    }

    /// Adds the clues that have had their time. Those of one moment, a retry and the request to
    /// the model that led to it, are added together: the finding names them both.
    pub(super) fn ripen(&mut self, conn: ConnId, seq: Seq) {
        let lag = self.state.settings.lag;
        let until = self.state.now - lag;
        let Some(connection) = self.state.conns.get_mut(&conn) else {
            return;
        };
        let Some(call) = connection.lane_mut(Side::Client).get_mut(seq) else {
            return;
        };
        let Some(case) = &mut call.case else { return };
        let moments = case.brewing.iter().map(|clue| clue.evidence.at);
        let (first, last) = (moments.clone().min(), moments.max());
        if last > Some(until) && first > Some(until - lag) {
            return;
        }
        let ripe: Vec<Clue> = case
            .brewing
            .extract_if(.., |clue| clue.evidence.at <= until)
            .collect();
        if !ripe.is_empty() {
            self.accuse(conn, seq, ripe);
        }
    }
}

fn clue(kind: &'static str, weight: Weight, at: Timestamp, detail: String) -> Clue {
    Clue {
        evidence: Evidence { kind, at, detail },
        weight,
    }
}
