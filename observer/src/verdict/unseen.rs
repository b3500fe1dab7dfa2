//! What went by unseen, and what cannot be concluded because of it.

use super::judge::Judge;
use super::occurrence::Occurrence;
use crate::capture::{Loss, Timestamp};
use crate::session::{ConnId, Side};

impl Judge {
    /// Bytes of a side went by unseen, or could not be read: they may have been the answer, or
    /// the cancellation, of every request in flight.
    pub(super) fn cloud(&mut self, conn: ConnId, from: Side, at: Timestamp) {
        if let Some(conn) = self.state.conns.get_mut(&conn) {
            conn.set_gap(from, at);
        }
        self.cloud_sent_by(conn, from, None);
    }

    /// As [`Self::cloud`], for the requests that were sent by then: where a stream was joined, all
    /// that came later was heard. A session may tell of the joining after a request.
    pub(super) fn cloud_sent_by(&mut self, conn: ConnId, from: Side, limit: Option<Timestamp>) {
        let Some(conn) = self.state.conns.get_mut(&conn) else {
            return;
        };
        conn.lane_mut(from).hidden = true;
        let spoke = conn.spoke(from);
        let grace = self.state.settings.grace;
        let mut cleared = Vec::new();
        for side in [Side::Client, Side::Server] {
            let calls = conn.lane_mut(side).calls_mut();
            for call in calls.filter(|call| limit.is_none_or(|limit| call.sent <= limit)) {
                call.clouded = true;
                if call
                    .case
                    .as_ref()
                    .is_some_and(|case| case.rests_on_silence(spoke, grace))
                {
                    call.case = None;
                    cleared.push((side, call.seq));
                }
            }
        }
        let conn = conn.id;
        for (side, seq) in cleared {
            self.tell_of_call((conn, side, seq), |_, call| Occurrence::Cleared { call });
        }
    }

    /// The capture has lost something, nobody knows of which connection: nothing is concluded
    /// from the silence of what is in flight.
    pub(super) fn lose(&mut self, loss: Loss) {
        let lost = |loss: &Loss| loss.ring_full + loss.unreadable + loss.events_lost;
        let before = self.state.summary.loss.as_ref().map_or(0, lost);
        if lost(&loss) > before {
            let conns = self.state.conns.values_mut();
            let calls = conns.flat_map(|conn| conn.lane_mut(Side::Client).calls_mut());
            calls.for_each(|call| call.tainted = true);
        }
        self.state.summary.loss = Some(loss);
    }
}
