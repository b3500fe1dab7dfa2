//! A policy as TOML: what is in no policy is a mistake, and is named with what was meant.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, de};
use thiserror::Error;

use super::{Policy, Subject, nearest};
use crate::verdict;

/// Why a text is no policy.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("line {line}: {reason}")]
pub struct PolicyError {
    /// Which line: 1, 2, ...
    pub line: usize,
    /// What is wrong with it, and what may have been meant.
    pub reason: String,
}

impl Policy {
    /// The policy that a TOML text spells.
    ///
    /// # Errors
    /// Where it is no TOML, or has a key or a word that no policy has.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start.min(text.len()));
            PolicyError {
                line: text.as_bytes()[..at]
                    .iter()
                    .filter(|byte| **byte == b'\n')
                    .count()
                    + 1,
                reason: with_suggestion(error.message()),
            }
        })
    }
}

/// Serde says "unknown field `x`, expected one of `a`, `b`": the nearest is what was meant.
fn with_suggestion(message: &str) -> String {
    let message = message.trim().replace('\n', "; ");
    let mut words = message.split('`').skip(1).step_by(2);
    let (Some(word), true) = (words.next(), message.starts_with("unknown ")) else {
        return message;
    };
    let unknown = message.split(", ").next().unwrap_or(&message);
    match nearest(word, words) {
        Some(meant) => format!("{unknown}; did you mean `{meant}`?"),
        None => message,
    }
}

/// The name of a rule that there is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RuleName(pub(super) &'static str);

impl<'de> Deserialize<'de> for RuleName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        let found = verdict::rules().find(|rule| rule.name == word);
        found
            .map(|rule| Self(rule.name))
            .ok_or_else(|| unknown("rule", &word, verdict::rules().map(|rule| rule.name)))
    }
}

/// What an entry of `allow` is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Subjects(pub(super) Subject);

impl<'de> Deserialize<'de> for Subjects {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        Subject::all()
            .find(|subject| subject.name() == word)
            .map(Self)
            .ok_or_else(|| unknown("rule", &word, Subject::all().map(Subject::name)))
    }
}

fn unknown<E: de::Error>(what: &str, word: &str, known: impl Iterator<Item = &'static str>) -> E {
    let known: Vec<_> = known.map(|name| format!("`{name}`")).collect();
    E::custom(format_args!(
        "unknown {what} `{}`, expected one of {}",
        word.escape_debug(),
        known.join(", ")
    ))
}

/// A number of seconds, or `30s`.
pub(super) fn duration<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    struct Visitor;
    impl de::Visitor<'_> for Visitor {
        type Value = Duration;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a duration such as \"30s\", \"200ms\", \"2min\", \"1h\", or seconds")
        }

        fn visit_f64<E: de::Error>(self, seconds: f64) -> Result<Duration, E> {
            Duration::try_from_secs_f64(seconds)
                .map_err(|_| E::invalid_value(de::Unexpected::Float(seconds), &self))
        }

        fn visit_i64<E: de::Error>(self, seconds: i64) -> Result<Duration, E> {
            u64::try_from(seconds)
                .map(Duration::from_secs)
                .map_err(|_| E::invalid_value(de::Unexpected::Signed(seconds), &self))
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Duration, E> {
            crate::wording::parse_duration(text)
                .map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
        }
    }
    deserializer.deserialize_any(Visitor).map(Some)
}

#[cfg(test)]
mod tests {
    use super::super::TEMPLATE;
    use super::*;

    /// The template with its examples no longer commented out.
    fn template_in_full() -> String {
        let example = |line: &str| {
            let rest = line.strip_prefix("# ").unwrap_or(line);
            let is_toml = rest.starts_with('[') || rest.split(' ').nth(1) == Some("=");
            if is_toml {
                rest.to_owned()
            } else {
                String::new()
            }
        };
        TEMPLATE.lines().map(example).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_template_spells_the_default() {
        assert_eq!(
            Policy::parse(TEMPLATE).expect("a policy"),
            Policy::default()
        );
        assert_eq!(Policy::parse("").expect("a policy"), Policy::default());
    }

    #[test]
    fn the_templates_examples_are_a_policy() {
        let text = template_in_full();
        let policy = Policy::parse(&text).expect("a policy");
        assert_eq!((policy.rules.len(), policy.allow.len()), (1, 1), "{text}");
        assert_eq!(policy.limits.pending, Some(Duration::from_secs(600)));
        assert_eq!(policy.limits.wasted, Some(Duration::from_secs(30)));
        assert_eq!(policy.limits.servers.map(|servers| servers.len()), Some(3));
    }

    #[test]
    fn mistakes_are_named_with_what_was_meant() {
        for (text, expected) in [
            (
                "[limits]\npendign = 3",
                "line 2: unknown field `pendign`; did you mean `pending`?",
            ),
            (
                "[rules.abandonedcall]\nlevel = \"deny\"",
                "line 1: unknown rule `abandonedcall`; did you mean `abandoned-call`?",
            ),
            (
                "[severity]\nerror = \"dney\"",
                "line 2: unknown variant `dney`; did you mean `deny`?",
            ),
            (
                "\n[[allow]]\nrule = \"limits.pendin\"",
                "line 3: unknown rule `limits.pendin`; did you mean `limits.pending`?",
            ),
        ] {
            let error = Policy::parse(text).expect_err("a mistake");
            assert_eq!(error.to_string(), expected);
        }
        for (text, part) in [
            ("[limits]\nwasted = \"soon\"", "expected a duration"),
            ("[limits]\nwasted = -1", "expected a duration"),
            ("x = 1", "unknown field `x`, expected one of"),
            ("[rules.abandoned-call]\nconfidence = \"probable\"", "level"),
            ("[severity\n", "line 1"),
        ] {
            let error = Policy::parse(text).expect_err("a mistake").to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
