//! Request ids, kept as written: `0`, `"0"` and `1` are three ids, `1` and `1.0` are one.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use super::decimal::Decimal;
use super::raw::as_str;

/// A request id. Numbers and strings compare by what they mean (`1.0` is `1`, escapes are
/// decoded), a number and a string never. Never judged by truth: `0` and `""` are ids like any
/// other.
#[derive(Clone, Debug)]
pub enum Id {
    /// A JSON number, as written.
    Number(Box<str>),
    /// A JSON string, decoded.
    String(Box<str>),
    /// `null`: no MCP revision allows it for a request; errors may carry it.
    Null,
}

impl Id {
    /// The id that a JSON text is: `None` where it is no number, string or `null`.
    ///
    /// `raw` is a valid JSON value, as [`member`](super::member) returns it.
    pub fn from_raw(raw: &str) -> Option<Self> {
        let raw = raw.trim_ascii();
        match raw.as_bytes().first()? {
            b'"' => as_str(raw).map(|text| Self::String(text.into())),
            b'-' | b'0'..=b'9' => Some(Self::Number(raw.into())),
            b'n' => Some(Self::Null),
            _ => None,
        }
    }

    /// Whether a lenient peer takes the one for the other: equal, or a number and the string that
    /// shows it (`2` and `"2"`).
    ///
    /// The TypeScript SDK (`Number(id)`) and the Python SDK accept `"2"` as the answer to `2`.
    pub fn loosely_equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Number(one), Self::String(other)) | (Self::String(one), Self::Number(other)) => {
                Key::number(one) == Key::number(other)
            }
            _ => self == other,
        }
    }

    /// The number that it is, where that is a whole one.
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Number(text) => Decimal::read(text)?.as_integer(),
            Self::String(_) | Self::Null => None,
        }
    }

    fn key(&self) -> Key<'_> {
        match self {
            Self::Number(text) => Key::number(text),
            Self::String(text) => Key::String(text),
            Self::Null => Key::Null,
        }
    }
}

/// What makes two ids one.
#[derive(PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Key<'a> {
    Number(Decimal<'a>),
    /// A number that is beyond all measure, as written.
    Huge(&'a str),
    String(&'a str),
    Null,
}

impl<'a> Key<'a> {
    fn number(text: &'a str) -> Self {
        Decimal::read(text).map_or(Self::Huge(text), Self::Number)
    }
}

impl PartialEq for Id {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Id {}

impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl PartialOrd for Id {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Id {
    /// Some order, for sorted maps.
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl fmt::Display for Id {
    /// As JSON, on one line whatever the id contains.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(text) => f.write_str(text),
            Self::String(text) => {
                let json = serde_json::to_string(text).map_err(|_| fmt::Error)?;
                f.write_str(&json)
            }
            Self::Null => f.write_str("null"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(raw: &str) -> Id {
        Id::from_raw(raw).expect("an id")
    }

    #[test]
    fn ids_compare_by_what_they_mean() {
        assert_ne!(id("0"), id("\"0\""));
        assert_ne!(id("1"), id("2"));
        assert_eq!(id("1"), id("1.0"));
        assert_eq!(id("1e99999999999999999999"), id("1e99999999999999999999"));
        let ids = std::collections::HashSet::from([id("1"), id("1e0"), id("\"1\"")]);
        assert_eq!(ids.len(), 2);
        assert_eq!(id(r#""A""#), id(r#""\u0041""#));
        assert_eq!(Id::from_raw("true"), None);
        assert_eq!(Id::from_raw("{}"), None);
        assert_eq!(Id::from_raw(""), None);
    }

    #[test]
    fn ids_display_as_json() {
        for raw in ["0", "1.0", "-1e400", r#""""#, r#""a\"\n\u001b""#, "null"] {
            assert_eq!(id(raw).to_string(), raw);
        }
    }

    #[test]
    fn loose_equality_crosses_types_and_spellings_but_nothing_else() {
        assert!(id("2").loosely_equals(&id("\"2\"")));
        assert!(id("\"2\"").loosely_equals(&id("2")));
        assert!(id("2").loosely_equals(&id("2.0")));
        assert!(id("1000000").loosely_equals(&id("1e6")));
        assert!(!id("\"2\"").loosely_equals(&id("\"2.0\"")));
        assert!(!id("0").loosely_equals(&id("\"\"")));
        assert!(!id("0").loosely_equals(&id("null")));
        assert!(!id("1").loosely_equals(&id("\"infinity\"")));
        let (one, next) = (id("9007199254740993"), id("9007199254740992"));
        assert!(
            !one.loosely_equals(&next),
            "beyond what a double tells apart"
        );
    }
}
