//! Every trace of real traffic, replayed: outcomes, rules, confidences and what must never be
//! found, by `traces/hosts/expected.json` and by the table in `traces/README.md`.

#![expect(
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test reads its files, and fails by panicking"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use observer::capture::Timestamp;
use observer::pipeline::{self, Pipeline};
use observer::record::{Record, Word, parse_line};
use observer::session::{self, Side};
use observer::verdict::{
    CallRecord, Confidence, Finding, Outcome, Output, Settings, Severity, Summary,
};
use serde_json::Value;

fn traces() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces")
}

/// What the judge makes of a trace.
struct Verdict {
    calls: Vec<CallRecord>,
    findings: Vec<Finding>,
    summary: Summary,
}

impl Verdict {
    fn of(trace: &Path) -> Self {
        let text = std::fs::read_to_string(trace).expect("a trace can be read");
        let mut pipeline = Pipeline::new(session::Settings::default(), Settings::default());
        let mut last = Timestamp::ZERO;
        for line in text.lines() {
            let record = parse_line(line.as_bytes()).expect("a record");
            if let Some(observed) = record.and_then(Record::into_observed) {
                last = observed.at;
                pipeline.handle_observed(observed);
            }
        }
        pipeline.finish(last);
        let (mut calls, mut findings, mut summary) = (Vec::new(), Vec::new(), None);
        while let Some(output) = pipeline.poll_output() {
            match output {
                pipeline::Output::Derived(Output::Call(call)) => calls.push(call),
                pipeline::Output::Derived(Output::Finding(finding)) => findings.push(finding),
                pipeline::Output::Derived(Output::Summary(it)) => summary = Some(it),
                _ => {}
            }
        }
        let summary = summary.expect("a log ends with its summary");
        Self {
            calls,
            findings,
            summary,
        }
    }

    fn outcome(&self, id: &str) -> Outcome {
        let mut of = self.calls.iter().filter(|call| {
            call.from == Side::Client && call.id.to_string() == id && call.method == "tools/call"
        });
        let call = of.next().expect("the call has a record");
        assert!(of.next().is_none(), "the call {id} has one record");
        call.outcome
    }

    /// The findings of a rule about a call, in the order in which they were made.
    fn about(&self, id: &str, rule: &str) -> Vec<&Finding> {
        let of = self.findings.iter().filter(|finding| finding.rule == rule);
        of.filter(|finding| finding.id.as_ref().is_some_and(|it| it.to_string() == id))
            .collect()
    }

    /// Those of them that stand.
    fn standing(&self, id: &str, rule: &str) -> Vec<&Finding> {
        let superseded: Vec<_> = self
            .findings
            .iter()
            .filter_map(|it| it.supersedes)
            .collect();
        let mut about = self.about(id, rule);
        about.retain(|finding| !superseded.contains(&finding.number));
        about
    }
}

#[test]
fn the_hosts_traces_get_the_verdicts_that_are_right() {
    let text = std::fs::read_to_string(traces().join("hosts/expected.json")).expect("readable");
    let expected: BTreeMap<String, BTreeMap<String, Value>> =
        serde_json::from_str(&text).expect("well-formed");
    let mut wrong = Vec::new();
    for (trace, calls) in &expected {
        let verdict = Verdict::of(&traces().join(format!("hosts/{trace}.jsonl")));
        for (id, right) in calls {
            wrong.extend(differences(trace, id, right, &verdict));
        }
    }
    assert!(expected.len() >= 70, "all traces are there");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn differences(trace: &str, id: &str, right: &Value, verdict: &Verdict) -> Vec<String> {
    let words = |field: &str| -> Vec<String> {
        let list = right[field].as_array().cloned().unwrap_or_default();
        list.iter()
            .filter_map(|word| word.as_str().map(str::to_owned))
            .collect()
    };
    let mut wrong = Vec::new();
    let outcome = verdict.outcome(id).word();
    if !words("outcome").contains(&outcome.to_owned()) {
        wrong.push(format!(
            "{trace}: call {id} is {outcome}, not {:?}",
            words("outcome")
        ));
    }
    for rule in words("rules") {
        let standing = verdict.standing(id, &rule);
        let sure = words("confidence");
        let fits = |finding: &&&Finding| {
            sure.is_empty() || sure.iter().any(|word| word == finding.confidence.word())
        };
        if standing.iter().filter(fits).count() != 1 {
            wrong.push(format!(
                "{trace}: call {id} lacks one {rule} {sure:?}: {standing:?}"
            ));
        }
    }
    for rule in words("never") {
        if !verdict.about(id, &rule).is_empty() {
            wrong.push(format!("{trace}: call {id} has {rule}"));
        }
    }
    for rule in words("never_confirmed") {
        let about = verdict.about(id, &rule);
        if about
            .iter()
            .any(|finding| finding.confidence == Confidence::Confirmed)
        {
            wrong.push(format!("{trace}: call {id} has a confirmed {rule}"));
        }
    }
    wrong
}

#[test]
fn a_retry_makes_an_abandoned_call_probable_and_its_late_answer_confirms_it() {
    let verdict = Verdict::of(&traces().join("made/codex-0.163-retry.jsonl"));
    for id in ["2", "3"] {
        assert_eq!(verdict.outcome(id), Outcome::Abandoned);
        let about = verdict.about(id, "abandoned-call");
        let sure: Vec<_> = about
            .iter()
            .map(|it| (it.confidence, it.severity))
            .collect();
        let steps = [
            (Confidence::Probable, Severity::Warning),
            (Confidence::Confirmed, Severity::Error),
        ];
        assert_eq!(sure, steps, "call {id}");
        assert_eq!(about[1].supersedes, Some(about[0].number));
        let kinds: Vec<_> = about[1].evidence.iter().map(|it| it.kind).collect();
        assert_eq!(kinds, ["retry", "late-answer"]);
        assert!(
            about[1]
                .spec
                .as_deref()
                .is_some_and(|spec| spec.starts_with("2025-06-18 "))
        );
    }
    let first = verdict
        .calls
        .iter()
        .find(|call| call.id.to_string() == "2")
        .expect("recorded");
    let wasted = first.wasted.expect("the server worked on").as_secs_f64();
    assert!((wasted - 1.906).abs() < 1e-6, "{wasted}");
    assert!(matches!(
        verdict.outcome("4"),
        Outcome::Abandoned | Outcome::TornDown
    ));
    assert_eq!(verdict.summary.calls.get(&Outcome::Abandoned), Some(&2));
    let error = ("abandoned-call", Severity::Error);
    assert_eq!(
        verdict.summary.findings.get(&error),
        Some(&2),
        "superseded ones do not count"
    );
    assert!(verdict.summary.complete);
}

#[test]
fn cancelled_retries_are_no_abandonment() {
    let verdict = Verdict::of(&traces().join("made/codex-0.171-retry.jsonl"));
    for id in ["2", "3", "4"] {
        assert_eq!(verdict.outcome(id), Outcome::Cancelled);
        assert!(verdict.about(id, "abandoned-call").is_empty());
    }
    for id in ["2", "3"] {
        assert_eq!(verdict.standing(id, "cancel-ignored").len(), 1, "call {id}");
    }
}

#[test]
fn stale_cancellations_and_answers_after_a_cancellation_are_found() {
    let verdict = Verdict::of(&traces().join("made/ts-sdk-1.32-stale-and-late.jsonl"));
    assert_eq!(verdict.outcome("1"), Outcome::Answered);
    assert_eq!(verdict.standing("1", "stale-cancel").len(), 1);
    for id in ["2", "3"] {
        assert_eq!(verdict.outcome(id), Outcome::Cancelled);
        assert_eq!(verdict.standing(id, "cancel-ignored").len(), 1, "call {id}");
    }
    assert_eq!(verdict.outcome("4"), Outcome::TornDown);
    assert_eq!(verdict.standing("4", "torn-down-pending").len(), 1);
}

#[test]
fn a_client_that_cancels_abandons_nothing() {
    let verdict = Verdict::of(&traces().join("made/py-sdk-2.3.jsonl"));
    assert!(
        verdict
            .findings
            .iter()
            .all(|finding| finding.rule != "abandoned-call")
    );
    assert_eq!(verdict.outcome("2"), Outcome::Cancelled);
    assert_eq!(verdict.outcome("3"), Outcome::Cancelled);
}
