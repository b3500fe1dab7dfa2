//! The filter's little language: `outcome:abandoned tool:slow took>5s -host:gemini "free text"`.
//!
//! Terms are separated by blanks, and all must hold. [`FIELDS`] is the one table of the fields:
//! the help and the documentation show it.

use std::time::Duration;

use memchr::memmem;

use super::call::Call;
use super::connection::Connection;
use super::frame::{Frame, Place};
use super::ledger::{Found, Ledger};
use crate::record::Word;
use crate::session::{ConnId, Side};
use crate::wording::parse_duration;

/// A field that a term can ask for: its name, and what it holds.
pub(crate) const FIELDS: [(&str, &str); 14] = [
    ("conn", "number of the connection"),
    ("host", "the host's program, or what it calls itself"),
    ("server", "the server's program, or what it calls itself"),
    ("from", "who sent it: client or server"),
    ("method", "the method: tools/call"),
    ("tool", "the tool, prompt or resource that is named"),
    ("id", "the request's id, whole"),
    (
        "outcome",
        "running, answered, failed, cancelled, abandoned, torn-down, pending, unknown",
    ),
    ("rule", "a finding's rule: abandoned-call"),
    ("severity", "a finding's severity: error, warning, info"),
    (
        "confidence",
        "how sure a finding is: confirmed, probable, possible",
    ),
    ("took", "how long the call took; with > or <: took>5s"),
    (
        "size",
        "bytes of request and answer, or of a message; with > or <: size>64k",
    ),
    (
        "text",
        "the messages' own text, as far as it is in memory; case counts",
    ),
];

/// The fields as Markdown, for the documentation.
pub fn markdown() -> String {
    let rows = FIELDS
        .iter()
        .map(|(field, meaning)| format!("| `{field}` | {meaning} |\n"));
    format!("| field | |\n|---|---|\n{}\n", rows.collect::<String>())
}

/// What rows must match.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Query {
    terms: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq)]
struct Term {
    negated: bool,
    test: Test,
}

#[derive(Clone, Debug, PartialEq)]
enum Test {
    /// Somewhere in the row.
    Anywhere(String),
    /// One of these, in a field.
    Field(&'static str, Vec<String>),
    Took(bool, Duration),
    Size(bool, u64),
}

/// What a row is about.
#[derive(Clone, Copy, Default)]
pub(crate) struct Facts<'a> {
    conn: Option<ConnId>,
    connection: Option<&'a Connection>,
    call: Option<&'a Call>,
    frame: Option<&'a Frame>,
    finding: Option<&'a Found>,
}

impl Query {
    /// Reads a query.
    ///
    /// # Errors
    /// A sentence for the user.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let terms = words(text)?
            .iter()
            .map(|word| term(word))
            .collect::<Result<_, _>>()?;
        Ok(Self { terms })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether whole messages must be searched for it.
    pub(crate) fn reads_text(&self) -> bool {
        self.terms
            .iter()
            .any(|term| matches!(term.test, Test::Field("text", _)))
    }

    pub(crate) fn matches(&self, ledger: &Ledger, facts: &Facts<'_>) -> bool {
        self.terms
            .iter()
            .all(|term| term.test.holds(ledger, facts) != term.negated)
    }
}

impl<'a> Facts<'a> {
    pub(crate) fn of_call(ledger: &'a Ledger, call: &'a Call) -> Self {
        let conn = Some(call.conn);
        Self {
            conn,
            connection: ledger.connections.get(&call.conn),
            call: Some(call),
            ..Self::default()
        }
    }

    pub(crate) fn of_frame(ledger: &'a Ledger, frame: &'a Frame) -> Self {
        let conn = match frame.place {
            Place::Connection(conn) => Some(conn),
            Place::Process(_) | Place::Everything => None,
        };
        let connection = conn.and_then(|conn| ledger.connections.get(&conn));
        let call = frame.call.and_then(|call| ledger.calls.get(call));
        Self {
            conn,
            connection,
            call,
            frame: Some(frame),
            finding: None,
        }
    }

    pub(crate) fn of_finding(ledger: &'a Ledger, found: &'a Found) -> Self {
        let conn = found.finding.conn;
        let connection = conn.and_then(|conn| ledger.connections.get(&conn));
        let call = found.call.and_then(|call| ledger.calls.get(call));
        Self {
            conn,
            connection,
            call,
            frame: None,
            finding: Some(found),
        }
    }

    /// The findings that stand about it.
    fn findings(&self, ledger: &'a Ledger) -> impl Iterator<Item = &'a Found> {
        let of_call = self.call.filter(|_| self.finding.is_none());
        let places = of_call.map_or(&[][..], |call| &call.findings);
        let listed = places
            .iter()
            .filter_map(|at| ledger.findings.get(*at as usize));
        self.finding.into_iter().chain(listed)
    }

    /// Whether any text of a field is accepted.
    fn any(&self, ledger: &Ledger, field: &str, accept: &dyn Fn(&str) -> bool) -> bool {
        let some = |text: Option<&str>| text.is_some_and(accept);
        match field {
            "conn" => self.conn.is_some_and(|conn| accept(&conn.to_string())),
            "host" => self
                .connection
                .is_some_and(|conn| accept(&conn.host) || some(conn.client_info.as_deref())),
            "server" => self
                .connection
                .is_some_and(|conn| accept(&conn.tool) || some(conn.server_info.as_deref())),
            "from" => {
                let from = self.frame.and_then(|frame| frame.from);
                from.or(self.call.map(|call| call.from))
                    .is_some_and(|from| {
                        accept(from.word()) || (from == Side::Client && accept("host"))
                    })
            }
            "method" => match (self.call, self.finding) {
                (Some(call), _) => accept(&call.method),
                (None, Some(found)) => some(found.finding.method.as_deref()),
                (None, None) => self.frame.is_some_and(|frame| accept(&frame.label)),
            },
            "tool" => match (self.call, self.finding) {
                (Some(call), _) => some(call.name.as_deref()),
                (None, found) => some(found.and_then(|found| found.finding.name.as_deref())),
            },
            "id" => {
                let id = self.call.map(|call| &call.id);
                let id = id.or(self.finding.and_then(|found| found.finding.id.as_ref()));
                id.is_some_and(|id| accept(&id.to_string()))
            }
            "outcome" => self.call.is_some_and(|call| accept(call.state().word())),
            "rule" => self
                .findings(ledger)
                .any(|found| accept(found.finding.rule)),
            "severity" => self
                .findings(ledger)
                .any(|found| accept(found.finding.severity.word())),
            "confidence" => self
                .findings(ledger)
                .any(|found| accept(found.finding.confidence.word())),
            "text" => {
                let call = self.call.filter(|_| self.frame.is_none());
                let own = call
                    .into_iter()
                    .flat_map(|call| [call.request, call.answer]);
                let own = own.flatten().filter_map(|frame| ledger.frames.get(frame));
                self.frame
                    .into_iter()
                    .chain(own)
                    .filter_map(Frame::text)
                    .any(accept)
            }
            _ => false,
        }
    }

    fn anywhere(&self, ledger: &Ledger, word: &str) -> bool {
        let accept = |text: &str| contains(text, word);
        let reason = self
            .call
            .and_then(|call| call.cancel.as_ref()?.reason.as_deref());
        ["host", "server", "method", "tool", "id", "outcome", "rule"]
            .iter()
            .any(|field| self.any(ledger, field, &accept))
            || self.frame.is_some_and(|frame| accept(&frame.label))
            || self
                .finding
                .is_some_and(|found| accept(&found.finding.message))
            || reason.is_some_and(accept)
    }

    fn size(&self) -> Option<u64> {
        match (self.frame, self.call) {
            (Some(frame), _) => Some(frame.bytes),
            (None, Some(call)) => Some(call.request_bytes + call.response_bytes.unwrap_or(0)),
            (None, None) => None,
        }
    }
}

impl Test {
    fn holds(&self, ledger: &Ledger, facts: &Facts<'_>) -> bool {
        match self {
            Self::Anywhere(word) => facts.anywhere(ledger, word),
            Self::Field("text", values) => values.iter().any(|value| {
                let finder = memmem::Finder::new(value);
                facts.any(ledger, "text", &|text| {
                    finder.find(text.as_bytes()).is_some()
                })
            }),
            Self::Field(
                field @ ("id" | "conn" | "outcome" | "severity" | "confidence"),
                values,
            ) => {
                let accept = |text: &str| {
                    values
                        .iter()
                        .any(|value| text.trim_matches('"').eq_ignore_ascii_case(value))
                };
                facts.any(ledger, field, &accept)
            }
            Self::Field(field, values) => {
                let accept = |text: &str| values.iter().any(|value| contains(text, value));
                facts.any(ledger, field, &accept)
            }
            Self::Took(more, limit) => facts.call.is_some_and(|call| {
                let took = call.took(ledger.newest);
                if *more { took > *limit } else { took < *limit }
            }),
            Self::Size(more, limit) => facts
                .size()
                .is_some_and(|size| if *more { size > *limit } else { size < *limit }),
        }
    }
}

/// Whether `word` is in `text`; the case of ASCII letters does not count.
pub(crate) fn contains(text: &str, word: &str) -> bool {
    let (text, word) = (text.as_bytes(), word.as_bytes());
    word.is_empty()
        || text
            .windows(word.len())
            .any(|part| part.eq_ignore_ascii_case(word))
}

/// The words between blanks; quotes hold one together.
fn words(text: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quoted, mut begun) = (Vec::new(), String::new(), false, false);
    for char in text.chars() {
        match char {
            '"' => {
                (quoted, begun) = (!quoted, true);
                // A quoted word is free text even where it looks like a field.
                if quoted && word.trim_start_matches('-').is_empty() {
                    word.push('\0');
                }
            }
            _ if char.is_whitespace() && !quoted => {
                if begun || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            _ => word.push(char),
        }
    }
    if quoted {
        return Err("a quote is open".into());
    }
    if begun || !word.is_empty() {
        words.push(word);
    }
    Ok(words)
}

fn term(word: &str) -> Result<Term, String> {
    let negated = word.starts_with('-') && word.len() > 1;
    let rest = if negated { &word[1..] } else { word };
    if let Some(free) = rest.strip_prefix('\0') {
        return Ok(Term {
            negated,
            test: Test::Anywhere(free.into()),
        });
    }
    let Some(at) = rest.find([':', '>', '<']) else {
        return Ok(Term {
            negated,
            test: Test::Anywhere(rest.into()),
        });
    };
    let (name, sign, value) = (&rest[..at], &rest[at..=at], &rest[at + 1..]);
    let Some((field, _)) = FIELDS.iter().find(|(field, _)| *field == name) else {
        return Err(format!(
            "no field {name:?}: ? lists them, quotes search for it"
        ));
    };
    let more = sign == ">";
    let test = match (*field, sign) {
        (_, ":") if value.is_empty() => return Err(format!("{field}: what?")),
        ("took" | "size", ":") => return Err(format!("ask for {field}> or {field}<")),
        ("took", _) => Test::Took(more, parse_duration(value)?),
        ("size", _) => Test::Size(more, parse_size(value)?),
        (_, ":") => Test::Field(field, value.split(',').map(Into::into).collect()),
        _ => return Err(format!("{field} has no order: ask for {field}:{value}")),
    };
    Ok(Term { negated, test })
}

fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text
        .find(|char: char| !char.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => Some(1),
        "k" | "kb" => Some(1_000),
        "m" | "mb" => Some(1_000_000),
        _ => None,
    };
    let size = number.parse::<u64>().ok().zip(factor);
    let size = size.and_then(|(number, factor)| number.checked_mul(factor));
    size.ok_or_else(|| "give a size such as 500, 64k or 2M".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_read_term_by_term() {
        let query =
            Query::parse(r#"outcome:abandoned,failed -tool:slow "took> x" took>1.5s size<2k"#)
                .expect("a query");
        let term = |negated, test| Term { negated, test };
        assert_eq!(
            query.terms,
            [
                term(
                    false,
                    Test::Field("outcome", vec!["abandoned".into(), "failed".into()])
                ),
                term(true, Test::Field("tool", vec!["slow".into()])),
                term(false, Test::Anywhere("took> x".into())),
                term(false, Test::Took(true, Duration::from_millis(1500))),
                term(false, Test::Size(false, 2_000)),
            ]
        );
    }

    #[test]
    fn what_cannot_be_meant_is_refused_in_words() {
        for (text, error) in [
            (
                "colour:red",
                "no field \"colour\": ? lists them, quotes search for it",
            ),
            ("tool:", "tool: what?"),
            ("tool>5", "tool has no order: ask for tool:5"),
            ("took:5s", "ask for took> or took<"),
            (
                "took>soon",
                "give a duration such as 30s, 200ms, 2min or 1h",
            ),
            ("size>many", "give a size such as 500, 64k or 2M"),
            ("\"open", "a quote is open"),
        ] {
            assert_eq!(Query::parse(text), Err(error.into()), "{text}");
        }
    }

    #[test]
    fn case_does_not_count() {
        assert!(contains("Codex", "codex"));
        assert!(contains("x", ""));
        assert!(!contains("", "x"));
    }
}
