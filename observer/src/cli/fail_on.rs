//! `--fail-on`: which findings make the exit code 1.

use std::collections::HashSet;
use std::str::FromStr;

use crate::record::Word;
use crate::verdict::{Confidence, Finding, Severity};

/// One `--fail-on`: a severity, a confidence, or a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailOn {
    /// Findings of this severity or a higher one.
    Severity(Severity),
    /// Findings of this confidence or a higher one.
    Confidence(Confidence),
    /// Findings of this rule.
    Rule(String),
}

impl FailOn {
    fn is_reached_by(&self, finding: &Finding) -> bool {
        match self {
            Self::Severity(severity) => finding.severity >= *severity,
            Self::Confidence(confidence) => finding.confidence >= *confidence,
            Self::Rule(rule) => finding.rule == rule,
        }
    }
}

impl FromStr for FailOn {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        if let Some(severity) = Severity::from_word(word) {
            return Ok(Self::Severity(severity));
        }
        if let Some(confidence) = Confidence::from_word(word) {
            return Ok(Self::Confidence(confidence));
        }
        if crate::verdict::rules().any(|rule| rule.name == word) {
            return Ok(Self::Rule(word.into()));
        }
        Err(format!(
            "give a severity ({}), a confidence ({}), or a rule (`observer rules` lists them)",
            Severity::WORDS.join(", "),
            Confidence::WORDS.join(", ")
        ))
    }
}

/// Counts the findings that reach one of several `--fail-on`s and that stand.
#[derive(Debug, Default)]
pub(super) struct Tally {
    fail_on: Vec<FailOn>,
    standing: HashSet<u32>,
}

impl Tally {
    /// A tally of the findings that reach one of `fail_on`.
    pub(super) fn new(fail_on: Vec<FailOn>) -> Self {
        Self {
            fail_on,
            standing: HashSet::new(),
        }
    }

    /// Takes a finding, which may take the place of another.
    pub(super) fn handle_finding(&mut self, finding: &Finding) {
        if let Some(earlier) = finding.supersedes {
            self.standing.remove(&earlier);
        }
        if self
            .fail_on
            .iter()
            .any(|fail_on| fail_on.is_reached_by(finding))
        {
            self.standing.insert(finding.number);
        }
    }

    /// Whether a finding reaches one of the `--fail-on`s.
    pub(super) fn is_reached(&self) -> bool {
        !self.standing.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::Timestamp;
    use crate::verdict::Culprit;

    fn finding(number: u32, severity: Severity, supersedes: Option<u32>) -> Finding {
        Finding {
            at: Timestamp::ZERO,
            number,
            rule: "abandoned-call",
            severity,
            confidence: Confidence::Probable,
            side: Culprit::Host,
            conn: None,
            id: None,
            method: None,
            name: None,
            message: String::new(),
            evidence: Vec::new(),
            spec: None,
            supersedes,
        }
    }

    fn tally(fail_on: &str, findings: &[Finding]) -> bool {
        let mut tally = Tally::new(vec![fail_on.parse().expect("a --fail-on")]);
        findings
            .iter()
            .for_each(|finding| tally.handle_finding(finding));
        tally.is_reached()
    }

    #[test]
    fn a_finding_reaches_its_own_level_and_those_below() {
        let found = [finding(1, Severity::Warning, None)];
        assert!(tally("info", &found) && tally("warning", &found) && !tally("error", &found));
        assert!(tally("possible", &found) && tally("probable", &found));
        assert!(!tally("confirmed", &found));
        assert!(tally("abandoned-call", &found) && !tally("stdout-noise", &found));
    }

    #[test]
    fn what_was_superseded_does_not_count() {
        let milder = [
            finding(1, Severity::Error, None),
            finding(2, Severity::Info, Some(1)),
        ];
        assert!(!tally("error", &milder));
        let worse = [
            finding(1, Severity::Info, None),
            finding(2, Severity::Error, Some(1)),
        ];
        assert!(tally("error", &worse));
    }

    #[test]
    fn an_unknown_word_says_which_are_known() {
        let error = "fatal".parse::<FailOn>().expect_err("unknown");
        assert!(error.contains("error, warning, info"), "{error}");
    }
}
