//! `orphan-server`: stdin is closed and the process lives on.

use std::collections::HashMap;

use super::Rule;
use crate::capture::{Pid, Timestamp};
use crate::session::{ConnId, Side};
use crate::verdict::about::{About, clauses};
use crate::verdict::call::spoken;
use crate::verdict::desk::{Desk, Draft};
use crate::verdict::judge::State;
use crate::verdict::occurrence::Occurrence;
use crate::verdict::{Culprit, Revision, Severity};

pub(super) const ABOUT: About = About {
    name: "orphan-server",
    side: "server",
    severity: Severity::Warning,
    grading: None,
    meaning: "The server's stdin is closed and its process lives on.",
    evidence: &[
        "`eof`: the host closed the server's stdin.",
        "`alive`: 10 s later the process, which is watched, has not ended.",
    ],
    exceptions: &[
        "Hosts that close stdin, wait some seconds and then send a signal: 10 s are enough for all \
         of them.",
        "A server that works on calls it still owes to a living host.",
        "A process whose end would not be seen, because it is outside the scope.",
    ],
    clauses: clauses(
        "basic/lifecycle, Shutdown: the client SHOULD close the server's input stream and wait \
         for it to exit",
        "basic/transports/stdio, Shutdown: servers SHOULD exit when their input is closed",
    ),
};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct OrphanServer {
    waiting: HashMap<u64, Closed>,
    keys: u64,
}

#[derive(Debug)]
struct Closed {
    conn: ConnId,
    server: Pid,
    client: Option<Pid>,
    at: Timestamp,
    revision: Option<Revision>,
}

impl Rule for OrphanServer {
    fn see(&mut self, seen: &Occurrence<'_>, state: &State, desk: &mut Desk) {
        if let Occurrence::Eof {
            conn,
            from: Side::Client,
        } = seen
            && let Some(server) = conn.server
        {
            self.keys += 1;
            let closed = Closed {
                conn: conn.id,
                server,
                client: conn.client,
                at: desk.now,
                revision: state.revision(conn.id),
            };
            self.waiting.insert(self.keys, closed);
            desk.wake(desk.now + state.settings.orphan, self.keys);
        }
    }

    fn due(&mut self, key: u64, state: &State, desk: &mut Desk) {
        let Some(closed) = self.waiting.remove(&key) else {
            return;
        };
        if !state.processes.is_watched_alive(closed.server) {
            return;
        }
        let conn = state.conns.get(&closed.conn);
        let host_lives = closed
            .client
            .is_some_and(|client| !state.processes.has_ended(client));
        if host_lives && conn.is_some_and(|conn| conn.work().next().is_some()) {
            self.waiting.insert(key, closed);
            desk.wake(desk.now + state.settings.orphan, key);
            return;
        }
        let after = spoken(desk.now.since(closed.at));
        let message = format!(
            "the server (process {}) lives on {after} after its stdin was closed",
            closed.server
        );
        let draft = Draft::new(&ABOUT, Culprit::Server, message)
            .conn(closed.conn)
            .revision(closed.revision)
            .evidence(
                "eof",
                closed.at,
                "the host closed the server's stdin".into(),
            )
            .evidence(
                "alive",
                desk.now,
                format!("process {} has not ended", closed.server),
            );
        desk.report(draft);
    }
}

#[cfg(test)]
mod tests {
    use crate::verdict::script::judged;

    #[test]
    fn a_server_that_does_not_end() {
        let script = "0 hello 2025-06-18\n1 eof c\n1 exit 10\n30 end";
        assert_eq!(judged(script), " | orphan-server confirmed warning");
    }

    #[test]
    fn servers_that_end_or_still_work() {
        for (what, script) in [
            (
                "it ends when it is told",
                "1 eof c\n7 sigkill 20 10\n7 killed 20 9\n30 end",
            ),
            (
                "it owes an answer",
                "1 call 1 t\n1 eof c\n25 s= 1\n25 eof s\n25 exit 20\n60 end",
            ),
            ("too early to say", "1 eof c\n9 end"),
        ] {
            let verdict = judged(&format!("0 hello 2025-06-18\n{script}"));
            assert!(!verdict.contains("orphan-server"), "{what}: {verdict}");
        }
    }
}
