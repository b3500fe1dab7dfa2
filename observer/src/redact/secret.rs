//! Texts that look like secrets: tokens of known form, private keys, what follows `Bearer`.
//!
//! Known by their form alone, so that what is hidden by mistake is little: a prefix that one
//! issuer uses, and enough of the characters that come after it.

use std::ops::Range;

use super::Redactor;
use super::name;
use super::places::Places;

/// How a token of some issuer begins, and how many characters it has at least after that.
pub(super) const TOKENS: [(&str, usize); 40] = [
    ("AGE-SECRET-KEY-1", 50),
    ("AIza", 35),
    ("AKIA", 16),
    ("ASIA", 16),
    ("SG.", 40),
    ("dckr_pat_", 20),
    ("dop_v1_", 40),
    ("eyJ", 40),
    ("ghp_", 36),
    ("gho_", 36),
    ("ghu_", 36),
    ("ghs_", 36),
    ("ghr_", 36),
    ("github_pat_", 40),
    ("gldt-", 20),
    ("glpat-", 20),
    ("glsa_", 32),
    ("gsk_", 32),
    ("hf_", 30),
    ("hvs.", 24),
    ("lin_api_", 32),
    ("npm_", 36),
    ("pplx-", 40),
    ("pypi-", 40),
    ("r8_", 32),
    ("rk_live_", 16),
    ("shpat_", 32),
    ("sk-", 20),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("tvly-", 20),
    ("whsec_", 24),
    ("xai-", 40),
    ("xapp-", 20),
    ("xoxa-", 20),
    ("xoxb-", 20),
    ("xoxe-", 20),
    ("xoxp-", 20),
    ("xoxs-", 20),
    ("ya29.", 20),
];

/// What comes after these is a token, in any case of letters, of at least so many characters.
pub(super) const SCHEMES: [(&str, usize); 3] = [
    ("bearer ", 16),
    ("authorization: basic ", 8),
    ("authorization: token ", 16),
];

pub(super) const BEGIN: &str = "-----BEGIN ";
const PRIVATE: &str = "PRIVATE KEY";

/// A shorter value of a setting is no secret worth the name.
const SETTING: usize = 6;

impl Redactor {
    /// The text with marks in the place of what looks like a secret; `None` where nothing does.
    pub(super) fn clean(&self, text: &str) -> Option<String> {
        if self.plan.show_secrets {
            return None;
        }
        let (mut out, mut done) = (String::new(), 0);
        let mut search = Search::new(text);
        while let Some(secret) = search.next(done) {
            out.push_str(&text[done..secret.start]);
            out.push_str(&self.mark_text(&text[secret.clone()]));
            done = secret.end;
        }
        if done == 0 {
            return None;
        }
        out.push_str(&text[done..]);
        Some(out)
    }
}

/// A way through a text, from secret to secret.
struct Search<'a> {
    text: &'a str,
    places: Places<'a>,
    /// The last run of characters that tokens are made of, without and with dots.
    runs: [Run; 2],
}

/// Characters that tokens are made of, all that stand together. Kept, since many tokens may seem
/// to begin in one: each would look through all of it.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    start: usize,
    end: usize,
    /// Its last digit and its last dot but one.
    digit: Option<usize>,
    dot: Option<usize>,
}

impl<'a> Search<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            places: Places::new(text),
            runs: [Run::default(); 2],
        }
    }

    /// The first secret from `from` on.
    fn next(&mut self, from: usize) -> Option<Range<usize>> {
        let mut at = from;
        while let Some(place) = self.places.next(at) {
            let secret = self.secret_at(place);
            // What begins here may have its secret further on.
            let secret = secret.filter(|secret| secret.start >= from && !secret.is_empty());
            if secret.is_some() {
                return secret;
            }
            at = place + 1;
        }
        None
    }

    fn secret_at(&mut self, at: usize) -> Option<Range<usize>> {
        let text = self.text;
        let bytes = text.as_bytes();
        match bytes[at] {
            b':' => return password(text, at).or_else(|| member(text, at)),
            b'=' => return setting(text, at),
            b'-' => return private_key(text, at),
            _ => {}
        }
        let inside = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
        if inside {
            return None;
        }
        scheme(bytes, at).or_else(|| self.token(at))
    }

    /// A token that begins at `at`.
    fn token(&mut self, at: usize) -> Option<Range<usize>> {
        let rest = &self.text.as_bytes()[at..];
        let (prefix, least) = TOKENS
            .iter()
            .find(|(prefix, _)| rest.starts_with(prefix.as_bytes()))?;
        let dots = matches!(*prefix, "eyJ" | "SG." | "ya29." | "hvs.");
        let start = at + prefix.len();
        let run = self.run(start, dots);
        let is_long = run.end - start >= *least;
        // Words with hyphens between them are none.
        let is_mixed = run.digit.is_some_and(|digit| digit >= start);
        let is_jwt = *prefix != "eyJ" || run.dot.is_some_and(|dot| dot >= start);
        (is_long && is_mixed && is_jwt).then_some(at..run.end)
    }

    /// The run that goes on, or else begins, at `at`.
    fn run(&mut self, at: usize, dots: bool) -> Run {
        let last = &mut self.runs[usize::from(dots)];
        if !(last.start..last.end).contains(&at) {
            *last = Run::at(self.text.as_bytes(), at, dots);
        }
        *last
    }
}

impl Run {
    fn at(text: &[u8], start: usize, dots: bool) -> Self {
        let length = run(&text[start..], |byte| is_word(byte) || dots && byte == b'.');
        let end = start + length;
        let backwards = (start..end).rev();
        Self {
            start,
            end,
            digit: backwards.clone().find(|at| text[*at].is_ascii_digit()),
            dot: backwards.filter(|at| text[*at] == b'.').nth(1),
        }
    }
}

/// What follows a scheme that begins at `at`.
fn scheme(text: &[u8], at: usize) -> Option<Range<usize>> {
    SCHEMES.iter().find_map(|(scheme, least)| {
        let start = at + scheme.len();
        let found = text.get(at..start)?;
        if !found.eq_ignore_ascii_case(scheme.as_bytes()) {
            return None;
        }
        let length = run(&text[start..], |byte| {
            is_word(byte) || b"+/=.~".contains(&byte)
        });
        (length >= *least).then_some(start..start + length)
    })
}

/// From the first line of a private key in PEM to its last, or as far as the text goes.
fn private_key(text: &str, at: usize) -> Option<Range<usize>> {
    let rest = text[at..].strip_prefix(BEGIN)?;
    let title = rest.get(..rest.find("-----")?)?;
    if title.len() > 64 || !title.contains(PRIVATE) {
        return None;
    }
    let end = format!("-----END {title}-----");
    let length = text[at..].find(&end).map(|found| found + end.len());
    Some(at..length.map_or(text.len(), |length| at + length))
}

/// The password of `scheme://user:password@host`; `at` is the first colon.
fn password(text: &str, at: usize) -> Option<Range<usize>> {
    let rest = text[at..].strip_prefix("://")?;
    let authority = &rest[..rest
        .find(['/', '?', '#', ' ', '"', '\n'])
        .unwrap_or(rest.len())];
    let user = &authority[..authority.rfind('@')?];
    let colon = user.find(':')?;
    let start = at + "://".len() + colon + 1;
    Some(start..at + "://".len() + user.len())
}

/// The value of `TOKEN=value` in capitals, or of `?token=value` in an address; `at` is the sign.
fn setting(text: &str, at: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let length = bytes[..at]
        .iter()
        .rev()
        .take_while(|byte| is_word(**byte))
        .count();
    let start = at - length;
    let name = &text[start..at];
    let in_address = start > 0 && matches!(bytes[start - 1], b'?' | b'&');
    let capitals = !name.bytes().any(|byte| byte.is_ascii_lowercase());
    if !(in_address || capitals) || !name::is_secret(name) {
        return None;
    }
    value(bytes, at + 1, b"&;,\"'<>")
}

/// The value of `"password": "value"`, as in JSON that stands in a text, or of `password: value` at
/// the beginning of a line, as in YAML; `at` is the colon.
fn member(text: &str, at: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let quote = at.checked_sub(1).map(|before| bytes[before]);
    let quote = quote.filter(|byte| matches!(byte, b'"' | b'\''));
    let end = at - usize::from(quote.is_some());
    let name = bytes[..end].iter().rev().take_while(|byte| is_word(**byte));
    let start = end - name.count();
    let before = &bytes[..start];
    let begins = match quote {
        Some(quote) => before.ends_with(&[quote]),
        None => {
            let mut line = before.iter().rev().take_while(|byte| **byte != b'\n');
            // Of a header, what follows the scheme is the secret: see `SCHEMES`.
            let header = text[start..end].to_ascii_lowercase();
            !header.ends_with("authorization") && line.all(|byte| b" \t-".contains(byte))
        }
    };
    if !begins || !name::is_secret(&text[start..end]) {
        return None;
    }
    let from = at + 1 + run(&bytes[at + 1..], |byte| b" \t".contains(&byte));
    value(bytes, from, b",\"'<>]}")
}

/// What stands in quotes at `from`, or else as far as a blank or one of `stops`.
fn value(bytes: &[u8], from: usize, stops: &[u8]) -> Option<Range<usize>> {
    let found = match bytes.get(from)? {
        quote @ (b'"' | b'\'') => {
            let mut escaped = false;
            let length = run(&bytes[from + 1..], |byte| {
                let goes_on = escaped || byte != *quote;
                escaped = !escaped && byte == b'\\';
                goes_on
            });
            from + 1..from + 1 + length
        }
        _ => {
            let ends = |byte: u8| byte.is_ascii_whitespace() || stops.contains(&byte);
            from..from + run(&bytes[from..], |byte| !ends(byte))
        }
    };
    (found.len() >= SETTING).then_some(found)
}

fn run(bytes: &[u8], mut wanted: impl FnMut(u8) -> bool) -> usize {
    bytes.iter().take_while(|byte| wanted(**byte)).count()
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Looks at every place.
    fn all_places(text: &str) -> Vec<Range<usize>> {
        let (mut found, mut done) = (Vec::new(), 0);
        for at in 0..text.len() {
            let secret = Search::new(text).secret_at(at);
            if at >= done
                && let Some(secret) = secret.filter(|it| it.start >= done && !it.is_empty())
            {
                done = secret.end;
                found.push(secret);
            }
        }
        found
    }

    fn few_places(text: &str) -> Vec<Range<usize>> {
        let (mut search, mut found, mut done) = (Search::new(text), Vec::new(), 0);
        while let Some(secret) = search.next(done) {
            done = secret.end;
            found.push(secret);
        }
        found
    }

    fn pieces() -> impl Strategy<Value = String> {
        let tokens = TOKENS.map(|(prefix, least)| format!("{prefix}{}", "a1.b-".repeat(least / 4)));
        let others = [
            " ",
            "-",
            "_",
            ".",
            "x",
            "7",
            "ü",
            "\n",
            "\"",
            "=",
            ":",
            "eyJ",
            "sk-",
            "BeArEr ",
            "authorization: Basic ",
            "Authorization: token ",
            "abcdefgh",
            "12345678",
            "password",
            "TOKEN",
            "://me:",
            "@",
            "-----BEGIN ",
            "PRIVATE KEY-----",
            "-----END ",
        ];
        let pieces: Vec<String> = tokens
            .into_iter()
            .chain(others.map(ToOwned::to_owned))
            .collect();
        prop::collection::vec(prop::sample::select(pieces), 0..24).prop_map(|it| it.concat())
    }

    proptest! {
        #[test]
        fn no_place_is_passed_over(text in pieces()) {
            prop_assert_eq!(few_places(&text), all_places(&text));
        }
    }

    #[test]
    fn each_token_is_found_by_how_it_begins() {
        for (prefix, least) in TOKENS {
            let text = format!("({prefix}{}.a.b)", "a1".repeat(least));
            assert_eq!(few_places(&text).len(), 1, "{text}");
        }
    }
}
