//! Where the outputs of a command go, and which exit code comes of it.

use clap::Parser;

use super::*;
use crate::capture::Timestamp;
use crate::verdict::{self, Confidence, Culprit, Finding, Severity, Summary};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    output: OutputArgs,
}

fn outputs(args: &[&str], job: Job) -> Outputs {
    let line = Line::parse_from([&["x", "--quiet"], args].concat());
    line.output.open(job).expect("opened")
}

fn finding() -> Output {
    Output::Derived(verdict::Output::Finding(Finding {
        at: Timestamp::ZERO,
        number: 1,
        rule: "abandoned-call",
        severity: Severity::Warning,
        confidence: Confidence::Probable,
        side: Culprit::Host,
        conn: None,
        id: None,
        method: None,
        name: None,
        message: String::new(),
        evidence: Vec::new(),
        spec: None,
        supersedes: None,
    }))
}

/// A run's end, with a sink that nobody sees.
fn end(args: &[&str], job: Job, found: bool, complete: bool) -> Outputs {
    let mut outputs = outputs(args, job);
    outputs.lines = Lines::new(
        Outlet::new("sink".into(), Box::new(io::sink())),
        Detail::Quiet,
        Color::Plain,
    );
    if found {
        outputs.handle_output(&finding(), None);
    }
    let summary = Summary {
        messages: 1,
        complete,
        ..Summary::default()
    };
    outputs.handle_output(&Output::Derived(verdict::Output::Summary(summary)), None);
    outputs
}

#[test]
fn a_command_keeps_its_status_unless_told_otherwise() {
    let command = Exit::Command(7);
    let exit = |args: &[&str]| end(args, Job::Run, true, false).exit_of(command);
    assert_eq!(exit(&[]), command);
    assert_eq!(exit(&["--fail-on", "error"]), command);
    assert_eq!(exit(&["--fail-on", "warning"]), Exit::Findings);
    assert_eq!(exit(&["--strict"]), Exit::Incomplete);
    // What was found is found, whatever else went by unseen.
    assert_eq!(exit(&["--strict", "--fail-on", "probable"]), Exit::Findings);
}

#[test]
fn others_have_the_codes_of_the_contract() {
    let exit = |args: &[&str], complete| end(args, Job::Live, true, complete).exit();
    assert_eq!(exit(&["--strict"], true), Exit::Clean);
    assert_eq!(exit(&["--strict"], false), Exit::Incomplete);
    assert_eq!(exit(&["--fail-on", "abandoned-call"], true), Exit::Findings);
    assert_eq!(exit(&["--fail-on", "stdout-noise"], true), Exit::Clean);
}

#[test]
fn a_log_that_fails_does_not_touch_the_commands_status() {
    let full = &["--log", "/dev/full"];
    let mut outputs = end(full, Job::Run, false, true);
    outputs.flush();
    assert_eq!(outputs.exit_of(Exit::Command(7)), Exit::Command(7));
    let mut outputs = end(full, Job::Live, false, true);
    outputs.flush();
    assert_eq!(outputs.exit(), Exit::Failed);
    assert!(!outputs.is_unread());
}

#[test]
fn a_log_that_cannot_be_opened_is_refused_before_anything_starts() {
    for (job, exit) in [(Job::Run, Exit::ObserverFailed), (Job::Live, Exit::Failed)] {
        let line = Line::parse_from(["x", "--log", "/dev/null/audit.jsonl"]);
        let failure = line.output.open(job).map(drop).expect_err("no folder");
        assert_eq!(failure.exit(), exit);
    }
}
