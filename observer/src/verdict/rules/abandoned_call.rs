//! `abandoned-call`: the host stopped waiting and never said so.
//!
//! The evidence is gathered by the witnesses in `witness/`; this rule grades it and writes it up.

use std::collections::HashMap;

use super::Rule;
use crate::session::ConnId;
use crate::verdict::about::About;
use crate::verdict::call::{Call, LATE_PROGRESS, Seq};
use crate::verdict::desk::{Desk, Draft};
use crate::verdict::judge::State;
use crate::verdict::occurrence::Occurrence;
use crate::verdict::{Confidence, Culprit, Severity};

pub(super) const ABOUT: About = About {
    name: "abandoned-call",
    side: "host",
    severity: Severity::Warning,
    grading: Some(
        "error when confirmed, warning when probable, info when possible; one step up where a \
         retry or a request at the time limit shows the abandonment and the server goes on \
         sending progress",
    ),
    meaning: "The host stopped waiting for a request and never sent the cancellation that its \
              revision asks for.",
    evidence: &[
        "`retry`: the same method, name and arguments are sent again while the first is open \
         (`_meta` does not count), after at least 1.5 s in one thread of a host that names its \
         threads or is known to call one tool after the other, after 5 s (or the tool's time \
         limit, where that is shorter) otherwise. Strong; weak before that, and in 2026-07-28, \
         where conversations share a connection.",
        "`new-turn`: the same thread goes on with another turn while a call of the earlier turn \
         is open. Strong.",
        "`key-esc`, `key-ctrl-c`, `sigint`: the host, or a program of its family, was interrupted, \
         lives on, and has sent no cancellation within the grace time (2 s). Strong; weak where \
         several threads may be meant, and for a host that is known to cancel and to run calls in \
         the background.",
        "`deadline`: the time limit that the user gave for the tool (`--deadline`) is over, with \
         the grace time, and no progress started it anew. Weak.",
        "`request-at-limit`: the host's next request comes just when the limit is over. Weak.",
        "`model-request`: while the call is open, and at least 1 s after it, the host sends about as \
         much as before the call or more to the network peer that its largest burst before the \
         call went to: the conversation with the model goes on. Sizes only, and only of hosts that \
         run one turn at a time. Weak; strong of a host that is known to call one tool after the \
         other, where the burst is larger than the one before by up to 16 KiB: the call, and a few \
         words in place of its result.",
        "`window-closed`: the program that started the host and is of one product with it has \
         ended, and the host lives on. Weak.",
        "`late-answer`: an answer comes after such evidence. It confirms a `retry` or a `new-turn`, \
         and any two strong pieces; with a `deadline` alone it makes the abandonment probable.",
        "`late-progress`: the server goes on reporting progress after such evidence.",
        "`unread-request`: where it is seen what the server reads, that it has not read the request.",
        "One strong piece, or two weak ones, make it probable; one weak piece makes it possible.",
    ],
    exceptions: &[
        "Time alone, however long: there are calls that take hours.",
        "Equal calls within 1.5 s of each other: a model calls tools in parallel.",
        "Equal calls of two threads, or of a host whose conversations are known to share a \
         connection; and other calls while one is open.",
        "A call that goes on with an `input_required` answer (`inputResponses`, `requestState`), \
         or comes again after error -32042: the first one is over.",
        "Esc while the server asks the user something, or while nothing is in flight; Esc once \
         where the host wants it twice.",
        "An answer, or the end of host or connection, within the grace time.",
        "Time in which the server waits for an answer of the host (sampling, elicitation, roots): \
         all limits stand still.",
        "`initialize`, `server/discover`, `subscriptions/listen` and background requests.",
        "A gap that could have hidden the answer or the cancellation: the outcome is `unknown`.",
        "Network traffic of hosts that run several conversations or background calls, of small \
         size, to another peer, or while the server asks the user something.",
        "SIGTERM and SIGHUP: they end a host, they do not interrupt a call.",
    ],
    clauses: [
        "basic/lifecycle, Error Handling: implementations SHOULD implement timeouts; \
         basic/utilities/cancellation: either side can send a cancellation notification",
        "basic/lifecycle, Timeouts: when the timeout has passed the sender SHOULD issue a \
         cancellation notification for that request and stop waiting",
        "basic/lifecycle, Timeouts: when the timeout has passed the sender SHOULD issue a \
         cancellation notification for that request and stop waiting",
        "basic/lifecycle, Timeouts: when the timeout has passed the sender SHOULD issue a \
         cancellation notification for that request and stop waiting",
        "basic/transports/stdio, Cancellation: to cancel a request the client MUST send \
         notifications/cancelled; basic/patterns/cancellation, Timeouts: SHOULD on a timeout",
    ],
};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct AbandonedCall {
    said: HashMap<(ConnId, Seq), Said>,
}

/// What was said about a call last.
#[derive(Clone, Copy, Debug)]
struct Said {
    number: Option<u32>,
    confidence: Confidence,
    severity: Severity,
}

impl Rule for AbandonedCall {
    fn see(&mut self, seen: &Occurrence<'_>, _state: &State, desk: &mut Desk) {
        match seen {
            Occurrence::Suspected { call } => self.write(call, desk),
            Occurrence::Cleared { call } => self.withdraw(call, desk),
            Occurrence::Ended { past } => {
                self.said.remove(&(past.call.conn, past.call.seq));
            }
            _ => {}
        }
    }
}

impl AbandonedCall {
    fn withdraw(&mut self, call: &Call, desk: &mut Desk) {
        let Some(said) = self.said.remove(&(call.conn, call.seq)) else {
            return;
        };
        let message = format!(
            "it cannot be said whether the host gave up {}: bytes went by unseen",
            call.title()
        );
        let detail = "bytes went by unseen, which may hold the answer or the cancellation".into();
        let draft = Draft::new(&ABOUT, Culprit::Host, message)
            .call(call)
            .severity(Severity::Info)
            .confidence(Confidence::Possible)
            .evidence("gap", desk.now, detail)
            .supersedes(said.number);
        desk.report(draft);
    }

    fn write(&mut self, call: &Call, desk: &mut Desk) {
        let Some(confidence) = call.confidence() else {
            return;
        };
        let severity = severity(call, confidence);
        let key = (call.conn, call.seq);
        let last = self.said.get(&key);
        if last.is_some_and(|last| (last.confidence, last.severity) == (confidence, severity)) {
            return;
        }
        let draft = Draft::new(&ABOUT, Culprit::Host, message(call, confidence))
            .call(call)
            .severity(severity)
            .confidence(confidence)
            .all_evidence(evidence(call))
            .supersedes(last.and_then(|last| last.number));
        let number = desk.report(draft);
        self.said.insert(
            key,
            Said {
                number,
                confidence,
                severity,
            },
        );
    }
}

fn severity(call: &Call, confidence: Confidence) -> Severity {
    let zombie = call.case.as_ref().is_some_and(|case| {
        case.has(LATE_PROGRESS) && (case.has("retry") || case.has("request-at-limit"))
    });
    match (confidence, zombie) {
        (Confidence::Confirmed, _) | (Confidence::Probable, true) => Severity::Error,
        (Confidence::Probable, false) | (Confidence::Possible, true) => Severity::Warning,
        (Confidence::Possible, false) => Severity::Info,
    }
}

fn evidence(call: &Call) -> Vec<crate::verdict::Evidence> {
    call.case
        .iter()
        .flat_map(|case| &case.clues)
        .map(|clue| clue.evidence.clone())
        .collect()
}

fn message(call: &Call, confidence: Confidence) -> String {
    let doubt = match confidence {
        Confidence::Confirmed => "gave up",
        Confidence::Probable => "very likely gave up",
        Confidence::Possible => "may have given up",
    };
    let because: Vec<String> = evidence(call)
        .into_iter()
        .map(|evidence| evidence.detail)
        .collect();
    let because = because.join(", and ");
    format!(
        "the host {doubt} {} and has not sent notifications/cancelled: {because}",
        call.title()
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::verdict::Settings;
    use crate::verdict::script::{hear, judged, judged_with};

    const CODEX: &str = "0 hello 2025-06-18 codex-mcp-client 0.163.0";

    #[test]
    fn a_retry_while_the_first_is_open() {
        let retry = |gap| {
            judged(&format!(
                "0 hello 2025-06-18\n1 call 1 t {{}}\n{gap} call 2 t {{}}\n20 end"
            ))
        };
        assert_eq!(
            retry(6.5),
            "1 abandoned, 2 pending | abandoned-call 1 probable warning"
        );
        assert_eq!(
            retry(4.0),
            "1 pending, 2 pending | abandoned-call 1 possible info"
        );
        assert_eq!(retry(2.4), "1 pending, 2 pending", "a burst");
        let serial = format!("{CODEX}\n1 call 1 t\n4.1 call 2 t\n5 end");
        assert_eq!(
            judged(&serial),
            "1 abandoned, 2 pending | abandoned-call 1 probable warning"
        );
    }

    #[test]
    fn a_late_answer_confirms_a_retry() {
        let script = format!("{CODEX}\n1 call 1 t\n4.1 call 2 t\n4.2 progress 1\n6 s= 1\n6 s= 2");
        assert_eq!(
            judged(&script),
            "1 abandoned, 2 answered | abandoned-call 1 confirmed error"
        );
    }

    #[test]
    fn progress_after_a_retry_makes_it_worse() {
        let script = format!("{CODEX}\n1 call 1 t\n4.1 call 2 t\n5 progress 1\n6 end");
        assert_eq!(
            judged(&script),
            "1 abandoned, 2 pending | abandoned-call 1 probable error"
        );
    }

    #[test]
    fn each_retry_speaks_of_one_call() {
        let script =
            "0 hello 2025-06-18\n1 call 1 t\n1.1 call 2 t\n61 call 3 t\n61.1 call 4 t\n63 end";
        assert_eq!(
            judged(script),
            "1 abandoned, 2 abandoned, 3 pending, 4 pending | \
             abandoned-call 1 probable warning, abandoned-call 2 probable warning"
        );
    }

    #[test]
    fn no_retry_in_sight() {
        for (what, script) in [
            ("hours of work", "1 call 1 t\n20000 s= 1"),
            ("another call", "1 call 1 t\n60 call 2 u\n70 s= 2\n80 s= 1"),
            (
                "other arguments",
                "1 call 1 t {\"a\":1}\n60 call 2 t {\"a\":2}\n70 s= 2\n80 s= 1",
            ),
            (
                "a poll after the answer",
                "1 call 1 t\n60 s= 1\n60 call 2 t\n61 s= 2",
            ),
            (
                "progress alone",
                "1 call 1 t\n60 progress 1\n600 progress 1\n601 s= 1",
            ),
            (
                "background requests",
                "1 call 1 t\n60 c 2 tools/list\n61 c 3 ping\n61 s= 2\n61 s= 3\n62 s= 1",
            ),
        ] {
            let verdict = judged(&format!("0 hello 2025-06-18\n{script}"));
            assert!(!verdict.contains('|'), "{what}: {verdict}");
        }
    }

    #[test]
    fn the_record_of_an_answer_may_come_after_the_next_equal_call() {
        let script = "0 hello 2025-06-18\n1 call 1 t\n60 call 2 t\n60.001 s= 1\n70 s= 2";
        assert_eq!(judged(script), "1 answered, 2 answered");
    }

    #[test]
    fn a_cancellation_just_after_the_retry_is_in_time() {
        let script = "0 hello 2025-06-18\n1 call 1 t\n60 call 2 t\n60.4 cancel 1\n70 s= 2";
        assert_eq!(judged(script), "1 cancelled, 2 answered");
    }

    #[test]
    fn what_goes_on_with_an_answered_call_is_no_retry() {
        let more = r#"{"name":"t","arguments":{},"inputResponses":{}}"#;
        let script =
            format!("0 hello 2025-11-25\n1 call 1 t\n60 c 2 tools/call {more}\n61 s= 2\n99 s= 1");
        assert_eq!(judged(&script), "2 answered, 1 answered");
        let url = "0 hello 2025-11-25\n1 call 1 t\n2 s! 1 -32042\n60 call 2 t\n61 s= 2";
        assert_eq!(judged(url), "1 failed, 2 answered");
    }

    #[test]
    fn several_conversations_share_a_pipe() {
        let meta = |thread: &str, turn: &str| {
            format!(
                r#""_meta":{{"x-codex-turn-metadata":{{"thread_id":"{thread}","turn_id":"{turn}"}}}}"#
            )
        };
        let call = |t: u32, id: u32, meta: &str| {
            format!("{t} c {id} tools/call {{\"name\":\"t\",\"arguments\":{{}},{meta}}}\n")
        };
        let two = format!(
            "{CODEX}\n{}{}80 s= 2\n90 s= 1",
            call(1, 1, &meta("a", "1")),
            call(60, 2, &meta("b", "2"))
        );
        assert_eq!(judged(&two), "2 answered, 1 answered");
        let turn = format!(
            "{CODEX}\n{}{}80 end",
            call(1, 1, &meta("a", "1")),
            call(
                60,
                2,
                &meta("a", "2").replace("\"_meta\"", "\"x\":1,\"_meta\"")
            )
        );
        assert_eq!(
            judged(&turn),
            "1 abandoned, 2 pending | abandoned-call 1 probable warning"
        );
        let modern = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
        let stateless = format!(
            "{}{}80 s= 2\n90 s= 1",
            call(1, 1, modern),
            call(60, 2, modern)
        );
        assert_eq!(
            judged(&stateless),
            "2 answered, 1 answered | abandoned-call 1 possible info"
        );
    }

    #[test]
    fn an_interrupt_without_a_cancellation() {
        for kind in ["key-esc", "key-ctrl-c", "sigint"] {
            let script =
                format!("0 hello 2025-06-18\n1 call 1 t\n1 call 2 u\n3 {kind} 10\n9 s= 2\n60 end");
            assert_eq!(
                judged(&script),
                "2 abandoned, 1 abandoned | \
                 abandoned-call 1 probable warning, abandoned-call 2 probable warning",
                "{kind}"
            );
        }
    }

    #[test]
    fn interrupts_that_abandon_nothing() {
        for (what, script) in [
            (
                "cancelled in time",
                "1 call 1 t\n3 key-esc 10\n4.9 cancel 1\n9 end",
            ),
            (
                "answered in time",
                "1 call 1 t\n3 key-esc 10\n4.9 s= 1\n9 end",
            ),
            ("nothing in flight", "3 key-esc 10\n4 call 1 t\n9 s= 1"),
            (
                "a process of no kin",
                "1 call 1 t\n2 fork 99 1 /usr/bin/vi\n3 key-esc 99\n9 s= 1",
            ),
            ("the shell", "1 call 1 t\n3 key-ctrl-c 1\n9 s= 1"),
            (
                "SIGTERM, which a host may ignore",
                "1 call 1 t\n3 sigterm 10\n15 s= 1",
            ),
            (
                "a tool of the host",
                "1 call 1 t\n2 fork 99 10 /bin/rg\n3 sigint 99 10\n9 s= 1",
            ),
            ("a handshake", "1 c 1 server/discover\n3 key-esc 10\n9 end"),
            (
                "a subscription",
                "1 c 1 subscriptions/listen\n3 key-esc 10\n9 end",
            ),
        ] {
            let verdict = judged(&format!("0 hello 2025-06-18\n{script}"));
            assert!(!verdict.contains('|'), "{what}: {verdict}");
        }
    }

    #[test]
    fn the_front_end_of_a_daemon_is_interrupted() {
        let script = "0 hello 2025-06-18\n0 fork 5 1 /opt/a/codex\n0 fork 10 5 /opt/b/codex\n\
                      1 call 1 t\n3 key-esc 5\n9 end";
        assert_eq!(
            judged(script),
            "1 abandoned | abandoned-call 1 probable warning"
        );
        let window = script.replace("3 key-esc 5", "2 fork 6 1 /opt/a/codex\n3 key-esc 6");
        assert_eq!(
            judged(&window),
            "1 pending | abandoned-call 1 possible info",
            "another window"
        );
        let closed = script.replace("key-esc", "exit");
        assert_eq!(
            judged(&closed),
            "1 pending | abandoned-call 1 possible info"
        );
    }

    #[test]
    fn it_is_told_that_the_server_never_read_the_request() {
        let heard = hear(
            "1 call 1 t\n1 read c 5\n3 key-esc 10\n9 end",
            Settings::default(),
        );
        let kinds: Vec<_> = heard.findings[0]
            .evidence
            .iter()
            .map(|it| it.kind)
            .collect();
        assert_eq!(kinds, ["unread-request", "key-esc"]);
    }

    #[test]
    fn esc_answers_what_the_server_asks() {
        let script = "0 hello 2025-06-18\n1 call 1 t\n2 s 7 elicitation/create\n30 key-esc 10\n\
                      30.1 c= 7\n90 s= 1";
        assert_eq!(judged(script), "7 answered, 1 answered");
        let other = script
            .replace("2 s 7", "2 @2 s 7")
            .replace("30.1 c=", "30.1 @2 c=");
        assert_eq!(
            judged(&other),
            "7 answered, 1 answered",
            "a question of another server"
        );
    }

    #[test]
    fn limits_stand_still_while_the_server_asks() {
        let script = "0 hello 2025-06-18\n1 call 1 t\n2 s 7 sampling/createMessage\n3 sigint 10\n\
                      600 c= 7\n601.5 s= 1";
        assert_eq!(judged(script), "7 answered, 1 answered");
        let over = script.replace("601.5", "604");
        assert_eq!(
            judged(&over),
            "7 answered, 1 abandoned | abandoned-call 1 probable warning"
        );
        let retry = "0 hello 2025-06-18\n1 call 1 t\n1.5 s 7 elicitation/create\n600 c= 7\n\
                     600.8 call 2 t\n602 s= 1\n602 s= 2";
        assert_eq!(judged(retry), "7 answered, 1 answered, 2 answered");
    }

    #[test]
    fn a_host_that_wants_esc_twice() {
        let script = "0 hello 2025-11-25 opencode 1.18.33\n1 call 1 t\n3 key-esc 10\n9 s= 1";
        assert_eq!(judged(script), "1 answered");
        let twice = script.replace("9 s=", "4 key-esc 10\n9 s=");
        assert_eq!(
            judged(&twice),
            "1 abandoned | abandoned-call 1 probable warning"
        );
    }

    #[test]
    fn a_host_with_background_calls_is_only_suspected() {
        let script = "0 hello 2025-11-25 claude-code 2.1.332\n1 call 1 t\n3 key-esc 10\n9 s= 1";
        assert_eq!(
            judged(script),
            "1 answered | abandoned-call 1 possible info"
        );
    }

    #[test]
    fn a_host_that_leaves_does_not_abandon() {
        for (end, after) in [("exit 10", 4.0), ("eof c", 4.0), ("sigterm 20 10", 4.0)] {
            let script = format!(
                "0 hello 2025-06-18\n1 call 1 t\n3 key-esc 10\n{after} {end}\n9 exit 20\n10 end"
            );
            let verdict = judged(&script);
            assert_eq!(
                verdict, "1 torn-down | torn-down-pending 1 confirmed info",
                "{end}"
            );
        }
        let slow = "0 hello 2025-06-18\n1 call 1 t\n3 sigint 10\n6 exit 10\n7 end";
        assert_eq!(
            judged(slow),
            "1 torn-down | torn-down-pending 1 confirmed info"
        );
    }

    #[test]
    fn the_users_limit_is_evidence_that_needs_more() {
        let limit = || Settings {
            deadlines: [("t".into(), Duration::from_secs(10))].into(),
            ..Settings::default()
        };
        let judge = |script: &str| {
            judged_with(
                &format!("0 hello 2025-06-18\n1 call 1 t\n{script}"),
                limit(),
            )
        };
        assert_eq!(
            judge("20 end"),
            "1 pending | abandoned-call 1 possible info"
        );
        assert_eq!(
            judge("20 s= 1"),
            "1 abandoned | abandoned-call 1 probable warning"
        );
        assert_eq!(judge("12.9 s= 1"), "1 answered");
        assert_eq!(judge("12.9 cancel 1\n20 end"), "1 cancelled");
        assert_eq!(judge("9 progress 1\n18 progress 1\n21 s= 1"), "1 answered");
        assert_eq!(
            judge("2 s 7 elicitation/create\n99 c= 7\n105 s= 1"),
            "7 answered, 1 answered"
        );
        assert_eq!(
            judge("11.1 c 2 tools/list\n20 end"),
            "1 abandoned, 2 pending | abandoned-call 1 probable warning"
        );
    }

    #[test]
    fn the_model_is_asked_again_before_the_answer() {
        let script = |more: &str| {
            format!(
                "0 hello 2025-06-18\n0.5 net 10 9000\n0.6 net 10 3000\n1 call 1 t\n{more}\n60 end"
            )
        };
        let asked = "1 pending | abandoned-call 1 possible info";
        assert_eq!(judged(&script("31 net 10 9000\n31.1 net 10 4000")), asked);
        for (what, more) in [
            ("it is small", "31 net 10 90"),
            ("another peer", "31 net 10 20000 80"),
            ("right after the call", "1.5 net 10 13000"),
            ("a server's own traffic", "31 net 20 20000"),
            ("cancelled", "31 net 10 13000\n31.2 cancel 1"),
            (
                "the server asks",
                "9 s 7 elicitation/create\n31 net 10 13000\n40 c= 7\n41 s= 1",
            ),
        ] {
            let verdict = judged(&script(more));
            assert!(!verdict.contains("abandoned"), "{what}: {verdict}");
        }
        let serial = script("31 net 10 12370").replace("06-18", "06-18 @cline/core 3.0.65");
        assert_eq!(
            judged(&serial),
            "1 abandoned | abandoned-call 1 probable warning"
        );
        let background = script("31 net 10 13000").replace("06-18", "06-18 claude-code 2.1");
        assert_eq!(judged(&background), "1 pending");
        let two =
            script("31 net 10 13000\n31.2 call 2 t\n32 s= 2").replace("06-18", "06-18 opencode 1");
        assert!(
            judged(&two).contains("abandoned-call 1 probable warning"),
            "two kinds add up"
        );
    }

    #[test]
    fn a_gap_hides_what_it_may_have_held() {
        for gap in ["gap c", "gap s", "noise s oversized x"] {
            let script = format!(
                "0 hello 2025-06-18\n1 call 1 t\n2 {gap}\n60 call 2 t\n61 key-esc 10\n61.5 s= 2\n99 end"
            );
            let verdict = judged(&script);
            assert!(
                verdict.starts_with("2 answered, 1 unknown | evidence-gap"),
                "{gap}: {verdict}"
            );
            assert!(!verdict.contains("abandoned"), "{gap}: {verdict}");
        }
        let before = "0 hello 2025-06-18\n0.5 gap s mid-stream\n1 call 1 t\n60 call 2 t\n99 end";
        assert!(
            judged(before).starts_with("1 abandoned"),
            "a gap before it hides nothing of it"
        );
        let told_late = "0 hello 2025-06-18\n1 call 1 t\n0.5 gap s mid-stream\n60 call 2 t\n99 end";
        assert!(
            judged(told_late).starts_with("1 abandoned"),
            "nor where the session tells of it later"
        );
    }

    #[test]
    fn a_gap_that_is_noticed_late_withdraws_what_it_may_refute() {
        let retry = "0 hello 2025-06-18\n1 call 1 t\n60 call 2 t\n62 gap s\n63 s= 2";
        let verdict = judged(retry);
        assert!(verdict.contains("1 unknown"), "{verdict}");
        assert!(
            verdict.contains("abandoned-call 1 possible info"),
            "{verdict}"
        );
        let before = retry.replace("62 gap s", "61 progress 2\n62 gap s");
        assert!(
            judged(&before).contains("1 abandoned"),
            "the server had spoken since"
        );
    }

    #[test]
    fn what_was_read_and_not_seen_may_be_the_answer() {
        let script = "0 hello 2025-06-18\n1 call 1 t\n5 read s 9000\n60 call 2 t\n61 s= 2";
        assert_eq!(judged(script), "2 answered, 1 pending");
    }

    #[test]
    fn a_cancellation_that_misses_by_the_type_of_its_id_was_meant() {
        let script = "0 hello 2025-06-18\n1 call 1 t\n3 key-esc 10\n3.1 cancel \"1\"\n9 end";
        assert_eq!(
            judged(script),
            "1 pending | cancel-unknown-id \"1\" confirmed warning"
        );
    }
}
