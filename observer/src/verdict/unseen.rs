//! What went by unseen, and what cannot be concluded because of it.

use super::judge::Judge;
use super::occurrence::Occurrence;
use crate::capture::{Loss, Timestamp};
use crate::session::{ConnId, Side};

impl Judge {
    /// Bytes of a side went by unseen, or could not be read: they may have been the answer, or
    /// the cancellation, of every request in flight.
    pub(super) fn cloud(&mut self, conn: ConnId, from: Side, at: Option<Timestamp>) {
        let Some(conn) = self.state.conns.get_mut(&conn) else {
            return;
        };
        if let Some(at) = at {
            conn.set_gap(from, at);
        }
        conn.lane_mut(from).hidden = true;
        let spoke = conn.spoke(from);
        let grace = self.state.settings.grace;
        let mut cleared = Vec::new();
        for side in [Side::Client, Side::Server] {
            for call in conn.lane_mut(side).calls_mut() {
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
