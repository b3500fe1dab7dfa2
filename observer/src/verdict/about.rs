//! What a rule says about itself: the one source of `observer rules`, `observer explain` and
//! `docs/verdicts.md`.

use super::{Revision, Severity};

/// A rule's own description.
#[derive(Debug)]
pub struct About {
    /// Its name in the audit log.
    pub name: &'static str,
    /// Whose fault it finds: `host`, `server`, `host or server`, `observer`.
    pub side: &'static str,
    /// How bad it is, unless the finding says otherwise.
    pub severity: Severity,
    /// Where the severity is not always the same: how it is chosen.
    pub grading: Option<&'static str>,
    /// What it means, in one sentence.
    pub meaning: &'static str,
    /// What it takes as evidence.
    pub evidence: &'static [&'static str],
    /// What looks like it and is none, and is therefore left alone.
    pub exceptions: &'static [&'static str],
    /// What each revision says, oldest first, in the order of [`Revision::ALL`]; empty where a
    /// revision says nothing.
    pub clauses: [&'static str; 5],
}

impl About {
    /// The clause of a revision that the rule rests on.
    pub fn clause(&self, revision: Revision) -> Option<&'static str> {
        Revision::ALL
            .iter()
            .zip(self.clauses)
            .find(|(known, clause)| **known == revision && !clause.is_empty())
            .map(|(_, clause)| clause)
    }
}

/// One clause for the four revisions with `initialize`, and one for 2026-07-28.
pub(super) const fn clauses(legacy: &'static str, stateless: &'static str) -> [&'static str; 5] {
    [legacy, legacy, legacy, legacy, stateless]
}
