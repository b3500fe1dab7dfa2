//! E7 and S31: the user interrupts the host, or closes its window, and the host lives on without
//! a cancellation.

use std::time::Duration;

use super::clue;
use crate::capture::{InterruptKind, Pid, Timestamp};
use crate::session::ConnId;
use crate::verdict::call::{Clue, Seq, Weight};
use crate::verdict::connection::Connection;
use crate::verdict::host::Manners;
use crate::verdict::judge::{Due, Judge};
use crate::verdict::process::Relation;

/// Within this time two presses of Esc are one gesture.
const TWICE: Duration = Duration::from_secs(5);
/// Within this time after an Esc that closed a question, another one is a key that was held.
const ONCE: Duration = Duration::from_secs(1);
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
            let itself = connection.client == Some(pid) && kind != InterruptKind::KeyEsc;
            if connection.server == Some(pid) {
                self.stop(conn, kind, sender, at);
            } else if let Some(relation) = self.meant(connection, pid, kind) {
                self.interrupted(conn, pid, relation, kind, at);
            }
            if itself && let Some(connection) = self.state.conns.get_mut(&conn) {
                connection.host_signal = Some((at, kind));
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
        pid: Pid,
        relation: Relation,
        kind: InterruptKind,
        at: Timestamp,
    ) {
        let grace = self.state.settings.grace;
        let asked = self.asks_person(conn);
        let client = self.state.conns.get(&conn).and_then(|conn| conn.client);
        let one_product =
            client.is_some_and(|client| self.state.processes.same_program(client, pid));
        let Some(connection) = self.state.conns.get_mut(&conn) else {
            return;
        };
        connection.interrupted = Some(at);
        if kind == InterruptKind::KeyEsc && !connection.note_escape(at, asked) {
            return;
        }
        let Some(last) = connection.work().last().map(|call| call.seq) else {
            return;
        };
        let (kind, what) = match kind {
            InterruptKind::KeyEsc => ("key-esc", "the user pressed Esc"),
            InterruptKind::KeyCtrlC => ("key-ctrl-c", "the user pressed Ctrl-C"),
            _ => ("sigint", "the host got SIGINT"),
        };
        let clue = clue(
            kind,
            weigh(connection, relation, one_product),
            at,
            what.into(),
        );
        let due = connection.clock.at(at) + grace;
        self.set_active_timer(conn, due, Due::Interrupt(conn, last, clue));
    }

    /// Whether a server of the connection's host waits for an answer of the user.
    fn asks_person(&self, conn: ConnId) -> bool {
        let Some(client) = self.state.conns.get(&conn).map(|conn| conn.client) else {
            return false;
        };
        let mut all = self.state.conns.values();
        all.any(|other| other.client == client && other.asks_person())
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
            self.accuse(conn, seq, [clue]);
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

impl Connection {
    /// Notes an Esc. Whether it is one that interrupts: not if it answers what the server asks, nor
    /// if the host wants two and it is the first.
    fn note_escape(&mut self, at: Timestamp, asked: bool) -> bool {
        let within =
            |before: Option<Timestamp>, time| before.is_some_and(|it| at.since(it) <= time);
        let twice = within(self.escaped.replace(at), TWICE);
        if asked {
            self.escaped_question = Some(at);
            return false;
        }
        if within(self.escaped_question, ONCE) {
            return false;
        }
        let wanted = self.known.as_ref().map_or(1, |host| host.escapes);
        wanted <= 1 || twice
    }
}

/// An interrupt is weak evidence where it may have meant other calls, or none: it was read by a
/// program that is not the host's, or the host is known to cancel what an interrupt meant.
fn weigh(conn: &Connection, relation: Relation, one_product: bool) -> Weight {
    let elsewhere = match relation {
        Relation::Itself => false,
        Relation::Above | Relation::Below => !one_product,
        Relation::SameProgram => true,
    };
    let cancels = conn
        .known
        .as_ref()
        .is_some_and(|host| host.on_interrupt == Some(Manners::Cancels));
    if elsewhere || cancels {
        Weight::Weak
    } else {
        Weight::Strong
    }
}
