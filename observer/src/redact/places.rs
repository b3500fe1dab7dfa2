//! Where in a text a secret may begin.
//!
//! Owns the quick look that most of a text gets: must pass over no place at which `secret` would
//! find one, and as few others as can be had cheaply. Time and memory are linear in the text.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, Input, MatchKind};

use super::secret::{BEGIN, TOKENS};

/// The first letters of what stands before a token, in any case of letters: `bearer `,
/// `authorization: `.
const SCHEMES: [&str; 2] = ["bea", "aut"];

/// A shorter text has no token, scheme or key: the shortest is `AKIA` with 16 characters.
const SHORTEST: usize = 20;

#[expect(clippy::expect_used, reason = "the patterns are constants")]
static STARTS: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let tokens = TOKENS.iter().map(|(prefix, _)| (*prefix).to_owned());
    let schemes = SCHEMES.into_iter().flat_map(cases);
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostFirst)
        .build(tokens.chain(schemes).chain([BEGIN.to_owned()]))
        .expect("a few short patterns fit")
});

/// A word in every mixture of small letters and capitals.
fn cases(word: &str) -> Vec<String> {
    word.chars().fold(vec![String::new()], |words, letter| {
        let both =
            |word: &String| [letter, letter.to_ascii_uppercase()].map(|c| format!("{word}{c}"));
        words.iter().flat_map(both).collect()
    })
}

/// The places of a text, one after the other.
#[derive(Debug)]
pub(super) struct Places<'a> {
    text: &'a str,
    /// The next beginning of a token, scheme or key, and the next `:` or `=`; the text's length
    /// where there is none.
    start: usize,
    sign: usize,
}

impl<'a> Places<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let mut places = Self {
            text,
            start: text.len(),
            sign: 0,
        };
        if text.len() >= SHORTEST {
            places.start = places.next_start(0);
        }
        places.sign = places.next_sign(0);
        places
    }

    /// The first place that is not before `from`.
    pub(super) fn next(&mut self, from: usize) -> Option<usize> {
        if self.start < from {
            self.start = self.next_start(from);
        }
        if self.sign < from {
            self.sign = self.next_sign(from);
        }
        let place = self.start.min(self.sign);
        (place < self.text.len()).then_some(place)
    }

    fn next_start(&self, from: usize) -> usize {
        let rest = Input::new(self.text).range(from..);
        STARTS
            .find(rest)
            .map_or(self.text.len(), |found| found.start())
    }

    fn next_sign(&self, from: usize) -> usize {
        let rest = &self.text.as_bytes()[from..];
        memchr::memchr2(b':', b'=', rest).map_or(self.text.len(), |found| from + found)
    }
}
