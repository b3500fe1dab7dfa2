//! Findings, and what everything amounts to at the end.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::palette::Palette;
use super::{Detail, row};
use crate::capture::Timestamp;
use crate::record::Word;
use crate::verdict::{Finding, Outcome, Severity, Summary};
use crate::wording::{count, observed, size, span};

/// So many findings are listed again at the end.
const LISTED: usize = 100;

/// A finding's sentence and its evidence are cut to this many characters.
const LIMIT: usize = 400;

/// A request's id is cut to this many characters.
const ID: usize = 40;

/// Sentences are wrapped at this column.
const WIDTH: usize = 100;

/// The findings that stand.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// By number.
    listed: BTreeMap<u32, Listed>,
    /// How many more there are.
    unlisted: u64,
}

/// What is listed of a finding.
#[derive(Debug)]
struct Listed {
    severity: Severity,
    heading: String,
    message: String,
}

impl Standing {
    /// Takes a finding, which may take the place of another.
    pub(super) fn handle_finding(&mut self, finding: &Finding) {
        if let Some(earlier) = finding.supersedes {
            self.listed.remove(&earlier);
        }
        if self.listed.len() >= LISTED {
            self.unlisted += 1;
            return;
        }
        let listed = Listed {
            severity: finding.severity,
            heading: heading(finding),
            message: observed(&finding.message, LIMIT),
        };
        self.listed.insert(finding.number, listed);
    }

    /// What the log amounts to.
    pub(super) fn render_summary(&self, summary: &Summary, palette: &Palette, out: &mut String) {
        let Palette {
            dim,
            good,
            warning,
            strong,
            ..
        } = palette;
        let length = span(summary.at.since(Timestamp::ZERO));
        let _ = writeln!(out, "\n{strong}Summary{strong:#} of {length}");
        let calls: u64 = summary.calls.values().sum();
        let _ = writeln!(
            out,
            "  calls     {}",
            outcomes(calls, &summary.calls, palette)
        );
        let _ = match summary.messages {
            // Silence is no success: perhaps nothing of the scope speaks MCP over stdio.
            0 => writeln!(
                out,
                "  traffic   {warning}no MCP message was seen{warning:#}"
            ),
            messages => {
                let (messages, bytes) = (count(messages, "message"), size(summary.bytes));
                writeln!(out, "  traffic   {messages}, {bytes}")
            }
        };
        let _ = match (summary.complete, summary.gaps) {
            (true, _) => writeln!(out, "  evidence  {good}complete{good:#}"),
            (false, gaps) => {
                writeln!(
                    out,
                    "  evidence  {warning}incomplete{warning:#}, {}",
                    count(gaps, "gap")
                )
            }
        };
        let found: u64 = summary.findings.values().sum();
        let _ = match found {
            0 => writeln!(out, "  findings  {good}none{good:#}"),
            _ => writeln!(out, "  findings  {}", severities(summary)),
        };
        for (number, listed) in &self.listed {
            let style = palette.severity(listed.severity);
            let (word, heading) = (listed.severity.word(), &listed.heading);
            let _ = writeln!(
                out,
                "{dim}{number:>12}{dim:#}  {style}{word:<7}{style:#}  {heading}"
            );
            wrap(&listed.message, 23, out);
        }
        if self.unlisted > 0 {
            let _ = writeln!(out, "         and {} more", self.unlisted);
        }
    }
}

/// A finding's lines after the row's columns: what is broken, the sentence and, in detail, what
/// speaks for it.
pub(super) fn render(finding: &Finding, detail: Detail, palette: &Palette, out: &mut String) {
    let Palette { dim, strong, .. } = palette;
    let _ = write!(out, "{strong}{}{strong:#}", heading(finding));
    if let Some(earlier) = finding.supersedes {
        let _ = write!(out, ", {dim}in place of finding {earlier}{dim:#}");
    }
    out.push('\n');
    wrap(&observed(&finding.message, LIMIT), row::TEXT, out);
    if detail < Detail::Verbose {
        return;
    }
    for evidence in &finding.evidence {
        row::begin(out, palette, Some(evidence.at), None, *dim, evidence.kind);
        wrap(&observed(&evidence.detail, LIMIT), row::TEXT, out);
    }
    if let Some(spec) = &finding.spec {
        row::begin(out, palette, None, None, *dim, "spec");
        wrap(&observed(spec, LIMIT), row::TEXT, out);
    }
}

/// `abandoned-call #2 (probable)`.
fn heading(finding: &Finding) -> String {
    let id = finding
        .id
        .as_ref()
        .map(|id| format!(" #{}", observed(&id.to_string(), ID)));
    format!(
        "{}{} ({})",
        finding.rule,
        id.unwrap_or_default(),
        finding.confidence.word()
    )
}

/// Appends `text` in lines of [`WIDTH`] columns. It begins at column `indent`, in this line where
/// there is one, and so does each further line.
pub(super) fn wrap(text: &str, indent: usize, out: &mut String) {
    if out.ends_with('\n') {
        let _ = write!(out, "{:indent$}", "");
    }
    let mut column = indent;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > indent && column + 1 + length > WIDTH {
            let _ = write!(out, "\n{:indent$}", "");
            column = indent;
        } else if column > indent {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out.push('\n');
}

/// `3: 1 answered, 2 abandoned`.
pub(super) fn outcomes(
    calls: u64,
    by_outcome: &BTreeMap<Outcome, u64>,
    palette: &Palette,
) -> String {
    let mut text = calls.to_string();
    let mut separator = ": ";
    for (&outcome, &number) in by_outcome.iter().filter(|(_, number)| **number > 0) {
        let style = palette.outcome(outcome);
        let _ = write!(
            text,
            "{separator}{style}{number} {}{style:#}",
            outcome.word()
        );
        separator = ", ";
    }
    text
}

/// `3: 1 error, 2 warnings`.
fn severities(summary: &Summary) -> String {
    let mut by_severity = BTreeMap::new();
    for (&(_, severity), &number) in &summary.findings {
        *by_severity.entry(std::cmp::Reverse(severity)).or_insert(0) += number;
    }
    by_severity
        .into_iter()
        .map(|(severity, number)| match severity.0 {
            Severity::Info => format!("{number} info"),
            Severity::Warning | Severity::Error => count(number, severity.0.word()),
        })
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_wrapped_between_words() {
        let mut out = String::from("12345");
        let word = "x".repeat(40);
        wrap(
            &format!("{word} {word} {word}  a {}", "y".repeat(200)),
            5,
            &mut out,
        );
        let lines: Vec<_> = out.lines().collect();
        assert_eq!(lines[0], format!("12345{word} {word}"));
        assert_eq!(lines[1], format!("     {word} a"));
        assert_eq!(lines[2], format!("     {}", "y".repeat(200)));
        out.clear();
        out.push('\n');
        wrap("", 2, &mut out);
        assert_eq!(out, "\n  \n");
    }
}
