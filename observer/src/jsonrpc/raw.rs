//! Single fields of a JSON text, read where they lie: for the layers above, so that nobody builds
//! a tree of a megabyte to look at one name.
//!
//! The text is valid JSON already (a part of a [`Frame`](super::Frame)); in any other text
//! nothing is found. Where an object names a member twice the last one counts, as in
//! `JSON.parse`, Python's `json` and `serde_json`.

use std::borrow::Cow;
use std::ops::Range;

use super::scan::Scanner;

/// The raw text of a member of an object: `None` where `raw` is no object or has no such member.
pub fn member<'a>(raw: &'a str, name: &str) -> Option<&'a str> {
    members(raw)
        .filter(|(key, _)| key == name)
        .last()
        .map(|(_, value)| value)
}

/// The raw text at the end of a path of member names.
pub fn path<'a>(raw: &'a str, names: &[&str]) -> Option<&'a str> {
    names.iter().try_fold(raw, |raw, name| member(raw, name))
}

/// The members of an object, in order; none where `raw` is no object.
pub fn members(raw: &str) -> Members<'_> {
    let mut scanner = Scanner::new(raw);
    let open = scanner.eat(b'{');
    Members {
        raw,
        scanner: open.then_some(scanner),
        first: true,
    }
}

/// The elements of an array, in order; none where `raw` is no array.
pub fn elements(raw: &str) -> Elements<'_> {
    let mut scanner = Scanner::new(raw);
    let open = scanner.eat(b'[');
    Elements {
        raw,
        scanner: open.then_some(scanner),
        first: true,
    }
}

/// A JSON string, decoded; `None` where `raw` is something else. Lone surrogates, which a Rust
/// string cannot hold, become U+FFFD.
pub fn as_str(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.trim_ascii().strip_prefix('"')?.strip_suffix('"')?;
    Some(if memchr::memchr(b'\\', inner.as_bytes()).is_some() {
        Cow::Owned(decode(inner))
    } else {
        Cow::Borrowed(inner)
    })
}

/// A JSON number that is a whole one in the range of `i64`.
pub fn as_i64(raw: &str) -> Option<i64> {
    raw.trim_ascii().parse().ok()
}

fn decode(inner: &str) -> String {
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        let (plain, escaped) = (&rest[..at], &rest[at + 1..]);
        text.push_str(plain);
        let mut chars = escaped.chars();
        let letter = chars.next();
        rest = chars.as_str();
        match letter {
            Some('n') => text.push('\n'),
            Some('r') => text.push('\r'),
            Some('t') => text.push('\t'),
            Some('b') => text.push('\u{8}'),
            Some('f') => text.push('\u{c}'),
            Some('u') => {
                let (decoded, after) = unicode(rest);
                text.push(decoded);
                rest = after;
            }
            Some(other) => text.push(other),
            None => {}
        }
    }
    text.push_str(rest);
    text
}

/// The character of the hex digits after `\u`, and what follows it; surrogates are paired.
fn unicode(text: &str) -> (char, &str) {
    let Some((high, rest)) = hex(text) else {
        return (char::REPLACEMENT_CHARACTER, text);
    };
    if let Some(char) = char::from_u32(high) {
        return (char, rest);
    }
    let low = rest.strip_prefix("\\u").and_then(hex);
    if let Some((low @ 0xDC00..=0xDFFF, after)) = low
        && high < 0xDC00
        && let Some(char) = char::from_u32(0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00))
    {
        return (char, after);
    }
    (char::REPLACEMENT_CHARACTER, rest)
}

fn hex(text: &str) -> Option<(u32, &str)> {
    let (digits, rest) = text.split_at_checked(4)?;
    Some((u32::from_str_radix(digits, 16).ok()?, rest))
}

/// See [`members`].
#[derive(Clone, Debug)]
pub struct Members<'a> {
    raw: &'a str,
    scanner: Option<Scanner<'a>>,
    first: bool,
}

impl<'a> Iterator for Members<'a> {
    /// The name, decoded, and the raw text of the value.
    type Item = (Cow<'a, str>, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.scanner.as_mut()?.member(&mut self.first);
        let Ok(Some((key, value))) = next else {
            self.scanner = None;
            return None;
        };
        Some((as_str(part(self.raw, key)?)?, part(self.raw, value)?))
    }
}

/// See [`elements`].
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    raw: &'a str,
    scanner: Option<Scanner<'a>>,
    first: bool,
}

impl<'a> Iterator for Elements<'a> {
    /// The raw text of the element.
    type Item = &'a str;

    fn next(&mut self) -> Option<Self::Item> {
        let scanner = self.scanner.as_mut()?;
        let value = match scanner.element(&mut self.first) {
            Ok(true) => scanner.value().ok(),
            _ => None,
        };
        if value.is_none() {
            self.scanner = None;
        }
        part(self.raw, value?)
    }
}

fn part(raw: &str, range: Range<usize>) -> Option<&str> {
    raw.get(range)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn members_are_read_where_they_lie() {
        let raw = r#" { "a" : [1, 2] , "_meta" : {"t\u006fken": "x", "n": -7}, "a" : null } "#;
        assert_eq!(member(raw, "a"), Some("null"), "the last one counts");
        assert_eq!(path(raw, &["_meta", "token"]), Some("\"x\""));
        assert_eq!(path(raw, &["_meta", "n"]).and_then(as_i64), Some(-7));
        assert_eq!(path(raw, &["_meta", "none", "x"]), None);
        assert_eq!(member("[1]", "a"), None);
        assert_eq!(members(raw).count(), 3);
        assert_eq!(
            elements(" [1, \"a\" ,[2],{}] ").collect::<Vec<_>>(),
            ["1", "\"a\"", "[2]", "{}"]
        );
        assert_eq!(elements("{}").count(), 0);
        assert_eq!(members("{} ").count(), 0);
    }

    #[test]
    fn strings_are_decoded_and_lone_surrogates_replaced() {
        assert_eq!(
            as_str(r#""a\"\\\/\b\f\n\r\t\u00e4""#).as_deref(),
            Some("a\"\\/\u{8}\u{c}\n\r\tä")
        );
        assert_eq!(as_str(r#""\ud83d\ude00!""#).as_deref(), Some("😀!"));
        assert_eq!(as_str(r#""\ud83d!""#).as_deref(), Some("\u{fffd}!"));
        assert_eq!(
            as_str(r#""\ud83d\ud83d\ude00""#).as_deref(),
            Some("\u{fffd}😀")
        );
        assert_eq!(as_str(r#""\ude00\u0041""#).as_deref(), Some("\u{fffd}A"));
        assert!(matches!(as_str("\"plain\""), Some(Cow::Borrowed("plain"))));
        assert_eq!(as_str("1"), None);
        assert_eq!(as_str("\""), None);
    }

    proptest! {
        #[test]
        fn decoding_undoes_encoding(text in any::<String>()) {
            let raw = serde_json::to_string(&text).expect("strings always encode");
            let decoded = as_str(&raw);
            prop_assert_eq!(decoded.as_deref(), Some(text.as_str()));
        }

        #[test]
        fn any_text_is_harmless(raw in "[ \\PC\"\\\\u{}\\[\\],:0-9]{0,40}") {
            as_str(&raw);
            members(&raw).count();
            elements(&raw).count();
        }
    }
}
