//! What counts as a change, and which way.

use super::*;
use crate::capture::Timestamp;
use crate::jsonrpc::Id;
use crate::session::ConnId;
use crate::verdict::{Confidence, Culprit};

fn tally(calls: &[(&str, u64)], findings: &[(&'static str, &str, Severity)]) -> Tally {
    let mut tally = Tally::default();
    for &(tool, count) in calls {
        for _ in 0..count {
            let call = CallRecord {
                at: Timestamp::ZERO,
                conn: ConnId(1),
                from: Side::Client,
                id: Id::Null,
                method: "tools/call".into(),
                name: Some(tool.into()),
                sent: Timestamp::ZERO,
                ended: None,
                outcome: Outcome::Answered,
                wasted: None,
                request_bytes: 0,
                response_bytes: None,
                progress: 0,
                cancel: None,
            };
            tally.handle_output(&Output::Derived(verdict::Output::Call(call)));
        }
    }
    for (number, &(rule, tool, severity)) in (1..).zip(findings) {
        tally.handle_output(&finding(number, rule, tool, severity, None));
    }
    tally
}

fn finding(
    number: u32,
    rule: &'static str,
    tool: &str,
    severity: Severity,
    supersedes: Option<u32>,
) -> Output {
    Output::Derived(verdict::Output::Finding(Finding {
        at: Timestamp::ZERO,
        number,
        rule,
        severity,
        confidence: Confidence::Probable,
        side: Culprit::Host,
        conn: None,
        id: None,
        method: Some("tools/call".into()),
        name: Some(tool.into()),
        message: String::new(),
        evidence: Vec::new(),
        spec: None,
        supersedes,
    }))
}

fn turns(old: &Tally, new: &Tally) -> Vec<(Turn, String, bool)> {
    let changes = compare(old, new);
    let one = |change: &Change| (change.turn, change.target.title(), change.is_worse());
    changes.iter().map(one).collect()
}

const RULE: &str = "abandoned-call";

#[test]
fn what_started_and_what_stopped() {
    let clean = tally(&[("a", 2), ("b", 1)], &[]);
    let broken = tally(&[("a", 2)], &[(RULE, "a", Severity::Warning)]);
    let title = "tools/call a".to_owned();
    assert_eq!(
        turns(&clean, &broken),
        [(Turn::Started, title.clone(), true)]
    );
    assert_eq!(
        turns(&broken, &clean),
        [(Turn::Stopped, title.clone(), false)]
    );
    assert_eq!(
        turns(&broken, &broken),
        [(Turn::Same, title.clone(), false)]
    );
    let without = tally(&[("b", 1)], &[]);
    assert_eq!(turns(&broken, &without), [(Turn::Gone, title, false)]);
    assert_eq!(turns(&clean, &clean), []);
}

#[test]
fn more_calls_alone_are_no_more_faults() {
    let one = (RULE, "a", Severity::Warning);
    let few = tally(&[("a", 2)], &[one]);
    let many = tally(&[("a", 5)], &[one, one]);
    assert_eq!(turns(&few, &many)[0].0, Turn::Less);
    assert_eq!(turns(&many, &few)[0].0, Turn::More);
    assert_eq!(
        turns(&tally(&[("a", 4)], &[one, one]), &few)[0].0,
        Turn::Same
    );
}

#[test]
fn what_is_only_worth_knowing_is_not_worse() {
    let clean = tally(&[("a", 1)], &[]);
    let noted = tally(&[("a", 1)], &[("stale-cancel", "a", Severity::Info)]);
    assert_eq!(
        turns(&clean, &noted),
        [(Turn::Started, "tools/call a".into(), false)]
    );
}

#[test]
fn what_was_withdrawn_does_not_count() {
    let clean = tally(&[("a", 1)], &[]);
    let mut other = tally(&[("a", 1)], &[(RULE, "a", Severity::Warning)]);
    other.handle_output(&finding(2, "late-cancel", "a", Severity::Warning, Some(1)));
    let changes = compare(&clean, &other);
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0].rule, "late-cancel");
}
