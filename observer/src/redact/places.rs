//! Where in a text a secret may begin.
//!
//! Owns the quick look that most of a text gets: must pass over no place at which `secret` would
//! find one, and as few others as can be had cheaply. Time and memory are linear in the text.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, Input, MatchKind};

use super::secret::{BEGIN, SCHEMES, TOKENS};

/// So many letters of a scheme are looked for, in each mixture of small letters and capitals.
const LETTERS: usize = 3;

/// A shorter text has no token, nor one behind a scheme; a private key is longer by its first line.
const SHORTEST: usize = {
    let mut shortest = usize::MAX;
    let mut at = 0;
    while at < TOKENS.len() + SCHEMES.len() {
        let (prefix, least) = if at < TOKENS.len() {
            TOKENS[at]
        } else {
            SCHEMES[at - TOKENS.len()]
        };
        if prefix.len() + least < shortest {
            shortest = prefix.len() + least;
        }
        at += 1;
    }
    shortest
};

#[expect(clippy::expect_used, reason = "the patterns are constants")]
static STARTS: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let tokens = TOKENS.iter().map(|(prefix, _)| (*prefix).to_owned());
    let schemes: BTreeSet<&str> = SCHEMES
        .iter()
        .map(|(scheme, _)| &scheme[..LETTERS])
        .collect();
    let schemes = schemes.into_iter().flat_map(cases);
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
