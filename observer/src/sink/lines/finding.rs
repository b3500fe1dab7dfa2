//! Findings, and what everything amounts to at the end.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::palette::Palette;
use super::text::{count, observed, size, span};
use super::{Detail, row};
use crate::capture::Timestamp;
use crate::record::Word;
use crate::verdict::{Finding, Outcome, Severity, Summary};

/// So many findings are listed again at the end.
const LISTED: usize = 100;

/// A finding's sentence and its evidence are cut to this many characters.
const LIMIT: usize = 400;

/// The findings that stand.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// By number: severity, and the line at the end.
    lines: BTreeMap<u32, (Severity, String)>,
    /// How many more there are.
    unlisted: u64,
}

impl Standing {
    /// Takes a finding, which may take the place of another.
    pub(super) fn handle_finding(&mut self, finding: &Finding) {
        if let Some(earlier) = finding.supersedes {
            self.lines.remove(&earlier);
        }
        if self.lines.len() >= LISTED {
            self.unlisted += 1;
            return;
        }
        self.lines
            .insert(finding.number, (finding.severity, sentence(finding)));
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
        let _ = writeln!(
            out,
            "  traffic   {}, {}",
            count(summary.messages, "message"),
            size(summary.bytes)
        );
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
        for (number, (severity, line)) in &self.lines {
            let style = palette.severity(*severity);
            let word = severity.word();
            let _ = writeln!(
                out,
                "    {dim}{number:>3}{dim:#}  {style}{word:<8}{style:#} {line}"
            );
        }
        if self.unlisted > 0 {
            let _ = writeln!(out, "         and {} more", self.unlisted);
        }
    }
}

/// A finding's lines after the row's columns: the sentence and, in detail, what speaks for it.
pub(super) fn render(finding: &Finding, detail: Detail, palette: &Palette, out: &mut String) {
    let Palette { dim, strong, .. } = palette;
    let rule = finding.rule;
    let rest = sentence(finding);
    let rest = rest.strip_prefix(rule).unwrap_or(&rest);
    let _ = write!(out, "{strong}{rule}{strong:#}{rest}");
    if let Some(earlier) = finding.supersedes {
        let _ = write!(out, " {dim}(in place of finding {earlier}){dim:#}");
    }
    out.push('\n');
    if detail < Detail::Verbose {
        return;
    }
    for evidence in &finding.evidence {
        row::begin(out, palette, Some(evidence.at), None, *dim, evidence.kind);
        let _ = writeln!(out, "{}", observed(&evidence.detail, LIMIT));
    }
    if let Some(spec) = &finding.spec {
        row::begin(out, palette, None, None, *dim, "spec");
        let _ = writeln!(out, "{}", observed(spec, LIMIT));
    }
}

/// `abandoned-call (probable): The host ...`.
fn sentence(finding: &Finding) -> String {
    let message = observed(&finding.message, LIMIT);
    format!(
        "{} ({}): {message}",
        finding.rule,
        finding.confidence.word()
    )
}

/// `3: 1 answered, 2 abandoned`.
fn outcomes(calls: u64, by_outcome: &BTreeMap<Outcome, u64>, palette: &Palette) -> String {
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
