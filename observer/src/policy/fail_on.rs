//! `--fail-on`: findings that are denied by a word on the command line, whatever the policy says.

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
    pub(super) fn is_reached_by(&self, finding: &Finding) -> bool {
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

#[cfg(test)]
mod tests {
    use super::super::{Inspection, Policy};
    use super::*;
    use crate::capture::Timestamp;
    use crate::pipeline::Output;
    use crate::verdict::{self, Culprit};

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

    fn denied(fail_on: &str, findings: &[Finding]) -> bool {
        let fail_on = vec![fail_on.parse().expect("a --fail-on")];
        let mut inspection = Inspection::new(Policy::silent().with_fail_on(fail_on));
        for finding in findings {
            inspection.handle_output(&Output::Derived(verdict::Output::Finding(finding.clone())));
        }
        inspection.conclude().denied > 0
    }

    #[test]
    fn a_finding_reaches_its_own_level_and_those_below() {
        let found = [finding(1, Severity::Warning, None)];
        assert!(denied("info", &found) && denied("warning", &found) && !denied("error", &found));
        assert!(denied("possible", &found) && denied("probable", &found));
        assert!(!denied("confirmed", &found));
        assert!(denied("abandoned-call", &found) && !denied("stdout-noise", &found));
    }

    #[test]
    fn what_was_superseded_does_not_count() {
        let milder = [
            finding(1, Severity::Error, None),
            finding(2, Severity::Info, Some(1)),
        ];
        assert!(!denied("error", &milder));
        let worse = [
            finding(1, Severity::Info, None),
            finding(2, Severity::Error, Some(1)),
        ];
        assert!(denied("error", &worse));
    }

    #[test]
    fn an_unknown_word_says_which_are_known() {
        let error = "fatal".parse::<FailOn>().expect_err("unknown");
        assert!(error.contains("error, warning, info"), "{error}");
    }
}
