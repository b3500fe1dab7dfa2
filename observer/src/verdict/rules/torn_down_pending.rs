//! `torn-down-pending`: the host ended the connection with calls in flight.

use std::time::Duration;

use super::Rule;
use crate::capture::InterruptKind;
use crate::verdict::about::{About, clauses};
use crate::verdict::call::Call;
use crate::verdict::connection::{Cause, Connection, Stop};
use crate::verdict::desk::{Desk, Draft};
use crate::verdict::judge::State;
use crate::verdict::occurrence::Occurrence;
use crate::verdict::{Culprit, Severity};

pub(super) const ABOUT: About = About {
    name: "torn-down-pending",
    side: "host",
    severity: Severity::Info,
    grading: None,
    meaning: "The host closed the connection, stopped the server, or began a new session, with calls \
              in flight.",
    evidence: &[
        "`eof`: the host closed the server's stdin.",
        "`host-exit`: the host ended.",
        "`host-signal`: a signal, or Ctrl-C, made it leave.",
        "`stop`: the server got a signal that ends it.",
        "`new-session`: the host sent `initialize` anew, and its ids began anew with it.",
        "`refused`: the host wrote afterwards, when nobody could read any more.",
        "`unread-request`: the server had not read the request by then.",
    ],
    exceptions: &[
        "A server that ends by itself is `server-died`.",
        "A host that closes stdin and goes on reading: the call is pending until it is answered or \
         the connection is over.",
        "A call that was given up well before is `abandoned-call`.",
        "`initialize` once more under an id of its own, as a host may send it by mistake: its calls \
         stay in flight until one of their ids is used again.",
        "`initialize`, `server/discover` and `subscriptions/listen`: closing is how they end.",
        "A teardown after a gap in which the call may have ended: the outcome is `unknown`.",
    ],
    clauses: clauses(
        "basic/lifecycle, Shutdown: the client SHOULD close the server's input, then wait",
        "basic/transports/stdio, Shutdown: requests in flight are lost when the process ends",
    ),
};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct TornDownPending;

impl Rule for TornDownPending {
    fn see(&mut self, seen: &Occurrence<'_>, state: &State, desk: &mut Desk) {
        if let Occurrence::TornDown { conn, call } = seen
            && matches!(conn.ends.cause(&state.settings), Cause::Host)
        {
            desk.report(draft(conn, call, state.settings.shutdown).supersedes(desk.standing(call)));
        }
    }
}

fn draft(conn: &Connection, call: &Call, shutdown: Duration) -> Draft {
    let ends = &conn.ends;
    let mut draft = Draft::new(&ABOUT, Culprit::Host, message(conn, call)).call(call);
    let ended = ends.host_began().or(ends.over());
    if let Some((at, kind)) = conn.host_signal
        && ended.is_some_and(|ended| ended.since(at) <= shutdown)
    {
        draft = draft.evidence("host-signal", at, format!("the host got {}", signal(kind)));
    }
    if let Some(at) = ends.client_eof {
        draft = draft.evidence("eof", at, "the host closed the server's stdin".into());
    }
    if let Some(stop) = ends.stop {
        draft = draft.evidence("stop", stop.at, stopped(stop));
    }
    if let Some(at) = ends.client_exit {
        draft = draft.evidence("host-exit", at, "the host ended".into());
    }
    if let Some(at) = conn.outlived(call) {
        draft = draft.evidence("new-session", at, "the host began a new session".into());
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
    let stop = ends.stop.filter(|stop| Some(stop.at) == first);
    let did = match stop {
        _ if first.is_none() && conn.outlived(call).is_some() => {
            "the host began a new session".into()
        }
        _ if first.is_none() => "the host left the connection".into(),
        Some(stop) if stop.by_host => "the host stopped the server".into(),
        // Ctrl-C in a terminal reaches both.
        Some(stop) if conn.host_signal.is_some_and(|(_, kind)| kind == stop.kind) => {
            format!("host and server got {}", signal(stop.kind))
        }
        Some(stop) => stopped(stop),
        None if ends.client_eof == first => "the host closed the connection".into(),
        None => "the host ended".into(),
    };
    format!("{did} with {} in flight", call.title())
}

fn signal(kind: InterruptKind) -> &'static str {
    match kind {
        InterruptKind::Sigint => "SIGINT",
        InterruptKind::Sigterm => "SIGTERM",
        InterruptKind::Sigkill => "SIGKILL",
        InterruptKind::Sighup => "SIGHUP",
        InterruptKind::KeyEsc => "Esc",
        InterruptKind::KeyCtrlC => "Ctrl-C",
    }
}

fn stopped(stop: Stop) -> String {
    let signal = signal(stop.kind);
    match stop.sender {
        Some(_) if stop.by_host => format!("the host sent {signal} to the server"),
        Some(pid) => format!("process {pid} sent {signal} to the server"),
        None => format!("the server got {signal}"),
    }
}

#[cfg(test)]
mod tests {
    use crate::verdict::Settings;
    use crate::verdict::script::{hear, judged};

    #[test]
    fn the_host_ends_it() {
        let torn = "1 torn-down | torn-down-pending 1 confirmed info";
        for end in [
            "2 eof c\n2.1 exit 20",
            "2 eof c",
            "2 exit 10",
            "2 sigterm 20 10\n2.1 exit 20",
            "2 sigint 20\n2 sigint 10\n2.1 exit 20 130\n2.2 exit 10 130",
            "2 sigkill 10\n2 killed 10 9\n2.1 exit 20 1",
            "2 eof c\n2 close",
        ] {
            assert_eq!(
                judged(&format!("0 hello 2025-06-18\n1 call 1 t\n{end}")),
                torn,
                "{end}"
            );
        }
    }

    #[test]
    fn it_is_told_who_stopped_the_server() {
        for (end, message) in [
            (
                "2 sigterm 20 10\n2.1 exit 20",
                "the host stopped the server",
            ),
            (
                "2 sigint 20\n2 sigint 10\n2.1 exit 20 130\n2.2 exit 10 130",
                "host and server got SIGINT",
            ),
            (
                "2 sigkill 10\n2 killed 10 9\n2.1 exit 20 1",
                "the host ended",
            ),
        ] {
            let script = format!("0 hello 2025-06-18\n1 call 1 t\n{end}");
            let heard = hear(&script, Settings::default());
            let finding = heard.standing().next().expect("there is one");
            assert_eq!(
                finding.message,
                format!("{message} with tools/call t in flight")
            );
        }
    }

    #[test]
    fn a_session_begins_anew_on_the_same_wire() {
        const TORN: &str = "torn-down-pending 1 confirmed info";
        let old = "0 hello 2025-06-18\n1 call 1 t\n2 hello 2025-06-18";
        for (what, rest, verdict) in [
            ("the id is used again", "9 call 1 t\n10 s= 1", "1 answered"),
            (
                "both are answered after all",
                "9 call 1 t\n10 s= 1\n11 s= 1",
                "1 answered",
            ),
            ("the old one is answered after all", "9 s= 1", ""),
            ("another id is used", "9 call 2 t\n10 s= 2", "2 answered"),
        ] {
            let verdict = match verdict {
                "" => format!("1 torn-down | {TORN}"),
                verdict => format!("1 torn-down, {verdict} | {TORN}"),
            };
            assert_eq!(judged(&format!("{old}\n{rest}\n30 end")), verdict, "{what}");
        }
        let heard = hear(&format!("{old}\n9 call 1 t\n10 s= 1"), Settings::default());
        assert_eq!(
            heard.findings[0].message,
            "the host began a new session with tools/call t in flight"
        );
    }

    #[test]
    fn initialize_may_come_twice() {
        let again = |id: u32| format!("1 call 1 t\n2 c {id} initialize {{}}\n2.1 s= {id} {{}}\n");
        let late = format!("0 hello 2025-06-18\n{}9 s= 1\n30 end", again(7));
        assert_eq!(judged(&late), "1 answered");
        let anew = format!(
            "0 hello 2025-06-18\n{}9 call 1 t\n10 s= 1\n30 end",
            again(7)
        );
        assert_eq!(
            judged(&anew),
            "1 torn-down, 1 answered | torn-down-pending 1 confirmed info"
        );
        let used = "0 hello 2025-06-18\n1 call 1 t\n2 s= 1\n3 call 2 t\n4 c 1 initialize {}\n\
                    4.1 s= 1 {}\n9 s= 2\n30 end";
        assert_eq!(
            judged(used),
            "1 answered, 2 torn-down | torn-down-pending 2 confirmed info"
        );
        let retried = "0 c 0 initialize {}\n1 c 0 initialize {}\n2 s= 0 {}\n3 s= 0 {}\n9 end";
        assert_eq!(judged(retried), "");
        let other = "0 c 0 initialize {}\n1 c 1 initialize {}\n2 s= 0 {}\n3 s= 1 {}\n9 end";
        assert_eq!(judged(other), "");
    }

    #[test]
    fn a_session_that_begins_anew_outlives_the_end_of_the_one_before() {
        let script = "0 hello 2025-06-18\n1 call 1 t\n2 exit 20 1\n2.1 hello 2025-06-18\n\
                      2.2 call 1 t\n8 s= 1\n9 call 2 t\n10 end";
        assert_eq!(
            judged(script),
            "1 torn-down, 1 answered, 2 pending | server-died 1 confirmed warning"
        );
    }

    #[test]
    fn a_client_may_close_stdin_and_read_on() {
        let script = "0 hello 2025-06-18\n1 call 1 t\n1 eof c\n9 s= 1\n9.1 eof s\n9.1 exit 20";
        assert_eq!(judged(script), "1 answered");
    }

    #[test]
    fn what_ends_by_closing_is_no_fault() {
        for method in ["initialize", "server/discover", "subscriptions/listen"] {
            let script = format!("1 c 1 {method}\n2 eof c\n2 exit 20");
            assert!(!judged(&script).contains('|'), "{method}");
        }
    }

    #[test]
    fn a_gap_before_the_end_may_hold_the_answer() {
        let script = "0 hello 2025-06-18\n1 call 1 t\n2 gap s\n3 eof c\n3 exit 20";
        assert_eq!(judged(script), "1 unknown | evidence-gap confirmed warning");
    }

    #[test]
    fn a_call_that_was_given_up_before_stays_abandoned() {
        let script = "0 hello 2025-06-18\n1 call 1 t\n3 key-esc 10\n9 sigterm 20 10\n9.1 exit 20";
        assert_eq!(
            judged(script),
            "1 abandoned | abandoned-call 1 probable warning"
        );
    }

    #[test]
    fn it_is_told_what_made_the_host_leave() {
        let heard = hear(
            "1 call 1 t\n2 sigkill 10\n2 exit 20\n2 exit 10",
            Settings::default(),
        );
        let evidence = &heard.findings[0].evidence;
        assert_eq!(evidence[0].detail, "the host got SIGKILL");
    }

    #[test]
    fn it_is_told_whether_whether_the_server_had_read_the_request() {
        let read = |upto: u32| {
            let script = format!("1 call 1 t\n1.1 read c {upto}\n2 refused\n2 eof c\n2 exit 20");
            let heard = hear(&script, Settings::default());
            heard.findings[0]
                .evidence
                .iter()
                .map(|it| it.kind)
                .collect::<Vec<_>>()
        };
        assert_eq!(read(0), ["unread-request", "eof", "refused"]);
        assert_eq!(read(9999), ["eof", "refused"]);
    }
}
