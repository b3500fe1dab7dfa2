//! Markdown, fit for a job's summary: what matters first, tables after it.

use std::fmt::Write;

use super::build::Report;
use super::model::{Log, Standing, heading};
use crate::policy::Level;
use crate::record::Word;
use crate::wording::{count, size, span, time};

/// So many findings are told in full.
const FINDINGS: usize = 50;
/// So many rows a table has.
const ROWS: usize = 100;

/// What is special in the text of a table's cell.
const SPECIAL: [char; 17] = [
    '\\', '`', '*', '_', '[', ']', '<', '>', '|', '~', '#', '&', '!', '(', ')', '@', '$',
];

pub(super) fn render(report: &Report, out: &mut Vec<u8>) {
    let mut text = format!("## MCP calls: {}\n", report.standing().word());
    for log in &report.logs {
        section(log, &mut text);
    }
    out.extend_from_slice(text.as_bytes());
}

/// Writing into a String cannot fail.
fn section(log: &Log, out: &mut String) {
    let mark = match log.standing {
        Standing::Passed => "passed",
        Standing::Denied => "**denied**",
        Standing::NotShown => "**not shown**",
    };
    let _ = writeln!(out, "\n### {}: {mark}\n", plain(&log.name));
    for fault in &log.faults {
        let _ = writeln!(out, "- damage: {}", plain(fault));
    }
    for missing in &log.ruling.uncovered {
        let _ = writeln!(out, "- missing: {missing}");
    }
    let _ = writeln!(out, "- calls {}", log.outcomes());
    let _ = writeln!(
        out,
        "- {}, {} in {}; evidence {}",
        count(log.summary.messages, "message"),
        size(log.summary.bytes),
        span(log.length()),
        log.evidence()
    );
    findings(log, out);
    connections(log, out);
    tools(log, out);
}

fn findings(log: &Log, out: &mut String) {
    if log.findings.is_empty() {
        out.push_str("\nNo findings.\n");
        return;
    }
    out.push_str("\n| | finding | what happened | on |\n|---|---|---|---|\n");
    let findings = log.worst_first();
    for finding in findings.iter().take(FINDINGS) {
        let level = match log.level(finding.number) {
            Level::Deny => "**deny**",
            Level::Warn => "warn",
            Level::Allow => "",
        };
        let mut told = plain(&finding.message);
        for evidence in &finding.evidence {
            let (at, detail) = (time(evidence.at), plain(&evidence.detail));
            let _ = write!(told, "<br>{at} {}: {detail}", evidence.kind);
        }
        let on = finding.conn.and_then(|conn| log.sides(conn));
        let _ = writeln!(
            out,
            "| {level} | {} {} | {told} | {} |",
            finding.severity.word(),
            plain(&heading(finding)),
            plain(&on.unwrap_or_default())
        );
    }
    more(
        findings.len().saturating_sub(FINDINGS) as u64 + log.findings_left_out,
        out,
    );
}

fn connections(log: &Log, out: &mut String) {
    if log.connections.is_empty() {
        return;
    }
    out.push_str("\n| | host | server | MCP | calls |\n|---:|---|---|---|---:|\n");
    for (conn, connection) in log.connections.iter().take(ROWS) {
        let sides = &connection.sides;
        let _ = writeln!(
            out,
            "| {conn} | {} | {} | {} | {} |",
            plain(&sides.host.title()),
            plain(&sides.server.title()),
            plain(sides.revision.as_deref().unwrap_or_default()),
            connection.calls
        );
    }
    more(log.connections.len().saturating_sub(ROWS) as u64, out);
}

fn tools(log: &Log, out: &mut String) {
    if log.tools.is_empty() {
        return;
    }
    out.push_str("\n| call | outcomes | mean | longest | wasted |\n|---|---|---:|---:|---:|\n");
    for (tool, tally) in log.tools.iter().take(ROWS) {
        let wasted = match tally.wasted.is_zero() {
            true => String::new(),
            false => span(tally.wasted),
        };
        let mean = tally.mean();
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {wasted} |",
            plain(&tool.title()),
            super::model::outcomes(&tally.outcomes),
            mean.map(span).unwrap_or_default(),
            mean.map(|_| span(tally.longest)).unwrap_or_default()
        );
    }
    more(log.tools.len().saturating_sub(ROWS) as u64, out);
}

fn more(number: u64, out: &mut String) {
    if number > 0 {
        let _ = writeln!(out, "\nand {number} more");
    }
}

/// Text that Markdown leaves as it is.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for char in text.chars() {
        if SPECIAL.contains(&char) {
            plain.push('\\');
        }
        plain.push(char);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn observed_text_is_never_markup() {
        assert_eq!(
            plain("a|b <img> [x](y) `c` *d* ~e~"),
            r"a\|b \<img\> \[x\]\(y\) \`c\` \*d\* \~e\~"
        );
    }
}
