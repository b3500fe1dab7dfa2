//! `restart-pending`: the host replaced the server process while the old one owed answers.

use super::Rule;
use crate::capture::{Pid, Timestamp};
use crate::jsonrpc::Outcome as Answered;
use crate::session::Side;
use crate::verdict::about::{About, clauses};
use crate::verdict::call::{Call, spoken};
use crate::verdict::connection::{Cause, Connection};
use crate::verdict::desk::{Desk, Draft};
use crate::verdict::judge::State;
use crate::verdict::occurrence::Occurrence;
use crate::verdict::{Culprit, Severity};

pub(super) const ABOUT: About = About {
    name: "restart-pending",
    side: "host",
    severity: Severity::Warning,
    grading: None,
    meaning: "The host replaced the server process while the old one owed answers.",
    evidence: &[
        "`teardown`: the host ended the connection with the call in flight, and lives on.",
        "`restart`: within 30 s it begins a session with a new process of the same command, or \
         with a server that gives itself the same name. Supersedes `torn-down-pending`.",
    ],
    exceptions: &[
        "A second server process beside the first: several windows or threads have one each.",
        "A server that died by itself, and is started again.",
        "A probe in a process of its own (`server/discover`), followed by a session in another.",
        "A new session on the same connection.",
    ],
    clauses: clauses(
        "basic/lifecycle, Timeouts: the sender SHOULD issue a cancellation notification for that \
         request; Shutdown is for the end of a session",
        "basic/transports/stdio: the client MUST send notifications/cancelled to cancel a request; \
         the process is not its lifetime",
    ),
};

/// How many torn down calls are remembered.
const REMEMBERED: usize = 1024;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct RestartPending {
    torn: Vec<Torn>,
}

#[derive(Debug)]
struct Torn {
    at: Timestamp,
    client: Pid,
    server: Option<Pid>,
    server_name: Option<Box<str>>,
    call: Call,
    number: Option<u32>,
}

impl Rule for RestartPending {
    fn see(&mut self, seen: &Occurrence<'_>, state: &State, desk: &mut Desk) {
        match seen {
            Occurrence::TornDown { conn, call } => self.remember(conn, call, state, desk),
            Occurrence::Sent { conn, call, .. } if begins(call) => {
                self.restarted(conn, call.sent, state, desk);
            }
            Occurrence::Answered {
                conn, call, answer, ..
            } if begins(call) && answer.outcome == Answered::Result => {
                self.restarted(conn, answer.at, state, desk);
            }
            _ => {}
        }
    }
}

impl RestartPending {
    fn remember(&mut self, conn: &Connection, call: &Call, state: &State, desk: &Desk) {
        let by_host = matches!(conn.ends.cause(&state.settings), Cause::Host);
        if let Some(client) = conn.client
            && by_host
            && conn.outlived(call).is_none()
            && conn.ends.client_exit.is_none()
        {
            self.torn.push(Torn {
                at: conn.ends.host_began().unwrap_or(desk.now),
                client,
                server: conn.server,
                server_name: conn.server_name.clone(),
                call: call.clone(),
                number: desk.standing(call),
            });
            if self.torn.len() > REMEMBERED {
                self.torn.remove(0);
            }
        }
    }

    fn restarted(&mut self, conn: &Connection, at: Timestamp, state: &State, desk: &mut Desk) {
        let replaced = self
            .torn
            .extract_if(.., |torn| torn.is_replaced_by(conn, at, state));
        for torn in replaced.collect::<Vec<_>>() {
            let lag = spoken(at.since(torn.at));
            let message = format!(
                "the host replaced the server while it owed an answer to {}",
                torn.call.title()
            );
            let draft = Draft::new(&ABOUT, Culprit::Host, message)
                .call(&torn.call)
                .evidence("teardown", torn.at, "the host ended the connection".into())
                .evidence(
                    "restart",
                    at,
                    format!("{lag} later it began a session with a new one"),
                )
                .supersedes(torn.number);
            desk.report(draft);
        }
        self.torn
            .retain(|torn| at.since(torn.at) <= state.settings.restart);
    }
}

impl Torn {
    fn is_replaced_by(&self, conn: &Connection, at: Timestamp, state: &State) -> bool {
        let soon = at >= self.at && at.since(self.at) <= state.settings.restart;
        let same_command = self
            .server
            .zip(conn.server)
            .is_some_and(|(old, new)| old != new && state.processes.same_command(old, new));
        let same_name = self.server_name.is_some() && self.server_name == conn.server_name;
        let other = conn.id != self.call.conn;
        soon && other && conn.client == Some(self.client) && (same_command || same_name)
    }
}

fn begins(call: &Call) -> bool {
    call.from == Side::Client && matches!(call.method.as_ref(), "initialize" | "server/discover")
}

#[cfg(test)]
mod tests {
    use crate::verdict::script::judged;

    const OLD: &str = "0 hello 2025-06-18\n1 call 1 t\n9 sigterm 20 10\n9.1 exit 20\n9.1 close\n";

    #[test]
    fn a_server_is_replaced_while_it_owes_an_answer() {
        let script = format!("{OLD}10 @2 hello 2025-06-18\n11 end");
        assert_eq!(
            judged(&script),
            "1 torn-down | restart-pending 1 confirmed warning"
        );
    }

    #[test]
    fn other_servers_and_other_times() {
        let torn = "1 torn-down | torn-down-pending 1 confirmed info";
        for script in [
            format!("{OLD}60 @2 hello 2025-06-18\n61 end"),
            format!("0.5 @2 hello 2025-06-18\n{}11 end", &OLD[19..]),
            "0 hello 2025-06-18\n1 call 1 t\n9 exit 10\n9 exit 20\n10 @2 hello 2025-06-18".into(),
        ] {
            assert_eq!(judged(&script), torn, "{script}");
        }
    }

    #[test]
    fn a_server_that_died_may_be_started_again() {
        let script = "0 hello 2025-06-18\n1 call 1 t\n9 exit 20 1\n10 @2 hello 2025-06-18\n11 end";
        assert_eq!(
            judged(script),
            "1 torn-down | server-died 1 confirmed warning"
        );
    }

    #[test]
    fn a_probe_in_a_process_of_its_own() {
        let script = "1 c \"p\" server/discover\n2 eof c\n2 exit 20\n3 @2 hello 2025-06-18\n4 end";
        assert_eq!(judged(script), "\"p\" torn-down");
    }
}
