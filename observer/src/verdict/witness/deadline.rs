//! E2 and S3: a time limit is over. Only limits that the user gave: the host's own defaults can
//! be set otherwise, and rank evidence without being any.

use std::time::Duration;

use super::clue;
use crate::session::{ConnId, Side};
use crate::verdict::call::{Call, DEADLINE, Seq, Weight, spoken};
use crate::verdict::connection::Connection;
use crate::verdict::judge::{Due, Judge};

/// How exactly a request must fit the end of a limit.
const JITTER: Duration = Duration::from_millis(500);
/// How many calls in flight are looked at for a limit that has just ended.
const LOOKED_AT: usize = 1000;

impl Judge {
    pub(in super::super) fn set_deadline(&mut self, conn: ConnId, seq: Seq) {
        let Some(connection) = self.state.conns.get(&conn) else {
            return;
        };
        let Some(call) = connection.lane(Side::Client).get(seq) else {
            return;
        };
        if let Some(limit) = self.limit_of(call) {
            let due = call.sent_active + limit + self.state.settings.grace;
            self.set_active_timer(conn, due, Due::Deadline(conn, seq));
        }
    }

    fn limit_of(&self, call: &Call) -> Option<Duration> {
        let tool = call
            .name
            .as_deref()
            .filter(|_| call.method.as_ref() == "tools/call")?;
        self.state.settings.deadline(tool)
    }

    pub(in super::super) fn deadline_due(&mut self, conn: ConnId, seq: Seq) {
        let Some(connection) = self.state.conns.get(&conn) else {
            return;
        };
        let Some(call) = connection.lane(Side::Client).get(seq) else {
            return;
        };
        let Some(limit) = self.limit_of(call) else {
            return;
        };
        let over = begun(connection, call) + limit;
        let due = over + self.state.settings.grace;
        if connection.ends.host_began().is_some()
            || self.put_off(conn, due, Due::Deadline(conn, seq))
        {
            return;
        }
        let at = self.state.now - self.state.settings.grace;
        let detail = format!("its time limit of {} was over", spoken(limit));
        self.accuse(conn, seq, [clue(DEADLINE, Weight::Weak, at, detail)]);
    }

    /// A request of the host that comes just when the limit of another is over.
    pub(in super::super) fn watch_limits(&mut self, conn: ConnId, newer: Seq) {
        if self.state.settings.deadlines.is_empty() {
            return;
        }
        let Some(connection) = self.state.conns.get(&conn) else {
            return;
        };
        let now = connection.clock.at(self.state.now);
        let ended: Vec<Seq> = connection
            .work()
            .take(LOOKED_AT)
            .filter(|call| call.seq != newer)
            .filter(|call| {
                self.limit_of(call).is_some_and(|limit| {
                    let over = begun(connection, call) + limit;
                    over <= now && now <= over + JITTER
                })
            })
            .map(|call| call.seq)
            .collect();
        for seq in ended {
            let detail = "the host went on just when the time limit was over".into();
            let clue = clue("request-at-limit", Weight::Weak, self.state.now, detail);
            self.brew(conn, seq, clue);
        }
    }
}

/// Since when the limit runs: progress starts it anew, unless the host is known not to care.
fn begun(conn: &Connection, call: &Call) -> Duration {
    let resets = conn.known.as_ref().is_none_or(|host| host.progress_resets);
    match call.last_progress {
        Some(at) if resets => conn.clock.at(at).max(call.sent_active),
        _ => call.sent_active,
    }
}
