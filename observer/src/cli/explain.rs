//! `observer explain`: all about one rule.

use super::rules::print;
use super::{Exit, Failure};
use crate::record::Word;
use crate::verdict::{self, About};

/// Explain a rule
///
/// What it means, what it takes as evidence, what looks like it and is none, and what each revision
/// of the protocol says.
#[derive(Debug, clap::Args)]
pub(super) struct Explain {
    /// The rule's name, as in a finding
    #[arg(value_name = "RULE")]
    rule: String,
}

/// How long a line may be.
const WIDTH: usize = 80;

impl Explain {
    pub(super) fn execute(&self) -> Result<Exit, Failure> {
        match verdict::rules().find(|about| about.name == self.rule) {
            Some(about) => print(&explained(about)),
            None => Err(unknown(&self.rule)),
        }
    }
}

fn unknown(rule: &str) -> Failure {
    let failure = Failure::new(
        Exit::Failed,
        format_args!("there is no rule {:?}", rule.escape_debug().to_string()),
    );
    failure.with_remedy(match nearest(rule) {
        Some(name) => format!("did you mean {name}? `observer rules` lists them"),
        None => "`observer rules` lists them".into(),
    })
}

/// A rule whose name has most of the words of another.
fn nearest(rule: &str) -> Option<&'static str> {
    let words = |name: &str| -> usize {
        name.split('-')
            .filter(|word| rule.split(['-', '_', ' ']).any(|other| other == *word))
            .count()
    };
    let best = verdict::rules().min_by_key(|about| std::cmp::Reverse(words(about.name)))?;
    (words(best.name) > 0).then_some(best.name)
}

fn explained(about: &About) -> String {
    let mut text = format!("{}\n\n", about.name);
    wrap(about.meaning, "", "", &mut text);
    let grading = about
        .grading
        .map(|grading| format!("; {grading}"))
        .unwrap_or_default();
    let severity = about.severity.word();
    text.push('\n');
    wrap(
        &format!("Side: {}. Severity: {severity}{grading}.", about.side),
        "",
        "",
        &mut text,
    );
    list("Evidence", about.evidence, &mut text);
    list(
        "What looks like it and is none",
        about.exceptions,
        &mut text,
    );
    let clauses: Vec<String> = verdict::by_revision(about)
        .map(|(revisions, clause)| format!("{}: {clause}.", revisions.join(", ")))
        .collect();
    if !clauses.is_empty() {
        list("What the protocol says", &clauses, &mut text);
    }
    text
}

fn list(title: &str, items: &[impl AsRef<str>], text: &mut String) {
    text.push_str(&format!("\n{title}:\n"));
    for item in items {
        wrap(item.as_ref(), "  - ", "    ", text);
    }
}

/// Appends a text in lines of at most [`WIDTH`], as far as its words let it.
fn wrap(text: &str, first: &str, others: &str, out: &mut String) {
    let mut line = first.to_owned();
    let mut empty = true;
    for word in text.split_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            out.push_str(&line);
            out.push('\n');
            others.clone_into(&mut line);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    out.push_str(&line);
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_explained_in_lines_that_fit() {
        for about in verdict::rules() {
            let text = explained(about);
            assert!(text.starts_with(about.name));
            assert!(
                text.lines().all(|line| line.chars().count() <= WIDTH),
                "{text}"
            );
            assert!(text.contains("What looks like it and is none:"));
        }
    }

    #[test]
    fn a_name_that_is_none_leads_to_one_that_is() {
        assert_eq!(nearest("abandoned"), Some("abandoned-call"));
        assert_eq!(nearest("late_cancel"), Some("late-cancel"));
        assert_eq!(nearest("nonsense"), None);
    }
}
