//! `docs/verdicts.md`, made from what the rules say about themselves.

use std::fmt::Write;

use super::{About, Revision, Severity, rules};

const INTRO: &str = include_str!("page.md");

/// The text of `docs/verdicts.md`.
pub fn page() -> String {
    let mut page = INTRO.to_owned();
    page.push_str("\n## Rules\n\n| rule | side | severity | meaning |\n|---|---|---|---|\n");
    for about in rules() {
        let About {
            name,
            side,
            meaning,
            ..
        } = about;
        let severity = severity(about.severity);
        let _ = writeln!(
            page,
            "| [`{name}`](#{name}) | {side} | {severity} | {meaning} |"
        );
    }
    for about in rules() {
        section(about, &mut page);
    }
    page
}

fn section(about: &About, page: &mut String) {
    let _ = writeln!(page, "\n### {}\n\n{}\n", about.name, about.meaning);
    let _ = write!(
        page,
        "Side: {}. Severity: {}",
        about.side,
        severity(about.severity)
    );
    match about.grading {
        Some(grading) => _ = writeln!(page, "; {grading}."),
        None => page.push_str(".\n"),
    }
    list("Evidence", about.evidence, page);
    list("What looks like it and is none", about.exceptions, page);
    let clauses: Vec<String> = by_revision(about)
        .map(|(revisions, clause)| format!("{}: {clause}.", revisions.join(", ")))
        .collect();
    if !clauses.is_empty() {
        list("What the protocol says", &clauses, page);
    }
}

fn list(title: &str, items: &[impl AsRef<str>], page: &mut String) {
    let _ = writeln!(page, "\n{title}:\n");
    for item in items {
        let _ = writeln!(page, "- {}", item.as_ref());
    }
}

/// The clauses, each with the revisions that have it, oldest first.
pub(crate) fn by_revision(
    about: &About,
) -> impl Iterator<Item = (Vec<&'static str>, &'static str)> {
    let mut found: Vec<(Vec<&str>, &str)> = Vec::new();
    for (revision, clause) in Revision::ALL.into_iter().zip(about.clauses) {
        match found.iter_mut().find(|(_, known)| *known == clause) {
            Some((revisions, _)) => revisions.push(revision.as_str()),
            None => found.push((vec![revision.as_str()], clause)),
        }
    }
    found.into_iter().filter(|(_, clause)| !clause.is_empty())
}

const fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The rules of the audit log's contract.
    const CONTRACT: [&str; 23] = [
        "abandoned-call",
        "late-cancel",
        "torn-down-pending",
        "restart-pending",
        "stale-cancel",
        "cancel-unknown-id",
        "cancel-initialize",
        "cancel-task-request",
        "malformed-cancel",
        "duplicate-id",
        "reused-id",
        "abandoned-task",
        "unanswered-server-request",
        "cancel-ignored",
        "unknown-response-id",
        "response-id-type",
        "progress-after-end",
        "orphan-server",
        "server-died",
        "stdout-noise",
        "bad-framing",
        "batch-not-allowed",
        "evidence-gap",
    ];

    #[test]
    fn the_rules_are_those_of_the_contract() {
        let names: Vec<_> = rules().map(|about| about.name).collect();
        assert_eq!(names, CONTRACT);
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    }

    #[test]
    fn every_rule_says_all_that_a_reader_needs() {
        for about in rules() {
            assert!(about.meaning.ends_with('.'), "{}", about.name);
            assert!(!about.evidence.is_empty(), "{}", about.name);
            assert!(!about.exceptions.is_empty(), "{}", about.name);
            let cited = about.clauses.iter().any(|clause| !clause.is_empty());
            assert_eq!(cited, about.name != "evidence-gap", "{}", about.name);
        }
    }

    #[test]
    fn the_docs_say_what_the_rules_say() {
        let docs = include_str!("../../../docs/verdicts.md");
        assert!(
            docs == page(),
            "write it anew: cargo run -p observer -- rules --markdown > docs/verdicts.md"
        );
    }
}
