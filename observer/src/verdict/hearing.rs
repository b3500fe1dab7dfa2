//! What a message means for the requests in flight.

use super::call::{Call, Clue, LATE_ANSWER, LATE_PROGRESS, Seq, Weight, spoken};
use super::host::KnownHost;
use super::judge::{Due, Judge};
use super::lane::{Answer, Early};
use super::occurrence::{Near, Occurrence};
use super::reading::{self, Asked, TaskNote};
use super::{Cancellation, Evidence, Outcome, Revision};
use crate::capture::Timestamp;
use crate::jsonrpc::{Frame, Id, Kind, Message, Outcome as Answered};
use crate::session::{ConnId, Side};

/// Where a message stands: who sent it, when, and how much of the wire it took.
#[derive(Clone, Copy)]
struct Place {
    conn: ConnId,
    from: Side,
    at: Timestamp,
    bytes: u64,
    end: Option<u64>,
}

impl Judge {
    pub(super) fn message(
        &mut self,
        conn: ConnId,
        from: Side,
        offset: Option<u64>,
        bytes: u64,
        frame: &Frame,
    ) {
        let at = self.state.now;
        let count = frame.messages().len();
        if frame.is_batch() {
            let revision = self.state.revision(conn);
            self.tell_of(conn, |conn| Occurrence::Batch {
                conn,
                from,
                revision,
                count,
            });
        }
        if from == Side::Client
            && let Some(conn) = self.state.conns.get_mut(&conn)
        {
            conn.client_spoke = Some(at);
        }
        let end = offset.map(|offset| offset + bytes);
        let place = Place {
            conn,
            from,
            at,
            bytes: bytes / count.max(1) as u64,
            end,
        };
        for message in frame.messages() {
            self.one_message(place, frame, message);
        }
    }

    fn one_message(&mut self, place: Place, frame: &Frame, message: &Message) {
        match &message.kind {
            Kind::Request { id, method } => self.request(place, id, method, frame.params(message)),
            Kind::Response { id, outcome } => {
                self.response(place, id.as_ref(), *outcome, frame.result(message));
            }
            Kind::Notification { method } => {
                let params = frame.params(message);
                match method.as_ref() {
                    "notifications/cancelled" => self.cancelled(place, params),
                    "notifications/progress" => self.progressed(place, params),
                    method => self.tell_of(place.conn, |conn| Occurrence::Notified {
                        conn,
                        from: place.from,
                        method,
                        params,
                    }),
                }
            }
        }
    }

    fn request(&mut self, place: Place, id: &Id, method: &str, params: Option<&str>) {
        let Place { conn, from, .. } = place;
        let mut asked = Asked::read(method, params);
        let revision = self.introduce(place, method, &asked);
        let older = self.older(conn, from, id);
        let Some(connection) = self.state.conns.get_mut(&conn) else {
            return;
        };
        let mut call = Call {
            conn,
            seq: connection.next_seq(),
            from,
            id: id.clone(),
            method: method.into(),
            name: asked.name.take(),
            sent: place.at,
            sent_active: connection.clock.at(place.at),
            bytes: place.bytes,
            end: place.end,
            revision,
            token: asked.token.take(),
            turn: std::mem::take(&mut asked.turn),
            fingerprint: asked.fingerprint,
            as_task: asked.as_task,
            progress: 0,
            last_progress: None,
            cancel: None,
            cancel_end: None,
            // Two directions have no mutual order: the gap may hold the answer to this request.
            clouded: connection
                .gap(from.peer())
                .is_some_and(|gap| place.at.since(gap) <= self.state.settings.reorder),
            tainted: older.is_some(),
            within: None,
            left: false,
            case: None,
        };
        if from == Side::Server {
            call.within = connection.work().last().map(|call| call.seq);
        }
        let seq = call.seq;
        let token = call.token.clone();
        self.enter(call);
        self.set_clock(conn);
        self.doubled(conn, from, older, seq);
        self.tell_of_call((conn, from, seq), |conn, call| Occurrence::Sent {
            conn,
            call,
            asked: &asked,
        });
        if from == Side::Client {
            self.watch(conn, seq);
        }
        self.catch_up(conn, from, id, token.as_ref());
    }

    /// Learns from a request who the host is and which revision is in force for it.
    fn introduce(&mut self, place: Place, method: &str, asked: &Asked) -> Option<Revision> {
        let more = &self.state.settings.hosts;
        let conn = self.state.conns.get_mut(&place.conn)?;
        if place.from == Side::Client {
            if method == "initialize" {
                conn.lane_mut(Side::Client).begin_session();
                conn.lane_mut(Side::Server).begin_session();
                conn.revision = asked.revision;
            }
            if let Some(client) = &asked.client
                && conn.info.as_ref() != Some(client)
            {
                conn.known = KnownHost::find(client, more);
                conn.info = Some(client.clone());
            }
        }
        asked.revision.or(conn.revision)
    }

    /// The request in flight that has the id already.
    fn older(&mut self, conn: ConnId, from: Side, id: &Id) -> Option<Seq> {
        let lane = self.state.conns.get(&conn)?.lane(from);
        let older = lane.by_id(id)?;
        // Its answer may be what went by unseen; then the id is free again.
        if lane.get(older)?.clouded {
            self.end_call(conn, from, older, Outcome::Unknown, self.state.now, None);
            return None;
        }
        Some(older)
    }

    /// Two requests under one id: at once, or one after the other.
    fn doubled(&mut self, conn: ConnId, from: Side, older: Option<Seq>, newer: Seq) {
        let Some(connection) = self.state.conns.get_mut(&conn) else {
            return;
        };
        let Some(older) = older else {
            let lane = connection.lane(from);
            let Some(call) = lane.get(newer) else { return };
            if lane.past(&call.id).is_some() {
                self.tell_of(conn, |conn| {
                    let call = conn.lane(from).get(newer)?;
                    Some(Occurrence::Reused {
                        call,
                        past: conn.lane(from).past(&call.id)?,
                    })
                });
            }
            return;
        };
        let stateless = connection
            .lane(from)
            .get(newer)
            .and_then(|call| call.revision)
            .is_some_and(Revision::is_stateless);
        if stateless {
            // The id may be used again once it is answered; the answer's record may be late.
            self.set_timer(
                self.state.settings.reorder,
                Due::Duplicate(conn, from, older, newer),
            );
        } else {
            self.duplicate_due(conn, from, older, newer);
        }
    }

    pub(super) fn duplicate_due(&mut self, conn: ConnId, from: Side, older: Seq, newer: Seq) {
        let Some(connection) = self.state.conns.get_mut(&conn) else {
            return;
        };
        let lane = connection.lane_mut(from);
        if lane.get(newer).is_none() {
            return;
        }
        let Some(call) = lane.get_mut(older) else {
            if let Some(call) = lane.get_mut(newer) {
                call.tainted = false;
            }
            return;
        };
        call.tainted = true;
        self.tell_of(conn, |conn| {
            let lane = conn.lane(from);
            Some(Occurrence::Duplicate {
                older: lane.get(older)?,
                newer: lane.get(newer)?,
            })
        });
    }

    /// Hands a request what came for it before it was seen.
    fn catch_up(&mut self, conn: ConnId, from: Side, id: &Id, token: Option<&Id>) {
        let Some(connection) = self.state.conns.get_mut(&conn) else {
            return;
        };
        for held in connection.lane_mut(from).take_held(id, token) {
            match held.what {
                Early::Answer(answer) => {
                    if let Some(seq) = self.in_flight(conn, from, id) {
                        self.answer(conn, from, seq, &answer, None);
                    }
                }
                Early::Progress(token) => self.count_progress(conn, from, &token, held.at),
            }
        }
    }

    fn in_flight(&self, conn: ConnId, from: Side, id: &Id) -> Option<Seq> {
        self.state.conns.get(&conn)?.lane(from).by_id(id)
    }

    fn response(&mut self, place: Place, id: Option<&Id>, outcome: Answered, result: Option<&str>) {
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

    fn hold(&mut self, conn: ConnId, requester: Side, what: Early) {
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

    /// What was held long enough came for nothing that was seen.
    pub(super) fn release_held(&mut self, conn: ConnId, requester: Side, until: Timestamp) {
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
    fn answer(
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
        let task = answer.result.as_deref().and_then(TaskNote::read);
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

    fn cancelled(&mut self, place: Place, params: Option<&str>) {
        let Place { conn, from, at, .. } = place;
        let (id, reason) = reading::cancellation(params);
        let cancel = Cancellation { at, reason };
        let Some(id) = id else {
            self.tell_of(conn, |conn| Occurrence::CancelMalformed { conn, from, at });
            return;
        };
        let Some(connection) = self.state.conns.get_mut(&conn) else {
            return;
        };
        if let Some(seq) = connection.lane(from).by_id(&id) {
            return self.cancel_call(place, seq, cancel);
        }
        if from == Side::Server && self.ends_subscription(place, &id, &cancel) {
            return;
        }
        let lane = self
            .state
            .conns
            .get_mut(&conn)
            .map(|connection| connection.lane_mut(from));
        if let Some(lane) = lane
            && lane.past(&id).is_none()
            && let Some(seq) = lane.by_loose_id(&id)
            && let Some(call) = lane.get_mut(seq)
        {
            // It meant to cancel: its silence is no abandonment.
            call.tainted = true;
        }
        self.tell_of(conn, |conn| unmatched(conn, from, &id, &cancel));
    }

    fn cancel_call(&mut self, place: Place, seq: Seq, cancel: Cancellation) {
        let Place {
            conn, from, end, ..
        } = place;
        let Some(connection) = self.state.conns.get_mut(&conn) else {
            return;
        };
        let Some(call) = connection.lane_mut(from).get_mut(seq) else {
            return;
        };
        let at = cancel.at;
        if let Some(case) = &mut call.case {
            case.brewing.clear();
        }
        call.cancel = Some(cancel.clone());
        call.cancel_end = end;
        self.tell_of_call((conn, from, seq), |_, call| Occurrence::Cancelled {
            call,
            cancel: &cancel,
        });
        self.end_call(conn, from, seq, Outcome::Cancelled, at, None);
    }

    /// A server ends a subscription with a cancellation of the client's request (2026-07-28).
    fn ends_subscription(&mut self, place: Place, id: &Id, cancel: &Cancellation) -> bool {
        let conn = place.conn;
        let Some(lane) = self
            .state
            .conns
            .get(&conn)
            .map(|conn| conn.lane(Side::Client))
        else {
            return false;
        };
        let subscription = lane
            .by_id(id)
            .and_then(|seq| lane.get(seq))
            .filter(|call| call.method.as_ref() == "subscriptions/listen")
            .map(|call| call.seq);
        let past = lane.past(id).is_some_and(|past| past.call.may_stay_open());
        if let Some(seq) = subscription {
            let place = Place {
                from: Side::Client,
                ..place
            };
            self.cancel_call(place, seq, cancel.clone());
        }
        subscription.is_some() || past
    }

    fn progressed(&mut self, place: Place, params: Option<&str>) {
        let Place { conn, from, at, .. } = place;
        let Some(token) = reading::progress_token(params) else {
            return;
        };
        let requester = from.peer();
        let Some(lane) = self.state.conns.get(&conn).map(|conn| conn.lane(requester)) else {
            return;
        };
        if lane.by_token(&token).is_some() {
            self.count_progress(conn, requester, &token, at);
        } else if lane.past_by_token(&token).is_some() {
            self.tell_of(conn, |conn| {
                let past = conn.lane(requester).past_by_token(&token)?;
                Some(Occurrence::ProgressPast { conn, past, at })
            });
        } else {
            self.hold(conn, requester, Early::Progress(token));
        }
    }

    fn count_progress(&mut self, conn: ConnId, requester: Side, token: &Id, at: Timestamp) {
        let Some(connection) = self.state.conns.get_mut(&conn) else {
            return;
        };
        let lane = connection.lane_mut(requester);
        let Some(call) = lane.by_token(token).and_then(|seq| lane.get_mut(seq)) else {
            return;
        };
        call.progress += 1;
        call.last_progress = Some(at);
        let seq = call.seq;
        let since = call.given_up();
        if let Some(case) = &mut call.case
            && let Some(since) = since
        {
            let detail = "the server goes on reporting progress".into();
            let evidence = Evidence {
                kind: LATE_PROGRESS,
                at,
                detail,
            };
            if at > since
                && case.add(Clue {
                    evidence,
                    weight: Weight::Effect,
                })
            {
                self.tell_of_call((conn, requester, seq), |_, call| Occurrence::Suspected {
                    call,
                });
            }
        }
    }
}

/// Whether an answer comes after evidence of abandonment; it is then evidence itself.
fn is_late(call: &mut Call, answer: &Answer, reorder: std::time::Duration) -> bool {
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

/// What a cancellation means that matches nothing in flight.
fn unmatched<'a>(
    conn: &'a super::connection::Connection,
    from: Side,
    id: &'a Id,
    cancel: &'a Cancellation,
) -> Option<Occurrence<'a>> {
    let lane = conn.lane(from);
    if let Some(past) = lane.past(id) {
        return Some(Occurrence::CancelledPast { conn, past, cancel });
    }
    let other = conn.lane(from.peer());
    let near = match lane.by_loose_id(id).and_then(|seq| lane.get(seq)) {
        Some(call) => Near::OtherType(call),
        None if other.by_id(id).is_some() => Near::OtherDirection,
        None => Near::Nothing,
    };
    let sure = matches!(near, Near::OtherType(_)) || lane.never_sent(id);
    sure.then_some(Occurrence::CancelledUnknown {
        conn,
        from,
        id,
        near,
        at: cancel.at,
    })
}

/// The part of a result that a verdict may need: small ones that name a task, a revision or a
/// server.
fn kept(result: &str) -> Option<Box<str>> {
    const SMALL: usize = 64 << 10;
    let named = |name: &[u8]| memchr::memmem::find(result.as_bytes(), name).is_some();
    let needed = result.len() <= SMALL
        && (named(b"taskId") || named(b"protocolVersion") || named(b"serverInfo"));
    needed.then(|| result.into())
}
