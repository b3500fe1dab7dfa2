//! What convicts of an abandoned call, what does not, and how sure each leaves us.

mod interrupts;
mod retries;

use std::time::Duration;

use crate::verdict::Settings;
use crate::verdict::script::{judged, judged_with};

const CODEX: &str = "0 hello 2025-06-18 codex-mcp-client 0.163.0";

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
