//! A cancellation: which request it ends.

use super::Place;
use crate::jsonrpc::Id;
use crate::session::Side;
use crate::verdict::call::Seq;
use crate::verdict::connection::Connection;
use crate::verdict::judge::Judge;
use crate::verdict::occurrence::{Near, Occurrence};
use crate::verdict::reading;
use crate::verdict::{Cancellation, Outcome};

impl Judge {
    pub(super) fn cancelled(&mut self, place: Place, params: Option<&str>) {
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
            return self.cancel_call(place, seq, &cancel);
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

    fn cancel_call(&mut self, place: Place, seq: Seq, cancel: &Cancellation) {
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
            cancel,
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
            self.cancel_call(place, seq, cancel);
        }
        subscription.is_some() || past
    }
}

/// What a cancellation means that matches nothing in flight.
fn unmatched<'a>(
    conn: &'a Connection,
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
    // A server ends a subscription whose request may be in a write that still blocks.
    let unseen = from == Side::Server && conn.has_unseen_of(Side::Client);
    let sure = matches!(near, Near::OtherType(_)) || lane.never_sent(id) && !unseen;
    sure.then_some(Occurrence::CancelledUnknown {
        conn,
        from,
        id,
        near,
        at: cancel.at,
    })
}
