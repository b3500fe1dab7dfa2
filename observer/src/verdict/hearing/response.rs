//! An answer: which request it belongs to, and whether anybody still waits for it.

use std::time::Duration;

use super::Place;
use crate::capture::Timestamp;
use crate::jsonrpc::{Id, Outcome as Answered};
use crate::session::{ConnId, Side};
use crate::verdict::call::{Call, Clue, LATE_ANSWER, Seq, Weight, spoken};
use crate::verdict::judge::{Due, Judge};
use crate::verdict::lane::{Answer, Early};
use crate::verdict::occurrence::Occurrence;
use crate::verdict::reading::{self, READ_RESULT, TaskNote};
use crate::verdict::{Evidence, Outcome};

impl Judge {
    pub(super) fn response(
        &mut self,
        place: Place,
        id: Option<&Id>,
        outcome: Answered,
        result: Option<&str>,
    ) {
        let Place { conn, from, at, .. } = place;
        let requester = from.peer();
        let id = match id {
            Some(id) if *id != Id::Null => id,
            // An error whose request could not be read has no id, or null.
            _ if outcome != Answered::Result => return,
            id => {
                self.tell_of(conn, |conn| Occurrence::UnknownAnswer {
                    conn,
                    from,
                    id,
                    at,
                });
                return;
            }
        };
        let mut answer = Answer {
            id: id.clone(),
            at,
            outcome,
            bytes: place.bytes,
            end: place.end,
            result: None,
        };
        let Some(connection) = self.state.conns.get_mut(&conn) else {
            return;
        };
        let lane = connection.lane(requester);
        let exact = lane.by_id(id);
        if let Some(seq) = exact {
            answer.result = result.and_then(kept);
            return self.answer(conn, requester, seq, &answer, None);
        }
        let loose = lane.by_loose_id(id).filter(|_| lane.past(id).is_none());
        if let Some(seq) = loose {
            answer.result = result.and_then(kept);
            return self.answer(conn, requester, seq, &answer, Some(id));
        }
        let given_up = lane
            .past(id)
            .is_some_and(|past| past.outcome == Outcome::Cancelled);
        if given_up {
            return self.echo(conn, requester, &answer);
        }
        answer.result = result.and_then(kept);
        self.hold(conn, requester, Early::Answer(answer));
    }

    pub(super) fn hold(&mut self, conn: ConnId, requester: Side, what: Early) {
        let now = self.state.now;
        if let Some(connection) = self.state.conns.get_mut(&conn) {
            connection.lane_mut(requester).hold(now, what);
            self.set_timer(self.state.settings.reorder, Due::Held(conn, requester));
        }
    }

    fn echo(&mut self, conn: ConnId, requester: Side, answer: &Answer) {
        self.tell_of(conn, |conn| {
            let past = conn.lane(requester).past(&answer.id)?;
            Some(Occurrence::Echo { conn, past, answer })
        });
    }

    /// What was held long enough came for nothing that was seen. Where the request may be in a
    /// write that still blocks, it is held on until that is seen, and dropped where it never is.
    pub(in super::super) fn release_held(
        &mut self,
        conn: ConnId,
        requester: Side,
        until: Timestamp,
    ) {
        if let Some(connection) = self.state.conns.get_mut(&conn)
            && connection.has_unseen_of(requester)
        {
            connection.lane_mut(requester).waits = true;
            return;
        }
        while let Some(held) = self
            .state
            .conns
            .get_mut(&conn)
            .and_then(|connection| connection.lane_mut(requester).take_stale(until))
        {
            match held.what {
                Early::Answer(answer) => self.release_answer(conn, requester, &answer),
                Early::Progress(token) => {
                    self.tell_of(conn, |conn| {
                        conn.lane(requester).never_given(&token).then_some(
                            Occurrence::ProgressUnknown {
                                conn,
                                token: &token,
                                at: held.at,
                            },
                        )
                    });
                }
            }
        }
    }

    fn release_answer(&mut self, conn: ConnId, requester: Side, answer: &Answer) {
        let from = requester.peer();
        self.tell_of(conn, |conn| {
            let lane = conn.lane(requester);
            match lane.past(&answer.id) {
                Some(past) => Some(Occurrence::Echo { conn, past, answer }),
                None => lane
                    .never_sent(&answer.id)
                    .then_some(Occurrence::UnknownAnswer {
                        conn,
                        from,
                        id: Some(&answer.id),
                        at: answer.at,
                    }),
            }
        });
    }

    /// A request in flight is answered.
    pub(super) fn answer(
        &mut self,
        conn: ConnId,
        requester: Side,
        seq: Seq,
        answer: &Answer,
        written: Option<&Id>,
    ) {
        let reorder = self.state.settings.reorder;
        let Some(connection) = self.state.conns.get_mut(&conn) else {
            return;
        };
        let Some(call) = connection.lane_mut(requester).get_mut(seq) else {
            return;
        };
        if call.method.as_ref() == "initialize"
            && let Some(result) = &answer.result
        {
            let settled = reading::negotiated(result);
            let name = reading::server_name(result);
            call.revision = settled.or(call.revision);
            connection.revision = settled.or(connection.revision);
            connection.server_name = name;
        } else if is_late(call, answer, reorder) {
            self.tell_of_call((conn, requester, seq), |_, call| Occurrence::Suspected {
                call,
            });
        }
        let Some(connection) = self.state.conns.get(&conn) else {
            return;
        };
        let Some(call) = connection.lane(requester).get(seq) else {
            return;
        };
        let abandoned = call.case.as_ref().is_some_and(|case| case.convicts());
        let outcome = match answer.outcome {
            _ if abandoned => Outcome::Abandoned,
            Answered::Result => Outcome::Answered,
            Answered::Error { .. } => Outcome::Failed,
        };
        let task = answer
            .result
            .as_deref()
            .and_then(|result| TaskNote::read(result, call.as_task));
        let ended = answer.at.max(call.sent);
        self.tell_of_call((conn, requester, seq), |conn, call| Occurrence::Answered {
            conn,
            call,
            answer,
            task: task.as_ref(),
            written,
        });
        self.end_call(
            conn,
            requester,
            seq,
            outcome,
            ended,
            Some((answer, task.as_ref())),
        );
    }
}

/// Whether an answer comes after evidence of abandonment; it is then evidence itself.
fn is_late(call: &mut Call, answer: &Answer, reorder: Duration) -> bool {
    let clouded = call.clouded;
    let Some(case) = &mut call.case else {
        return false;
    };
    for clue in std::mem::take(&mut case.brewing) {
        // The answer's record may only be late, and the next equal call right.
        if !clouded && answer.at.since(clue.evidence.at) > reorder {
            case.add(clue);
        }
    }
    let Some(since) = call.given_up().filter(|_| !clouded) else {
        return false;
    };
    let Some(case) = &mut call.case else {
        return false;
    };
    let detail = format!("the answer came {} later", spoken(answer.at.since(since)));
    let evidence = Evidence {
        kind: LATE_ANSWER,
        at: answer.at,
        detail,
    };
    case.add(Clue {
        evidence,
        weight: Weight::Effect,
    })
}

/// The part of a result that a verdict may need: small ones that name a task, a revision or a
/// server.
fn kept(result: &str) -> Option<Box<str>> {
    let named = |name: &[u8]| memchr::memmem::find(result.as_bytes(), name).is_some();
    let needed = result.len() <= READ_RESULT
        && (named(b"taskId") || named(b"protocolVersion") || named(b"serverInfo"));
    needed.then(|| result.into())
}
