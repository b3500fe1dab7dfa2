//! Patterns for names: `*` stands for any text, `?` for one character.

use serde::{Deserialize, Deserializer};

/// A pattern. Matches whole names only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Glob(Vec<char>);

impl Glob {
    /// The pattern that a text spells; every text is one.
    pub(crate) fn new(pattern: &str) -> Self {
        Self(pattern.chars().collect())
    }

    /// Whether it matches all of `name`. Takes a time of pattern times name at most.
    pub(crate) fn matches(&self, name: &str) -> bool {
        let (pattern, name) = (&self.0, name.chars().collect::<Vec<_>>());
        let (mut at, mut in_name) = (0, 0);
        // Where to go on when the last star has to take one character more.
        let mut star = None;
        while in_name < name.len() {
            match pattern.get(at) {
                Some('*') => {
                    star = Some((at + 1, in_name));
                    at += 1;
                }
                Some(&char) if char == '?' || char == name[in_name] => {
                    at += 1;
                    in_name += 1;
                }
                _ => {
                    let Some((after, taken)) = star else {
                        return false;
                    };
                    star = Some((after, taken + 1));
                    (at, in_name) = (after, taken + 1);
                }
            }
        }
        pattern[at..].iter().all(|&char| char == '*')
    }
}

impl<'de> Deserialize<'de> for Glob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|pattern| Self::new(&pattern))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn stars_and_question_marks_stand_for_text() {
        for (pattern, name, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("codex*", "codex-mcp-client", true),
            ("codex", "codex-mcp-client", false),
            ("*slow*", "a slow one", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("a?", "aß", true),
            ("*.py", "node x.py y", false),
            ("a*b*c", "a1b2b3c", true),
        ] {
            assert_eq!(
                Glob::new(pattern).matches(name),
                expected,
                "{pattern} {name}"
            );
        }
    }

    #[test]
    fn a_pattern_of_many_stars_takes_no_time() {
        let name = "a".repeat(2_000);
        assert!(!Glob::new(&("*a".repeat(200) + "b")).matches(&name));
    }

    proptest! {
        #[test]
        fn a_name_matches_itself_and_what_a_star_leaves_out(name in "[a-c]{0,12}", cut in 0_usize..12) {
            let cut = cut.min(name.len());
            prop_assert!(Glob::new(&name).matches(&name));
            let pattern = format!("{}*{}", &name[..cut], &name[cut..]);
            prop_assert!(Glob::new(&pattern).matches(&name));
        }
    }
}
