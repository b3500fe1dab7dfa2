//! `torn-down-pending`: the host ended the connection with calls in flight.

use super::Rule;
use crate::capture::InterruptKind;
use crate::verdict::about::About;
use crate::verdict::call::Call;
use crate::verdict::connection::{Connection, Stop};
use crate::verdict::desk::{Desk, Draft};
use crate::verdict::judge::State;
use crate::verdict::occurrence::Occurrence;
use crate::verdict::{Culprit, Severity};

const ABOUT: About = About {
    name: "torn-down-pending",
    side: "host",
    severity: Severity::Info,
    grading: None,
    meaning: "The host closed the connection, or stopped the server, with calls in flight.",
    evidence: &[
        "`eof`: the host closed the server's stdin.",
        "`host-exit`: the host ended.",
        "`stop`: the server got a signal that ends it.",
        "`refused`: the host wrote afterwards, when nobody could read any more.",
        "`unread-request`: the server had not read the request by then.",
    ],
    exceptions: &[
        "A server that ends by itself is `server-died`.",
        "A host that closes stdin and goes on reading: the call is pending until it is answered or \
         the connection is over.",
        "A call that was given up well before is `abandoned-call`.",
        "`initialize`, `server/discover` and `subscriptions/listen`: closing is how they end.",
        "A teardown after a gap in which the call may have ended: the outcome is `unknown`.",
    ],
    clauses: [
        "basic/lifecycle, Shutdown: the client SHOULD close the server's input, then wait",
        "basic/lifecycle, Shutdown: the client SHOULD close the server's input, then wait",
        "basic/lifecycle, Shutdown: the client SHOULD close the server's input, then wait",
        "basic/lifecycle, Shutdown: the client SHOULD close the server's input, then wait",
        "basic/transports/stdio, Shutdown: requests in flight are lost when the process ends",
    ],
};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct TornDownPending;

impl Rule for TornDownPending {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn see(&mut self, seen: &Occurrence<'_>, _state: &State, desk: &mut Desk) {
        if let Occurrence::TornDown { conn, call } = seen
            && conn.ends.by_host()
        {
            desk.report(draft(conn, call).supersedes(desk.standing(call)));
        }
    }
}

fn draft(conn: &Connection, call: &Call) -> Draft {
    let ends = &conn.ends;
    let mut draft = Draft::new(&ABOUT, Culprit::Host, message(conn, call)).call(call);
    if let Some(at) = ends.client_eof {
        draft = draft.evidence("eof", at, "the host closed the server's stdin".into());
    }
    if let Some(stop) = ends.stop {
        draft = draft.evidence("stop", stop.at, stopped(stop));
    }
    if let Some(at) = ends.client_exit {
        draft = draft.evidence("host-exit", at, "the host ended".into());
    }
    if let Some(at) = ends.refused {
        draft = draft.evidence(
            "refused",
            at,
            "a later write found nobody to read it".into(),
        );
    }
    if conn.has_read(call.from, call.end) == Some(false) {
        let detail = "the server had not read the request".into();
        draft = draft.evidence("unread-request", call.sent, detail);
    }
    draft
}

fn message(conn: &Connection, call: &Call) -> String {
    let ends = &conn.ends;
    let first = ends.host_began();
    let did = if ends.stop.map(|stop| stop.at) == first {
        "stopped the server"
    } else if ends.client_eof == first {
        "closed the connection"
    } else {
        "ended"
    };
    format!("the host {did} with {} in flight", call.title())
}

fn stopped(stop: Stop) -> String {
    let signal = match stop.kind {
        InterruptKind::Sigint => "SIGINT",
        InterruptKind::Sigterm => "SIGTERM",
        InterruptKind::Sigkill => "SIGKILL",
        InterruptKind::Sighup => "SIGHUP",
        InterruptKind::KeyEsc | InterruptKind::KeyCtrlC => "a key",
    };
    match stop.sender {
        Some(_) if stop.by_host => format!("the host sent {signal} to the server"),
        Some(pid) => format!("process {pid} sent {signal} to the server"),
        None => format!("the server got {signal}"),
    }
}
