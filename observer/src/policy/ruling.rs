//! What a policy says of a run, and what it can object to.

use super::Level;
use crate::verdict;

/// What a policy objects to in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ruling {
    /// What is denied and what is told, in order of time, cut to the first thousand.
    pub objections: Vec<Objection>,
    /// How many are denied.
    pub denied: u64,
    /// How many are told.
    pub warned: u64,
    /// What should have been seen and was not.
    pub uncovered: Vec<String>,
}

/// Something that a policy does not allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objection {
    /// Whether it fails the run, or is told.
    pub level: Level,
    /// What it is about.
    pub subject: Subject,
    /// The finding, where it is about one.
    pub finding: Option<u32>,
    /// Which request, and how sure: ` #2 (confirmed)`; often empty.
    pub detail: String,
    /// One English sentence.
    pub message: String,
}

/// What a policy can object to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A finding of this rule.
    Rule(&'static str),
    /// A call that was pending too long.
    Pending,
    /// A server that worked on too long.
    Wasted,
    /// A server that may not be started.
    Server,
}

impl Subject {
    /// The rule's name, or the limit's: `limits.pending`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rule(name) => name,
            Self::Pending => "limits.pending",
            Self::Wasted => "limits.wasted",
            Self::Server => "limits.servers",
        }
    }

    /// All that there are.
    pub fn all() -> impl Iterator<Item = Self> {
        let rules = verdict::rules().map(|rule| Self::Rule(rule.name));
        rules.chain([Self::Pending, Self::Wasted, Self::Server])
    }
}

impl Ruling {
    /// Counts an objection, whether or not it keeps its words.
    pub(super) fn count(&mut self, objection: &Objection) {
        match objection.level {
            Level::Deny => self.denied += 1,
            Level::Warn => self.warned += 1,
            Level::Allow => {}
        }
    }
}
