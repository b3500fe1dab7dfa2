//! The same call is sent again: when that speaks for an abandonment, and how loudly.

use std::time::Duration;

use super::CODEX;
use crate::verdict::Settings;
use crate::verdict::script::{hear, judged, judged_with};

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
