//! Plain text, for a terminal or a log.

use std::fmt::Write;

use super::build::Report;
use super::model::{Log, heading};
use crate::record::Word;
use crate::wording::{count, size, span, time};

pub(super) fn render(report: &Report, out: &mut Vec<u8>) {
    let mut text = String::new();
    for (place, log) in report.logs.iter().enumerate() {
        if place > 0 {
            text.push('\n');
        }
        log_lines(log, &mut text);
    }
    out.extend_from_slice(text.as_bytes());
}

/// Writing into a String cannot fail.
fn log_lines(log: &Log, out: &mut String) {
    let _ = writeln!(out, "{}: {}", log.name, log.standing.word());
    let _ = writeln!(
        out,
        "  length    {}{}",
        span(log.length()),
        match log.header.started.as_str() {
            "" => String::new(),
            started => format!(", from {}", crate::wording::observed(started, 40)),
        }
    );
    let (messages, bytes) = (log.summary.messages, size(log.summary.bytes));
    let _ = writeln!(out, "  traffic   {}, {bytes}", count(messages, "message"));
    let _ = writeln!(out, "  evidence  {}", log.evidence());
    let _ = writeln!(out, "  calls     {}", log.outcomes());
    for fault in &log.faults {
        let _ = writeln!(out, "  damage    {fault}");
    }
    if !log.connections.is_empty() {
        out.push_str("\n  Connections\n");
    }
    for (conn, connection) in &log.connections {
        let sides = log.sides(*conn).unwrap_or_default();
        let revision = match &connection.sides.revision {
            Some(revision) => format!(", MCP {revision}"),
            None => String::new(),
        };
        let calls = count(connection.calls, "call");
        let _ = writeln!(out, "  {conn:>4}  {sides}{revision}, {calls}");
    }
    tools(log, out);
    findings(log, out);
    policy(log, out);
}

fn tools(log: &Log, out: &mut String) {
    if log.tools.is_empty() {
        return;
    }
    out.push_str("\n  Calls          mean   longest    wasted\n");
    for (tool, tally) in &log.tools {
        let mean = tally.mean().map(span).unwrap_or_default();
        let longest = tally
            .mean()
            .map(|_| span(tally.longest))
            .unwrap_or_default();
        let wasted = match tally.wasted.is_zero() {
            true => String::new(),
            false => span(tally.wasted),
        };
        let (title, outcomes) = (tool.title(), super::model::outcomes(&tally.outcomes));
        let _ = writeln!(
            out,
            "  {:>5}  {mean:>10}{longest:>10}{wasted:>10}  {title} ({})",
            tally.calls(),
            outcomes.split_once(": ").map_or("", |(_, words)| words)
        );
    }
}

fn findings(log: &Log, out: &mut String) {
    if log.findings.is_empty() {
        return;
    }
    out.push_str("\n  Findings\n");
    for finding in log.worst_first() {
        let (word, heading) = (finding.severity.word(), heading(finding));
        let _ = writeln!(out, "  {:>4}  {word:<7}  {heading}", finding.number);
        let _ = writeln!(out, "        {}", finding.message);
        for evidence in &finding.evidence {
            let (at, kind) = (time(evidence.at), evidence.kind);
            let _ = writeln!(out, "        {at:>9}  {kind}: {}", evidence.detail);
        }
        if let Some(spec) = &finding.spec {
            let _ = writeln!(out, "        spec: {spec}");
        }
    }
    if log.findings_left_out > 0 {
        let _ = writeln!(out, "        and {} more", log.findings_left_out);
    }
}

fn policy(log: &Log, out: &mut String) {
    let ruling = &log.ruling;
    if ruling.denied + ruling.warned == 0 && ruling.uncovered.is_empty() {
        return;
    }
    out.push_str("\n  Policy\n");
    for objection in &ruling.objections {
        let word = objection.level.word();
        let (subject, detail) = (objection.subject.name(), &objection.detail);
        let _ = writeln!(out, "        {word:<7}  {subject}{detail}");
    }
    for missing in &ruling.uncovered {
        let _ = writeln!(out, "        missing  {missing}");
    }
}
