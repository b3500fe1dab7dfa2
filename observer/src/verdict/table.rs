//! Requests come into the table, and leave it with their record.

use super::call::{Call, Past, Seq};
use super::judge::{Judge, tell};
use super::lane::Answer;
use super::occurrence::Occurrence;
use super::reading::TaskNote;
use super::{CallRecord, Outcome, Output};
use crate::capture::Timestamp;
use crate::session::{ConnId, Side};

/// How many requests may be in flight at once, over all connections.
pub(super) const IN_FLIGHT: usize = 100_000;
/// How many bytes the ids and names of the requests in flight may take.
const TEXTS: usize = 64 << 20;

impl Judge {
    /// Enters a request into the table, and drops the oldest where there are too many.
    pub(super) fn enter(&mut self, call: Call) {
        let (conn, from) = (call.conn, call.from);
        self.state.in_flight += 1;
        self.state.texts += call.weight();
        let Some(connection) = self.state.conns.get_mut(&conn) else {
            return;
        };
        connection.lane_mut(from).insert(call);
        while self.state.in_flight > IN_FLIGHT || self.state.texts > TEXTS {
            let Some(oldest) = self.oldest(conn, from) else {
                return;
            };
            self.state.summary.gaps += 1;
            let state = &self.state;
            if let Some(connection) = state.conns.get(&conn)
                && let Some(call) = connection.lane(from).get(oldest)
            {
                tell(
                    &mut self.rules,
                    &Occurrence::Dropped {
                        conn: connection,
                        call,
                    },
                    state,
                    &mut self.desk,
                );
            }
            self.end_call(conn, from, oldest, Outcome::Unknown, self.state.now, None);
        }
    }

    fn oldest(&self, conn: ConnId, from: Side) -> Option<Seq> {
        let lane = self.state.conns.get(&conn)?.lane(from);
        lane.calls().next().map(|call| call.seq)
    }

    /// Ends a request: its record goes out, and it becomes part of the past.
    pub(super) fn end_call(
        &mut self,
        conn: ConnId,
        from: Side,
        seq: Seq,
        outcome: Outcome,
        ended: Timestamp,
        answer: Option<(&Answer, Option<&TaskNote>)>,
    ) {
        let Some(connection) = self.state.conns.get_mut(&conn) else {
            return;
        };
        let Some(mut call) = connection.lane_mut(from).remove(seq) else {
            return;
        };
        self.state.in_flight -= 1;
        self.state.texts -= call.weight();
        *self.state.summary.calls.entry(outcome).or_default() += 1;
        let bytes = answer.map(|(answer, _)| answer.bytes);
        self.desk.outputs.push_back(Output::Call(record(
            &call,
            outcome,
            ended,
            bytes,
            self.desk.now,
        )));
        call.case = None;
        let created = answer
            .and_then(|(_, task)| task)
            .filter(|task| task.created);
        let past = Past {
            call,
            outcome,
            ended,
            answered: answer.is_some(),
            answer_end: answer.and_then(|(answer, _)| answer.end),
            task: created.map(|task| task.id.clone()),
        };
        tell(
            &mut self.rules,
            &Occurrence::Ended { past: &past },
            &self.state,
            &mut self.desk,
        );
        if outcome != Outcome::TornDown {
            self.desk.settle(&past.call);
        }
        if let Some(connection) = self.state.conns.get_mut(&conn) {
            connection.forget_repeat(&past.call);
            connection.lane_mut(from).remember(past);
        }
        self.set_clock(conn);
        if from == Side::Client {
            self.outer_ended(conn);
        }
    }
}

fn record(
    call: &Call,
    outcome: Outcome,
    ended: Timestamp,
    response_bytes: Option<u64>,
    at: Timestamp,
) -> CallRecord {
    let over = outcome != Outcome::Pending;
    CallRecord {
        at,
        conn: call.conn,
        from: call.from,
        id: call.id.clone(),
        method: call.method.to_string(),
        name: call.name.as_deref().map(str::to_owned),
        sent: call.sent,
        ended: over.then_some(ended),
        outcome,
        wasted: call.wasted(response_bytes.map(|_| ended)),
        request_bytes: call.bytes,
        response_bytes,
        progress: call.progress,
        cancel: call.cancel.clone(),
    }
}
