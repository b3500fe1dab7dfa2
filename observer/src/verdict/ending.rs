//! How a connection ends, and what that means for the requests in flight.

use super::call::{Call, Case, Seq, Weight};
use super::connection::{Ends, Stop};
use super::judge::{Due, Judge};
use super::occurrence::Occurrence;
use super::process::Relation;
use super::{Outcome, Settings};
use crate::capture::{Fate, InterruptKind, Pid, Timestamp};
use crate::session::{ConnId, Side};

impl Judge {
    pub(super) fn eof(&mut self, conn: ConnId, from: Side, at: Timestamp) {
        let ends = &mut self.open(conn).ends;
        match from {
            Side::Client => ends.client_eof.get_or_insert(at),
            Side::Server => ends.server_eof.get_or_insert(at),
        };
        self.tell_of(conn, |conn| Occurrence::Eof { conn, from });
        // A client may close stdin and go on reading; a server that closes stdout is done.
        if from == Side::Server {
            self.settle(conn);
        }
    }

    pub(super) fn process_exit(&mut self, pid: Pid, fate: Option<Fate>, at: Timestamp) {
        self.window_closed(pid, at);
        self.state.processes.exited(pid);
        let mut ended = Vec::new();
        for conn in self.state.conns.values_mut() {
            if conn.client == Some(pid) {
                conn.ends.client_exit.get_or_insert(at);
                ended.push(conn.id);
            }
            if conn.server == Some(pid) {
                conn.ends.server_exit.get_or_insert((at, fate));
                ended.push(conn.id);
            }
        }
        for conn in ended {
            self.settle(conn);
        }
    }

    /// A signal to a server: whoever sent it ends the connection.
    pub(super) fn stop(
        &mut self,
        conn: ConnId,
        kind: InterruptKind,
        sender: Option<Pid>,
        at: Timestamp,
    ) {
        let Some(connection) = self.state.conns.get_mut(&conn) else {
            return;
        };
        let relation = connection
            .client
            .zip(sender)
            .and_then(|(client, sender)| self.state.processes.relation(client, sender));
        let by_host = !matches!(relation, None | Some(Relation::SameProgram));
        connection.ends.stop = Some(Stop {
            at,
            kind,
            sender,
            by_host,
        });
    }

    /// Waits for the records that belong to the same moment, then concludes.
    pub(super) fn settle(&mut self, conn: ConnId) {
        let Some(connection) = self.state.conns.get_mut(&conn) else {
            return;
        };
        if !connection.ends.settling {
            connection.ends.settling = true;
            self.set_timer(self.state.settings.reorder, Due::Settle(conn));
        }
    }

    /// Ends the requests of a connection that is over, or of a log that is.
    pub(super) fn conclude(&mut self, conn: ConnId, log_ends: bool) {
        let Some(connection) = self.state.conns.get_mut(&conn) else {
            return;
        };
        connection.ends.settling = false;
        let ends = connection.ends.clone();
        let over = ends.over().or(ends.client_eof.filter(|_| log_ends));
        // A session that began anew is not over because the one before was.
        if over.is_some() || log_ends {
            self.end_calls(conn, over);
        }
        if ends.closed.is_some() && !log_ends {
            self.forget(conn);
        }
    }

    /// Ends all requests in flight, as the connection is over, or the session or the log is.
    pub(super) fn end_calls(&mut self, conn: ConnId, over: Option<Timestamp>) {
        for from in [Side::Client, Side::Server] {
            let Some(connection) = self.state.conns.get(&conn) else {
                return;
            };
            let calls: Vec<_> = connection.lane(from).calls().map(|call| call.seq).collect();
            for seq in calls {
                self.end_unanswered((conn, from, seq), over);
            }
        }
    }

    /// Ends a request that can have no answer any more, or has none where the log ends.
    pub(super) fn end_unanswered(
        &mut self,
        (conn, from, seq): (ConnId, Side, Seq),
        over: Option<Timestamp>,
    ) {
        let Some(connection) = self.state.conns.get(&conn) else {
            return;
        };
        let Some(call) = connection.lane(from).get(seq) else {
            return;
        };
        let outcome = outcome(call, &connection.ends, over, &self.state.settings);
        if outcome == Outcome::TornDown && from == Side::Client && !call.may_stay_open() {
            self.tell_of_call((conn, from, seq), |conn, call| Occurrence::TornDown {
                conn,
                call,
            });
        }
        let ended = over.unwrap_or(self.state.now);
        self.end_call(conn, from, seq, outcome, ended, None);
    }
}

fn outcome(call: &Call, ends: &Ends, over: Option<Timestamp>, settings: &Settings) -> Outcome {
    let convicted = call.case.as_ref().is_some_and(|case| {
        case.convicts() && !(over.is_some() && was_leaving(case, ends, settings))
    });
    match over {
        _ if convicted => Outcome::Abandoned,
        _ if call.clouded => Outcome::Unknown,
        Some(_) => Outcome::TornDown,
        None => Outcome::Pending,
    }
}

/// Whether the only evidence is that the host was asked to leave, and it left soon after.
fn was_leaving(case: &Case, ends: &Ends, settings: &Settings) -> bool {
    let mut own = case
        .clues
        .iter()
        .filter(|clue| clue.weight != Weight::Effect);
    let Some(left) = ends.host_began().or(ends.over()) else {
        return false;
    };
    own.all(|clue| {
        matches!(clue.evidence.kind, "sigint" | "key-ctrl-c")
            && left.since(clue.evidence.at) <= settings.shutdown
    })
}
