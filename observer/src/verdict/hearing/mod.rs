//! What a message means for the requests in flight.

mod cancel;
mod progress;
mod request;
mod response;

use super::judge::{Due, Judge};
use super::occurrence::Occurrence;
use crate::capture::Timestamp;
use crate::jsonrpc::{Frame, Kind, Message};
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
        let end = offset.map(|offset| offset + bytes);
        self.hear(conn, from, end, at);
        self.end_spread(conn, from);
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

    /// A line of that side was seen, or a gap, and ends there: what waited for it may be next.
    pub(super) fn hear(&mut self, conn: ConnId, from: Side, end: Option<u64>, at: Timestamp) {
        let connection = self.open(conn);
        connection.hear(from, end, at);
        if std::mem::take(&mut connection.lane_mut(from).waits) {
            self.set_timer(self.state.settings.reorder, Due::Held(conn, from));
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
}
