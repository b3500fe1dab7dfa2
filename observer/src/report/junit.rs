//! `JUnit` XML: a suite for each log, a case for each rule and for what else a policy asks.
//!
//! A case is a rule, not a call: its name is the same in every run, so that a CI system can tell
//! since when it fails.

use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

use super::build::Report;
use super::model::Log;
use crate::policy::{Level, Objection, Subject};
use crate::wording::count;

/// So many objections are told in a case.
const TOLD: usize = 50;

pub(super) fn render(report: &Report, out: &mut Vec<u8>) {
    let mut form = quick_junit::Report::new("observer");
    form.add_test_suites(report.logs.iter().map(suite));
    #[expect(clippy::expect_used, reason = "a Vec takes every write")]
    form.serialize(&mut *out).expect("a report serialises");
}

fn suite(log: &Log) -> TestSuite {
    let mut suite = TestSuite::new(log.name.as_str());
    suite.set_time(log.length());
    for (name, value) in [
        ("calls", log.outcomes()),
        ("messages", log.summary.messages.to_string()),
        ("evidence", log.evidence()),
    ] {
        suite.add_property((name, value.as_str()));
    }
    for conn in log.connections.keys() {
        let sides = log.sides(*conn).unwrap_or_default();
        suite.add_property((format!("connection {conn}").as_str(), sides.as_str()));
    }
    suite.add_test_cases(Subject::all().map(|subject| subject_case(log, subject)));
    suite.add_test_case(coverage_case(log));
    suite
}

/// What the policy objects to under one name.
fn subject_case(log: &Log, subject: Subject) -> TestCase {
    let about = |level| {
        let objections = log.ruling.objections.iter();
        objections.filter(move |one| one.subject == subject && one.level == level)
    };
    let (denied, warned) = (about(Level::Deny).count() as u64, about(Level::Warn));
    let status = match denied {
        0 => TestCaseStatus::success(),
        _ => failure(
            NonSuccessKind::Failure,
            "denied",
            denied,
            about(Level::Deny),
        ),
    };
    let mut case = case(log, subject.name(), status);
    let warnings = told(warned);
    if !warnings.is_empty() {
        case.set_system_out(warnings);
    }
    case
}

/// Whether all that must be seen was seen.
fn coverage_case(log: &Log) -> TestCase {
    let missing: Vec<_> = log.ruling.uncovered.iter().chain(&log.faults).collect();
    let status = match missing.first() {
        None => TestCaseStatus::success(),
        Some(first) => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_type("missing").set_message(first.as_str());
            let lines: Vec<_> = missing.iter().map(|line| line.as_str()).collect();
            status.set_description(lines.join("\n"));
            status
        }
    };
    case(log, "coverage", status)
}

fn case(log: &Log, name: &str, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(name, status);
    case.set_classname(format!("observer.{}", log.name));
    case
}

fn failure<'a>(
    kind: NonSuccessKind,
    what: &str,
    number: u64,
    objections: impl Iterator<Item = &'a Objection>,
) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    let text = told(objections);
    status.set_type(what);
    status.set_message(match number {
        1 => text.clone(),
        _ => count(number, "objection"),
    });
    status.set_description(text);
    status
}

fn told<'a>(objections: impl Iterator<Item = &'a Objection>) -> String {
    let lines: Vec<_> = objections
        .take(TOLD)
        .map(|one| format!("{}{}: {}", one.subject.name(), one.detail, one.message))
        .collect();
    lines.join("\n")
}
