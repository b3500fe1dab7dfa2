//! S21: the server's own requests, and the calls that they belong to. While one is open all
//! limits of the call stand still; once the call is over it holds up nothing any more.

use crate::capture::Timestamp;
use crate::session::{ConnId, Side};
use crate::verdict::call::Seq;
use crate::verdict::connection::Connection;
use crate::verdict::judge::{Due, Judge};
use crate::verdict::occurrence::Occurrence;

impl Judge {
    /// A call of the host is over: are there requests of the server that belonged to it?
    pub(in super::super) fn outer_ended(&mut self, conn: ConnId) {
        let Some(connection) = self.state.conns.get(&conn) else {
            return;
        };
        if connection.lane(Side::Server).is_empty() {
            return;
        }
        let now = self.state.now;
        let nested = self.state.settings.nested;
        for seq in without_outer(connection) {
            self.set_timer(nested, Due::Left(conn, seq, now));
        }
    }

    pub(in super::super) fn left_due(&mut self, conn: ConnId, seq: Seq, ended: Timestamp) {
        let Some(connection) = self.state.conns.get_mut(&conn) else {
            return;
        };
        let over = connection.ends.host_began().is_some() || connection.ends.over().is_some();
        let lane = connection.lane_mut(Side::Server);
        if over || lane.get(seq).is_none_or(|call| call.left) {
            return;
        }
        lane.leave(seq);
        self.tell_of_call((conn, Side::Server, seq), |_, call| Occurrence::Left {
            call,
            outer_ended: ended,
        });
        self.set_clock(conn);
    }
}

/// The server's open requests whose calls are all over.
fn without_outer(conn: &Connection) -> Vec<Seq> {
    let oldest = conn.work().next().map(|call| call.seq);
    conn.lane(Side::Server)
        .nested()
        .filter(|call| {
            call.within
                .is_some_and(|within| oldest.is_none_or(|oldest| oldest > within))
        })
        .map(|call| call.seq)
        .collect()
}
