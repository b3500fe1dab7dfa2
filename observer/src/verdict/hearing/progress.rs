//! Progress: which request it belongs to.

use super::Place;
use crate::capture::Timestamp;
use crate::jsonrpc::Id;
use crate::session::{ConnId, Side};
use crate::verdict::Evidence;
use crate::verdict::call::{Clue, LATE_PROGRESS, Weight};
use crate::verdict::judge::Judge;
use crate::verdict::lane::Early;
use crate::verdict::occurrence::Occurrence;
use crate::verdict::reading;

impl Judge {
    pub(super) fn progressed(&mut self, place: Place, params: Option<&str>) {
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

    pub(super) fn count_progress(
        &mut self,
        conn: ConnId,
        requester: Side,
        token: &Id,
        at: Timestamp,
    ) {
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
