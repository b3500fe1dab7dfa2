//! What convicts of an abandoned call, what does not, and how sure each leaves us.

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
    let script = "0 hello 2025-06-18\n1 call 1 t\n1.1 call 2 t\n61 call 3 t\n61.1 call 4 t\n63 end";
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
        "1 answered | abandoned-call 1 possible info",
        "it is known to cancel: the user may have meant something else"
    );
}

#[test]
fn esc_in_another_program_is_not_meant_for_the_host() {
    let esc = |before: &str, pid: u32| {
        let script = "0 hello 2025-06-18\n1 call 1 t\n";
        judged(&format!("{before}{script}3 key-esc {pid}\n9 s= 1"))
    };
    let outside = |exe: &str| format!("0 fork 5 1 {exe}\n0 fork 10 5 /opt/agent\n");
    for editor in ["/usr/bin/vim", "/usr/bin/less"] {
        let below = format!("0 fork 10 1 /opt/agent\n0.5 fork 30 10 {editor}\n");
        assert_eq!(esc(&below, 30), "1 answered", "{editor} in the host");
        assert_eq!(
            esc(&outside(editor), 5),
            "1 answered",
            "the host in {editor}"
        );
    }
    for terminal in ["/usr/bin/zellij", "/usr/bin/ssh", "/usr/bin/kitty"] {
        assert_eq!(esc(&outside(terminal), 5), "1 answered", "{terminal}");
    }
    // It may be the host's.
    let possible = "1 answered | abandoned-call 1 possible info";
    assert_eq!(esc(&outside("/usr/bin/node"), 5), possible);
    let below = "0 fork 10 1 /opt/agent\n0.5 fork 30 10 /opt/agent-view\n";
    assert_eq!(esc(below, 30), possible);
    let own = "0 fork 10 1 /opt/agent\n0.5 fork 30 10 /opt/agent\n";
    assert_eq!(
        esc(own, 30),
        "1 abandoned | abandoned-call 1 probable warning"
    );
    let two = "0 fork 10 1 /opt/agent\n0 fork 11 1 /opt/agent\n";
    assert_eq!(esc(two, 11), "1 answered", "two windows, each its own host");
}

#[test]
fn esc_that_is_held_down_answers_one_question() {
    let script = "0 hello 2025-06-18\n1 call 1 t\n2 s 7 elicitation/create\n30 key-esc 10\n\
                  30.1 c= 7\n30.3 key-esc 10\n90 s= 1";
    assert_eq!(judged(script), "7 answered, 1 answered");
    let again = script.replace("30.3", "40");
    assert_eq!(
        judged(&again),
        "7 answered, 1 abandoned | abandoned-call 1 probable warning"
    );
}

#[test]
fn equal_calls_of_who_knows_whom_are_no_proof() {
    let script = "0 hello 2025-06-18 gateway 1\n1 call 1 t\n8 call 2 t\n20 s= 1\n21 s= 2";
    assert_eq!(
        judged(script),
        "1 abandoned, 2 answered | abandoned-call 1 probable warning"
    );
    let limit = Settings {
        deadlines: [("t".into(), Duration::from_secs(6))].into(),
        ..Settings::default()
    };
    assert_eq!(
        judged_with(script, limit),
        "1 abandoned, 2 abandoned | abandoned-call 1 confirmed error, \
         abandoned-call 2 probable warning",
        "the user knows that nobody waited"
    );
}

#[test]
fn requests_of_another_conversation_to_the_model_say_nothing() {
    let script = "0 hello 2025-06-18 codex-mcp-client 0.171.0\n0.5 net 10 30000\n1 call 1 t\n\
                  6 net 10 31000\n10 s= 1";
    assert_eq!(
        judged(script),
        "1 abandoned | abandoned-call 1 probable warning"
    );
    let two = script.replace(
        "0.5 net",
        "0.2 @2 hello 2025-06-18 codex-mcp-client 0.171.0\n0.5 net",
    );
    assert_eq!(
        judged(&two),
        "1 answered",
        "another thread of the same process"
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
        format!("0 hello 2025-06-18\n0.5 net 10 9000\n0.6 net 10 3000\n1 call 1 t\n{more}\n60 end")
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

/// A finding is written anew where a retry joins what was known, and once for what comes together.
#[test]
fn a_retry_is_named_beside_the_request_to_the_model() {
    let kinds = |retry: f64| {
        let script = format!(
            "{CODEX}\n0.5 net 10 9000\n0.6 net 10 3000\n1 call 1 t\n4.0 net 10 12370\n{retry} call 2 t\n9 end"
        );
        let heard = hear(&script, Settings::default());
        heard
            .findings
            .iter()
            .map(|finding| {
                finding
                    .evidence
                    .iter()
                    .map(|evidence| evidence.kind)
                    .collect::<Vec<_>>()
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(kinds(4.05), [["model-request", "retry"]]);
    assert_eq!(
        kinds(6.5),
        [vec!["model-request"], vec!["model-request", "retry"]]
    );
}

#[test]
fn clauses_are_joined_so_that_each_is_seen() {
    let joined = |clauses: &[&str]| {
        let owned: Vec<_> = clauses.iter().map(ToString::to_string).collect();
        super::joined(&owned)
    };
    assert_eq!(joined(&["it rained"]), "it rained");
    assert_eq!(
        joined(&["it rained", "it was cold"]),
        "it rained and it was cold"
    );
    assert_eq!(joined(&["a", "b, and c", "d"]), "a; b, and c; d");
}
