//! A team's own rules for what a run may show: which findings count, which limits hold, what must
//! have been seen.
//!
//! [`Policy`] is read from TOML; [`Inspection`] sees what comes out of the pipeline, and rules.
//! Pure; must not change a verdict: what was found stays found, whatever a policy makes of it.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod fail_on;
mod file;
mod inspection;
mod nearest;
mod ruling;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use crate::verdict::{Confidence, Severity};
use crate::wording::Glob;

pub use fail_on::FailOn;
pub use file::PolicyError;
pub use inspection::Inspection;
pub(crate) use nearest::nearest;
pub use ruling::{Objection, Ruling, Subject};

/// The policy that holds where none is given, as a file with comments.
pub const TEMPLATE: &str = include_str!("template.toml");

/// What a run may show.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    severity: BySeverity,
    rules: BTreeMap<file::RuleName, RulePolicy>,
    allow: Vec<Allowance>,
    limits: Limits,
    coverage: Coverage,
    /// From the command line.
    #[serde(skip)]
    fail_on: Vec<FailOn>,
}

impl Policy {
    /// The policy that objects to nothing.
    pub fn silent() -> Self {
        Self {
            severity: BySeverity {
                error: Level::Allow,
                warning: Level::Allow,
                info: Level::Allow,
            },
            coverage: Coverage {
                traffic: false,
                complete: false,
            },
            ..Self::default()
        }
    }

    /// This policy, which denies the findings that reach one of `fail_on` as well.
    #[must_use]
    pub fn with_fail_on(self, fail_on: Vec<FailOn>) -> Self {
        Self { fail_on, ..self }
    }

    /// This policy, which misses MCP messages where there were none, whatever its coverage says.
    #[must_use]
    pub const fn wanting_traffic(mut self) -> Self {
        self.coverage.traffic = true;
        self
    }
}

/// What becomes of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// It is passed over.
    Allow,
    /// It is told.
    Warn,
    /// It fails the run.
    Deny,
}

impl Level {
    /// As a policy spells it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Warn => "warn",
            Self::Deny => "deny",
        }
    }
}

/// The levels of the rules that are not named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct BySeverity {
    error: Level,
    warning: Level,
    info: Level,
}

impl Default for BySeverity {
    fn default() -> Self {
        Self {
            error: Level::Deny,
            warning: Level::Warn,
            info: Level::Allow,
        }
    }
}

impl BySeverity {
    const fn level(&self, severity: Severity) -> Level {
        match severity {
            Severity::Error => self.error,
            Severity::Warning => self.warning,
            Severity::Info => self.info,
        }
    }
}

/// What holds for one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct RulePolicy {
    level: Level,
    #[serde(default)]
    confidence: Option<Confidence>,
}

/// What is known and accepted.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Allowance {
    #[serde(default)]
    rule: Option<file::Subjects>,
    #[serde(default)]
    host: Option<Glob>,
    #[serde(default)]
    server: Option<Glob>,
    #[serde(default)]
    tool: Option<Glob>,
    /// For the reader of the file.
    #[serde(default, rename = "reason")]
    _reason: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Limits {
    #[serde(deserialize_with = "file::duration")]
    pending: Option<Duration>,
    #[serde(deserialize_with = "file::duration")]
    wasted: Option<Duration>,
    servers: Option<Vec<Glob>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Coverage {
    traffic: bool,
    complete: bool,
}

impl Default for Coverage {
    fn default() -> Self {
        Self {
            traffic: true,
            complete: false,
        }
    }
}
