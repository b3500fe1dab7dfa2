//! `server-died`: the server ended with calls in flight.

use std::collections::HashSet;

use super::Rule;
use crate::capture::Fate;
use crate::session::{ConnId, Side};
use crate::verdict::about::{About, clauses};
use crate::verdict::call::Call;
use crate::verdict::connection::{Cause, Connection};
use crate::verdict::desk::{Desk, Draft};
use crate::verdict::judge::State;
use crate::verdict::occurrence::Occurrence;
use crate::verdict::{Culprit, Severity};

pub(super) const ABOUT: About = About {
    name: "server-died",
    side: "server",
    severity: Severity::Warning,
    grading: Some("info where another process, which is not the host, stopped it"),
    meaning: "The server ended with calls in flight.",
    evidence: &[
        "`exit`: how the process ended; `eof`: that it closed its stdout.",
        "`stop`: the signal of another process, where there was one.",
        "A connection has one finding; it names the oldest of the calls and how many there were.",
    ],
    exceptions: &[
        "A server that the host closed, left or stopped: that is `torn-down-pending`.",
        "A signal of the terminal, which reaches host and server alike (Ctrl-C).",
        "`initialize`, `server/discover` and `subscriptions/listen` in flight.",
    ],
    clauses: clauses(
        "basic/lifecycle, Shutdown: the server may initiate shutdown by closing its output and \
         exiting; a request expects a response",
        "basic/transports/stdio, Shutdown: requests in flight are lost when the process ends",
    ),
};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct ServerDied {
    said: HashSet<ConnId>,
}

impl Rule for ServerDied {
    fn see(&mut self, seen: &Occurrence<'_>, state: &State, desk: &mut Desk) {
        match seen {
            Occurrence::TornDown { conn, call } => {
                let cause = conn.ends.cause(&state.settings);
                if !matches!(cause, Cause::Host) && self.said.insert(conn.id) {
                    desk.report(draft(conn, call, cause).supersedes(desk.standing(call)));
                }
            }
            Occurrence::Gone { conn } => {
                self.said.remove(&conn.id);
            }
            _ => {}
        }
    }
}

fn draft(conn: &Connection, call: &Call, cause: Cause) -> Draft {
    let pending = conn
        .lane(Side::Client)
        .calls()
        .filter(|call| !call.may_stay_open())
        .count();
    let others = match pending {
        0 | 1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    let title = call.title();
    let (message, severity) = match cause {
        Cause::Stranger(stop) => {
            let who = stop
                .sender
                .map_or("another process".into(), |pid| format!("process {pid}"));
            (
                format!("{who} stopped the server with {title}{others} in flight"),
                Severity::Info,
            )
        }
        _ => (
            format!("the server ended with {title}{others} in flight"),
            ABOUT.severity,
        ),
    };
    let mut draft = Draft::new(&ABOUT, Culprit::Server, message)
        .call(call)
        .severity(severity);
    if let Cause::Stranger(stop) = cause {
        draft = draft.evidence("stop", stop.at, "a signal to the server".into());
    }
    if let Some(at) = conn.ends.server_eof {
        draft = draft.evidence("eof", at, "the server closed its stdout".into());
    }
    if let Some((at, fate)) = conn.ends.server_exit {
        let how = match fate {
            Some(Fate::Code(code)) => format!("the server ended with status {code}"),
            Some(Fate::Signal(signal)) => format!("signal {signal} ended the server"),
            None => "the server ended".into(),
        };
        draft = draft.evidence("exit", at, how);
    }
    draft
}

#[cfg(test)]
mod tests {
    use crate::verdict::script::judged;

    #[test]
    fn a_server_ends_by_itself() {
        let died = "1 torn-down, 2 torn-down | server-died 1 confirmed warning";
        for end in [
            "exit 20 1",
            "exit 20 0",
            "killed 20 11",
            "eof s",
            "exit 20 1\n3.1 exit 10 1",
        ] {
            let script = format!("0 hello 2025-06-18\n1 call 1 t\n1 call 2 t\n3 {end}\n4 end");
            assert_eq!(judged(&script), died, "{end}");
        }
    }

    #[test]
    fn somebody_else_stops_it() {
        let script = "0 hello 2025-06-18\n1 call 1 t\n2 sigterm 20 99\n2.1 killed 20 15\n3 end";
        assert_eq!(judged(script), "1 torn-down | server-died 1 confirmed info");
    }

    #[test]
    fn the_host_or_the_terminal_ends_it() {
        for end in [
            "2 sigterm 20 10\n2 exit 20",
            "2 eof c\n2 exit 20 1",
            "2 sigint 20\n2 exit 20 130\n2.1 sigint 10\n2.1 exit 10 130",
            "2 killed 20 9\n2.1 killed 10 9",
        ] {
            let verdict = judged(&format!("0 hello 2025-06-18\n1 call 1 t\n{end}\n3 end"));
            assert!(!verdict.contains("server-died"), "{end}: {verdict}");
        }
        assert!(!judged("1 c 1 initialize\n2 exit 20 1\n3 end").contains('|'));
    }
}
