//! A way through a whole JSON text, for who has to look at all of it: each byte is read once,
//! however deep it lies.
//!
//! The text is valid JSON already (a part of a [`Frame`](super::Frame)); in any other text the way
//! ends early.

use std::borrow::Cow;

use super::raw::as_str;
use super::scan::Scanner;

/// A place before a value, or in an object or an array.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    raw: &'a str,
    scanner: Scanner<'a>,
}

impl<'a> Cursor<'a> {
    /// Before the value that `raw` is.
    pub fn new(raw: &'a str) -> Self {
        Self {
            raw,
            scanner: Scanner::new(raw),
        }
    }

    /// The text from the next value on, and whatever comes after it.
    pub fn rest(&mut self) -> &'a str {
        self.scanner.peek();
        self.raw.get(self.scanner.position()..).unwrap_or_default()
    }

    /// Passes over the next value. Its raw text.
    pub fn skip(&mut self) -> Option<&'a str> {
        self.raw.get(self.scanner.value().ok()?)
    }

    /// Goes into the next value, an object: to its members.
    pub fn enter_object(&mut self) -> Inside {
        self.scanner.eat(b'{');
        Inside { first: true }
    }

    /// Goes into the next value, an array: to its elements.
    pub fn enter_array(&mut self) -> Inside {
        self.scanner.eat(b'[');
        Inside { first: true }
    }

    /// Goes to the value of the next member. Its name, decoded; `None` behind the object's end.
    pub fn member(&mut self, inside: &mut Inside) -> Option<Cow<'a, str>> {
        let name = self.scanner.name(&mut inside.first).ok()??;
        as_str(self.raw.get(name)?)
    }

    /// Goes to the next element. Whether there is one; if not, the array's end lies behind.
    pub fn element(&mut self, inside: &mut Inside) -> bool {
        self.scanner.element(&mut inside.first).unwrap_or_default()
    }
}

/// How far a [`Cursor`] has come in an object or an array.
#[derive(Debug)]
pub struct Inside {
    first: bool,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What is met on the way through a value: names and plain values.
    fn walk(cursor: &mut Cursor<'_>, met: &mut Vec<String>) {
        match cursor.rest().as_bytes().first() {
            Some(b'{') => {
                let mut inside = cursor.enter_object();
                while let Some(name) = cursor.member(&mut inside) {
                    met.push(format!("{name}:"));
                    walk(cursor, met);
                }
            }
            Some(b'[') => {
                let mut inside = cursor.enter_array();
                while cursor.element(&mut inside) {
                    walk(cursor, met);
                }
            }
            _ => met.extend(cursor.skip().map(ToOwned::to_owned)),
        }
    }

    fn met(raw: &str) -> Vec<String> {
        let mut met = Vec::new();
        walk(&mut Cursor::new(raw), &mut met);
        met
    }

    #[test]
    fn all_is_met_in_order() {
        let raw = r#" { "a" : [1, [], {"b":"x\"]"}, true] , "c\u0064" : {} , "e":null } "#;
        let expected = ["a:", "1", "b:", "\"x\\\"]\"", "true", "cd:", "e:", "null"];
        assert_eq!(met(raw), expected);
        assert_eq!(met(" 7 "), ["7"]);
    }

    #[test]
    fn a_value_can_be_passed_over() {
        let mut cursor = Cursor::new(r#"{"a":{"b":[1]},"c":2}"#);
        let mut inside = cursor.enter_object();
        assert_eq!(cursor.member(&mut inside).as_deref(), Some("a"));
        assert_eq!(cursor.skip(), Some(r#"{"b":[1]}"#));
        assert_eq!(cursor.member(&mut inside).as_deref(), Some("c"));
        assert_eq!(cursor.rest(), "2}");
        assert_eq!(cursor.skip(), Some("2"));
        assert_eq!(cursor.member(&mut inside), None);
        assert_eq!(cursor.skip(), None);
    }

    proptest! {
        #[test]
        fn any_text_is_harmless(raw in "[ \\PC\"\\\\u{}\\[\\],:0-9]{0,40}") {
            met(&raw);
        }
    }
}
