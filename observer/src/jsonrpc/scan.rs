//! A strict JSON scanner (RFC 8259): where values begin and end, and whether they are valid.
//!
//! Iterative, so that no depth of nesting can exhaust the stack, and without allocation below 64
//! levels. The text is UTF-8 already; what is left to check is the grammar. Lone surrogates in
//! escapes are grammatical.

use std::ops::Range;

/// Where something lies in the text.
pub(super) type Span = Range<usize>;

/// The text is no JSON (from some position on).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Invalid;

/// A position in a JSON text.
#[derive(Clone, Debug)]
pub(super) struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text: text.as_bytes(),
            at: 0,
        }
    }

    /// How far the scanner has come.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Skips whitespace and shows the byte after it.
    pub(super) fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.text.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    /// Skips whitespace and takes `byte` if it comes next.
    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// The next member of the object that the scanner is in: its key with the quotes, and its
    /// value. `None` at the object's end. `first` tells whether a comma must come before it.
    pub(super) fn member(&mut self, first: &mut bool) -> Result<Option<(Span, Span)>, Invalid> {
        match self.name(first)? {
            Some(key) => Ok(Some((key, self.value()?))),
            None => Ok(None),
        }
    }

    /// As [`Self::member`], but the value still comes next.
    pub(super) fn name(&mut self, first: &mut bool) -> Result<Option<Span>, Invalid> {
        if !self.more(first, b'}')? {
            return Ok(None);
        }
        self.key().map(Some)
    }

    /// Whether the array that the scanner is in has another element, which then comes next.
    pub(super) fn element(&mut self, first: &mut bool) -> Result<bool, Invalid> {
        self.more(first, b']')
    }

    fn more(&mut self, first: &mut bool, close: u8) -> Result<bool, Invalid> {
        if std::mem::take(first) {
            return Ok(!self.eat(close));
        }
        if self.eat(b',') {
            return Ok(true);
        }
        if self.eat(close) {
            Ok(false)
        } else {
            Err(Invalid)
        }
    }

    /// One whole value, whatever it contains.
    pub(super) fn value(&mut self) -> Result<Span, Invalid> {
        self.peek();
        let start = self.at;
        let mut nest = Nest::default();
        loop {
            match self.next()? {
                b'{' if !self.eat(b'}') => {
                    nest.push(true);
                    self.key()?;
                    self.peek();
                    continue;
                }
                b'[' if !self.eat(b']') => {
                    nest.push(false);
                    self.peek();
                    continue;
                }
                b'{' | b'[' => {}
                b'"' => self.string()?,
                b'-' => {
                    let digit = self.next()?;
                    self.number(digit)?;
                }
                digit @ b'0'..=b'9' => self.number(digit)?,
                b't' => self.literal(b"rue")?,
                b'f' => self.literal(b"alse")?,
                b'n' => self.literal(b"ull")?,
                _ => return Err(Invalid),
            }
            if self.close(&mut nest)? {
                return Ok(start..self.at);
            }
        }
    }

    /// Behind a value: closes what ends here. Whether that was the outermost value.
    fn close(&mut self, nest: &mut Nest) -> Result<bool, Invalid> {
        while let Some(in_object) = nest.top() {
            self.peek();
            match (self.next()?, in_object) {
                (b',', true) => {
                    self.key()?;
                    self.peek();
                    return Ok(false);
                }
                (b',', false) => {
                    self.peek();
                    return Ok(false);
                }
                (b'}', true) | (b']', false) => nest.pop(),
                _ => return Err(Invalid),
            }
        }
        Ok(true)
    }

    fn next(&mut self) -> Result<u8, Invalid> {
        let byte = *self.text.get(self.at).ok_or(Invalid)?;
        self.at += 1;
        Ok(byte)
    }

    /// A key and its colon.
    fn key(&mut self) -> Result<Span, Invalid> {
        self.peek();
        let start = self.at;
        if self.next()? != b'"' {
            return Err(Invalid);
        }
        self.string()?;
        let key = start..self.at;
        if self.eat(b':') {
            Ok(key)
        } else {
            Err(Invalid)
        }
    }

    /// The rest of a string, after its opening quote.
    fn string(&mut self) -> Result<(), Invalid> {
        loop {
            self.at += plain(self.text.get(self.at..).ok_or(Invalid)?);
            match self.next()? {
                b'"' => return Ok(()),
                b'\\' => self.escape()?,
                _ => return Err(Invalid),
            }
        }
    }

    fn escape(&mut self) -> Result<(), Invalid> {
        match self.next()? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Ok(()),
            b'u' => {
                for _ in 0..4 {
                    if !self.next()?.is_ascii_hexdigit() {
                        return Err(Invalid);
                    }
                }
                Ok(())
            }
            _ => Err(Invalid),
        }
    }

    /// The rest of a number, after its first digit.
    fn number(&mut self, first: u8) -> Result<(), Invalid> {
        match first {
            b'0' => {}
            b'1'..=b'9' => self.digits(),
            _ => return Err(Invalid),
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.some_digits()?;
        }
        if matches!(self.text.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.text.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.some_digits()?;
        }
        Ok(())
    }

    fn some_digits(&mut self) -> Result<(), Invalid> {
        let start = self.at;
        self.digits();
        if self.at > start {
            Ok(())
        } else {
            Err(Invalid)
        }
    }

    fn digits(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
    }

    fn literal(&mut self, rest: &[u8]) -> Result<(), Invalid> {
        if self
            .text
            .get(self.at..)
            .is_some_and(|text| text.starts_with(rest))
        {
            self.at += rest.len();
            Ok(())
        } else {
            Err(Invalid)
        }
    }
}

/// How many bytes of a string come before the next quote, backslash or control character.
fn plain(text: &[u8]) -> usize {
    let end = memchr::memchr2(b'"', b'\\', text).unwrap_or(text.len());
    let text = &text[..end];
    let is_control = |byte: &u8| *byte < 0x20;
    // Without an early exit on purpose: so the compiler turns it into vector compares.
    if text.iter().fold(false, |any, byte| any | is_control(byte)) {
        text.iter().position(is_control).unwrap_or(end)
    } else {
        end
    }
}

/// Which containers are open: one bit each, set for an object. The innermost is the lowest bit
/// of `low`; each 64 levels move to `high`.
#[derive(Default)]
struct Nest {
    low: u64,
    depth: usize,
    high: Vec<u64>,
}

impl Nest {
    fn push(&mut self, object: bool) {
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.high.push(self.low);
        }
        self.low = self.low << 1 | u64::from(object);
        self.depth += 1;
    }

    fn top(&self) -> Option<bool> {
        (self.depth > 0).then_some(self.low & 1 == 1)
    }

    fn pop(&mut self) {
        self.depth -= 1;
        self.low >>= 1;
        if self.depth > 0
            && self.depth.is_multiple_of(64)
            && let Some(low) = self.high.pop()
        {
            self.low = low;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::*;

    fn valid(text: &str) -> bool {
        let mut scanner = Scanner::new(text);
        scanner.value().is_ok() && scanner.peek().is_none()
    }

    #[test]
    fn the_grammar_is_held() {
        for good in [
            "0",
            "-0.5e+10",
            "1E2",
            "[]",
            "{ }",
            r#"{"a":[{},[],{"b":null}]}"#,
            r#""\ud800""#,
        ] {
            assert!(valid(good), "{good}");
        }
        for bad in [
            "",
            "01",
            "-",
            "1.",
            "1e",
            "+1",
            "[1,]",
            "{,}",
            r#"{"a"}"#,
            "{\"a\":1,}",
            "[1 2]",
            "tru",
            "nul",
            "\"a",
            "\"\u{1}\"",
            r#""\x""#,
            r#""\u12g4""#,
            "[}",
            "{]",
            "[",
            "]",
            "1 1",
            "NaN",
        ] {
            assert!(!valid(bad), "{bad}");
        }
    }

    #[test]
    fn depth_costs_no_stack() {
        let depth = 1_000_000;
        let text = "[".repeat(depth) + &"]".repeat(depth);
        assert!(valid(&text));
        let text = r#"{"a":["#.repeat(depth) + &"]}".repeat(depth);
        assert!(valid(&text));
        assert!(!valid(&text.replacen("]}", "}]", 1)));
    }

    proptest! {
        #[test]
        fn serde_json_agrees(text in r#"[\[\]{},:"\\u0-9a-f.eE+\-tru nlas \x00\n]{0,24}"#) {
            prop_assert_eq!(valid(&text), serde_json::from_str::<&RawValue>(&text).is_ok());
        }

        #[test]
        fn serde_json_agrees_on_near_json(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "{", "}", "[", "]", ",", ":", "\"a\"", "\"\\n\"", "1", "-2.5e3", "true", "null", " ",
                    "\"a\":", "{\"b\":1}", "[]", "[1,2]",
                ]),
                0..12,
            )
        ) {
            let text = parts.concat();
            prop_assert_eq!(valid(&text), serde_json::from_str::<&RawValue>(&text).is_ok());
        }

        #[test]
        fn a_string_ends_where_it_should(before in "[a-zäß]{0,80}", after in "[a-z\"]{0,80}") {
            let text = format!("\"{before}\"{after}");
            let mut scanner = Scanner::new(&text);
            prop_assert_eq!(scanner.value(), Ok(0..before.len() + 2));
        }
    }
}
