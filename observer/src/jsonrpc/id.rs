//! Request ids, kept as written: `0`, `"0"` and `1` are three ids.

use std::fmt;

use super::raw::as_str;

/// A request id. Numbers compare by the text they were written with, strings by what they mean
/// (escapes decoded). Never judged by truth: `0` and `""` are ids like any other.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
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
    /// shows it (`2` and `"2"`), or one number written in two ways (`2` and `2.0`).
    ///
    /// The TypeScript SDK (`Number(id)`) and the Python SDK accept `"2"` as the answer to `2`.
    pub fn loosely_equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, _) | (_, Self::Null) | (Self::String(_), Self::String(_)) => self == other,
            (Self::Number(one) | Self::String(one), Self::Number(other) | Self::String(other)) => {
                one == other || matches!((number(one), number(other)), (Some(a), Some(b)) if a == b)
            }
        }
    }
}

/// What a number means, as far as `f64` holds it exactly; ids beyond that compare by text.
fn number(text: &str) -> Option<f64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let plain = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    let value: f64 = if plain {
        text.parse().ok()?
    } else {
        return None;
    };
    (value.abs() < EXACT).then_some(value)
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
    fn ids_are_kept_as_written() {
        assert_ne!(id("0"), id("\"0\""));
        assert_ne!(id("1"), id("1.0"));
        assert_eq!(id(r#""A""#), id(r#""\u0041""#));
        assert_eq!(Id::from_raw("true"), None);
        assert_eq!(Id::from_raw("{}"), None);
        assert_eq!(Id::from_raw(""), None);
    }

    #[test]
    fn ids_display_as_json() {
        for raw in ["0", "-1e400", r#""""#, r#""a\"\n\u001b""#, "null"] {
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
