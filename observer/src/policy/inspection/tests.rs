//! Findings, calls and servers against policies.

use bytes::Bytes;

use super::*;
use crate::capture::Timestamp;
use crate::jsonrpc::Frame;
use crate::session::{Event, Observed};
use crate::verdict::{Confidence, Culprit, Outcome, Severity};

fn hello() -> Vec<Output> {
    let frames = [
        (
            Side::Client,
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"clientInfo":{"name":"codex-mcp-client","version":"1"}}}"#,
        ),
        (
            Side::Server,
            r#"{"jsonrpc":"2.0","id":0,"result":{"serverInfo":{"name":"files","version":"2"}}}"#,
        ),
    ];
    let frame = |text: &str| Frame::parse(Bytes::copy_from_slice(text.as_bytes()));
    let message = |(from, text)| {
        let event = Event::Message {
            conn: ConnId(1),
            from,
            offset: None,
            bytes: 1,
            frame: frame(text).expect("a frame"),
        };
        Output::Observed(Observed {
            at: Timestamp::ZERO,
            event,
        })
    };
    frames.into_iter().map(message).collect()
}

fn finding(confidence: Confidence) -> Output {
    Output::Derived(verdict::Output::Finding(Finding {
        at: Timestamp::ZERO,
        number: 1,
        rule: "abandoned-call",
        severity: Severity::Warning,
        confidence,
        side: Culprit::Host,
        conn: Some(ConnId(1)),
        id: Some(Id::Number("2".into())),
        method: Some("tools/call".into()),
        name: Some("slow".into()),
        message: "it did".into(),
        evidence: Vec::new(),
        spec: None,
        supersedes: None,
    }))
}

fn call(pending: u64, wasted: u64) -> Output {
    let at = Timestamp::from_nanos(pending * 1_000_000_000);
    Output::Derived(verdict::Output::Call(CallRecord {
        at,
        conn: ConnId(1),
        from: Side::Client,
        id: Id::Number("2".into()),
        method: "tools/call".into(),
        name: Some("slow".into()),
        sent: Timestamp::ZERO,
        ended: Some(at),
        outcome: Outcome::Abandoned,
        wasted: Some(std::time::Duration::from_secs(wasted)),
        request_bytes: 1,
        response_bytes: None,
        progress: 0,
        cancel: None,
    }))
}

fn rule(policy: &str, outputs: &[Output]) -> Ruling {
    let policy = Policy::parse(policy).expect("a policy");
    let mut inspection = Inspection::new(policy);
    for output in hello().iter().chain(outputs) {
        inspection.handle_output(output);
    }
    inspection.conclude()
}

fn level(policy: &str) -> Option<Level> {
    let ruling = rule(policy, &[finding(Confidence::Probable)]);
    ruling.objections.first().map(|objection| objection.level)
}

#[test]
fn a_rule_goes_before_its_severity_and_confidence_softens_it() {
    assert_eq!(level(""), Some(Level::Warn));
    assert_eq!(level("[severity]\nwarning = \"deny\""), Some(Level::Deny));
    assert_eq!(level("[severity]\nwarning = \"allow\""), None);
    let deny = "[rules.abandoned-call]\nlevel = \"deny\"\n";
    assert_eq!(level(deny), Some(Level::Deny));
    assert_eq!(
        level(&format!("{deny}confidence = \"probable\"")),
        Some(Level::Deny)
    );
    assert_eq!(
        level(&format!("{deny}confidence = \"confirmed\"")),
        Some(Level::Warn)
    );
}

#[test]
fn an_entry_allows_what_matches_all_that_it_names() {
    for (entry, allowed) in [
        ("", true),
        ("rule = \"abandoned-call\"", true),
        ("rule = \"late-cancel\"", false),
        (
            "host = \"codex*\"\nserver = \"files\"\ntool = \"s*w\"",
            true,
        ),
        ("host = \"codex*\"\nserver = \"other\"", false),
        ("tool = \"fast\"", false),
    ] {
        let policy = format!("[[allow]]\n{entry}");
        assert_eq!(level(&policy).is_none(), allowed, "{entry}");
    }
}

#[test]
fn limits_are_denied_when_exceeded() {
    let limits = "[limits]\npending = 5\nwasted = \"2s\"\n";
    let subjects = |policy: &str, pending, wasted| {
        let ruling = rule(policy, &[call(pending, wasted)]);
        let subjects = ruling.objections.iter().map(|one| one.subject);
        (ruling.denied, subjects.collect::<Vec<_>>())
    };
    assert_eq!(subjects(limits, 5, 2), (0, vec![]));
    assert_eq!(
        subjects(limits, 6, 3),
        (2, vec![Subject::Pending, Subject::Wasted])
    );
    let allowed = format!("{limits}[[allow]]\nrule = \"limits.wasted\"");
    assert_eq!(subjects(&allowed, 6, 3), (1, vec![Subject::Pending]));
    assert_eq!(subjects("", 6_000, 6_000), (0, vec![]));
}

#[test]
fn a_server_that_may_not_be_started_is_denied() {
    let ruling = rule("[limits]\nservers = [\"web\"]", &[]);
    assert_eq!(
        ruling.objections[0].message,
        "the server of connection 1, files 2, is not among those that may be started"
    );
    assert_eq!(rule("[limits]\nservers = [\"f*\"]", &[]), Ruling::default());
}

#[test]
fn silence_is_not_success() {
    let summary = |messages, complete| {
        Output::Derived(verdict::Output::Summary(Summary {
            messages,
            complete,
            ..Summary::default()
        }))
    };
    assert_eq!(rule("", &[summary(0, true)]).uncovered.len(), 1);
    assert_eq!(rule("", &[summary(1, false)]).uncovered.len(), 0);
    let complete = "[coverage]\ncomplete = true";
    assert_eq!(rule(complete, &[summary(1, false)]).uncovered.len(), 1);
}
