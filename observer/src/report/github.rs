//! Annotations in a GitHub workflow's log: one line for each objection of the policy.

use std::fmt::Write;

use super::build::Report;
use super::model::Log;
use crate::policy::Level;

/// So many annotations are made of a log; GitHub shows fewer.
const LISTED: usize = 50;

pub(super) fn render(report: &Report, out: &mut Vec<u8>) {
    let mut text = String::new();
    for log in &report.logs {
        annotations(log, &mut text);
    }
    out.extend_from_slice(text.as_bytes());
}

/// Writing into a String cannot fail.
fn annotations(log: &Log, out: &mut String) {
    let worded = |objection: &&crate::policy::Objection| !objection.message.is_empty();
    let objections = log.ruling.objections.iter().filter(worded);
    // What is denied comes first: what follows may not be shown.
    let mut objections: Vec<_> = objections.collect();
    objections.sort_by_key(|objection| std::cmp::Reverse(objection.level));
    for objection in objections.iter().take(LISTED) {
        let command = match objection.level {
            Level::Deny => "error",
            Level::Warn => "warning",
            Level::Allow => "notice",
        };
        let title = format!("{}{}", objection.subject.name(), objection.detail);
        line(command, &title, &objection.message, out);
    }
    for missing in &log.ruling.uncovered {
        line("error", &log.name, missing, out);
    }
    for fault in &log.faults {
        line("warning", &log.name, fault, out);
    }
    let _ = writeln!(
        out,
        "{}: {}; calls {}; {} denied, {} warned",
        // At the beginning of a line, a command's colons would be obeyed.
        log.name.trim_start_matches([':', '#']),
        log.standing.word(),
        log.outcomes(),
        log.ruling.denied,
        log.ruling.warned
    );
}

fn line(command: &str, title: &str, message: &str, out: &mut String) {
    let title = data(title).replace(':', "%3A").replace(',', "%2C");
    let _ = writeln!(out, "::{command} title={title}::{}", data(message));
}

/// The quoting of a workflow command's data.
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}
