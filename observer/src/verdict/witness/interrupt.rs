//! E7 and S31: the user interrupts the host, or closes its window, and the host lives on without
//! a cancellation.

use std::collections::BTreeSet;
use std::time::Duration;

use super::clue;
use crate::capture::{InterruptKind, Pid, Timestamp};
use crate::session::{ConnId, Side};
use crate::verdict::call::{Clue, Seq, Weight};
use crate::verdict::connection::Connection;
use crate::verdict::host::Manners;
use crate::verdict::judge::{Due, Judge};
use crate::verdict::process::Relation;

/// Within this time two presses of Esc are one gesture.
const TWICE: Duration = Duration::from_secs(5);
/// The kinds of evidence that an interrupt is; they are one kind, however often the user presses.
const KINDS: [&str; 4] = ["key-esc", "key-ctrl-c", "sigint", "window-closed"];

impl Judge {
    pub(in super::super) fn interrupt(
        &mut self,
        pid: Pid,
        kind: InterruptKind,
        sender: Option<Pid>,
        at: Timestamp,
    ) {
        let conns: Vec<ConnId> = self.state.conns.keys().copied().collect();
        for conn in conns {
            let Some(connection) = self.state.conns.get(&conn) else {
                continue;
            };
            if connection.server == Some(pid) {
                self.stop(conn, kind, sender, at);
            } else if let Some(relation) = self.meant(connection, pid, kind) {
                self.interrupted(conn, relation, kind, at);
            }
        }
    }

    /// Whether an interrupt of that process is one of the connection's host.
    fn meant(&self, conn: &Connection, pid: Pid, kind: InterruptKind) -> Option<Relation> {
        let relation = self.state.processes.relation(conn.client?, pid)?;
        match kind {
            InterruptKind::KeyEsc | InterruptKind::KeyCtrlC => Some(relation),
            InterruptKind::Sigint => {
                matches!(relation, Relation::Itself | Relation::Above).then_some(relation)
            }
            // These end a host; they do not interrupt a call.
            InterruptKind::Sigterm | InterruptKind::Sigkill | InterruptKind::Sighup => None,
        }
    }

    fn interrupted(
        &mut self,
        conn: ConnId,
        relation: Relation,
        kind: InterruptKind,
        at: Timestamp,
    ) {
        let grace = self.state.settings.grace;
        let Some(connection) = self.state.conns.get_mut(&conn) else {
            return;
        };
        if kind == InterruptKind::KeyEsc {
            let before = connection.escaped.replace(at);
            let twice = before.is_some_and(|before| at.since(before) <= TWICE);
            let wanted = connection.known.as_ref().map_or(1, |host| host.escapes);
            // It answers what the server asks, or it is the first of two.
            if connection.asks_person() || (wanted > 1 && !twice) {
                return;
            }
        }
        let Some(last) = connection.work().last().map(|call| call.seq) else {
            return;
        };
        let (kind, what) = match kind {
            InterruptKind::KeyEsc => ("key-esc", "the user pressed Esc"),
            InterruptKind::KeyCtrlC => ("key-ctrl-c", "the user pressed Ctrl-C"),
            _ => ("sigint", "the host got SIGINT"),
        };
        let clue = clue(kind, weigh(connection, relation), at, what.into());
        let due = connection.clock.at(at) + grace;
        self.set_active_timer(conn, due, Due::Interrupt(conn, last, clue));
    }

    /// A front end has ended; its host may live on and know of calls that nobody waits for.
    pub(in super::super) fn window_closed(&mut self, pid: Pid, at: Timestamp) {
        let grace = self.state.settings.grace;
        let orphans: Vec<(ConnId, Seq, Duration)> = self
            .state
            .conns
            .values()
            .filter_map(|conn| {
                let client = conn.client?;
                let family = self.state.processes.relation(client, pid) == Some(Relation::Above)
                    && self.state.processes.same_program(client, pid);
                let last = conn.work().last().filter(|_| family)?;
                Some((conn.id, last.seq, conn.clock.at(at) + grace))
            })
            .collect();
        for (conn, last, due) in orphans {
            let detail = "the program that the user saw has ended".into();
            let clue = clue("window-closed", Weight::Weak, at, detail);
            self.set_active_timer(conn, due, Due::Interrupt(conn, last, clue));
        }
    }

    pub(in super::super) fn interrupt_due(&mut self, conn: ConnId, upto: Seq, clue: &Clue) {
        let Some(connection) = self.state.conns.get(&conn) else {
            return;
        };
        let ends = &connection.ends;
        // A host that leaves tears down; it does not abandon.
        if ends.host_began().is_some() || ends.over().is_some() {
            return;
        }
        let due = connection.clock.at(clue.evidence.at) + self.state.settings.grace;
        if self.put_off(conn, due, Due::Interrupt(conn, upto, clue.clone())) {
            return;
        }
        for seq in self.not_cancelled(conn, upto) {
            let mut clue = clue.clone();
            clue.evidence.detail = format!(
                "{}, and no cancellation came within {}",
                clue.evidence.detail,
                crate::verdict::call::spoken(self.state.settings.grace)
            );
            self.accuse(conn, seq, clue);
        }
    }

    fn not_cancelled(&self, conn: ConnId, upto: Seq) -> Vec<Seq> {
        let Some(connection) = self.state.conns.get(&conn) else {
            return Vec::new();
        };
        let calls = connection.work().take_while(|call| call.seq <= upto);
        let fresh = calls.filter(|call| {
            let known = call.case.as_ref();
            !known.is_some_and(|case| KINDS.iter().any(|kind| case.has(kind)))
        });
        fresh.map(|call| call.seq).collect()
    }
}

/// An interrupt is weak evidence where it may have meant other calls, or none.
fn weigh(conn: &Connection, relation: Relation) -> Weight {
    let threads: BTreeSet<_> = conn
        .lane(Side::Client)
        .calls()
        .filter_map(|call| call.turn.thread.as_deref())
        .collect();
    let other_window = relation == Relation::SameProgram && threads.len() > 1;
    let background = conn
        .known
        .as_ref()
        .is_some_and(|host| host.background && host.on_interrupt == Some(Manners::Cancels));
    if other_window || background {
        Weight::Weak
    } else {
        Weight::Strong
    }
}
