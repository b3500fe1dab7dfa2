//! Lines back into records.
//!
//! Tolerant as the contract says: unknown fields, unknown types of record and records with an unknown
//! word in them are passed over, save that a gap is a gap for whatever reason; a newer major version
//! is refused. Never recurses on a value's depth: values that matter are kept
//! as text, all others are skipped by a scanner.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::error::Category;
use serde_json::value::RawValue;
use thiserror::Error;

use super::observed::only_connection;
use super::word::is_unknown_word;
use super::{Header, Message, Record, SCHEMA};
use crate::capture::Timestamp;
use crate::jsonrpc::{Fault, Frame};
use crate::session::{ConnId, Side};

/// Why a line is no record.
#[derive(Debug, Error)]
pub enum ParseError {
    /// It is no JSON, or a field is missing or of the wrong kind.
    #[error("{}", worded(.0))]
    Json(#[from] serde_json::Error),
    /// Its `json` is no JSON-RPC message.
    #[error("`json` is no JSON-RPC message ({0:?})")]
    NotRpc(Fault),
    /// Its `schema` names a newer major version.
    #[error("it has the schema {schema:?}, and this observer knows {SCHEMA:?}")]
    NewerSchema {
        /// What it says.
        schema: String,
    },
    /// Its `schema` is another program's.
    #[error("it has the schema {schema:?}")]
    OtherSchema {
        /// What it says.
        schema: String,
    },
}

/// What is wrong with a line, in words that need no knowledge of a parser.
fn worded(error: &serde_json::Error) -> String {
    match error.classify() {
        Category::Syntax => format!("it is no JSON from column {} on", error.column().max(1)),
        Category::Eof => "it ends in the middle of a JSON value".into(),
        Category::Data | Category::Io => {
            let text = error.to_string();
            text.replace(" at line 1 column", " at column")
        }
    }
}

/// Why a log cannot be read on.
#[derive(Debug, Error)]
pub enum ReadError {
    /// There is nothing in it.
    #[error("it is empty")]
    Empty,
    /// The first line is no header.
    #[error("it is no audit log: its first line is no header: {reason}")]
    NoHeader {
        /// What the first line is instead.
        reason: String,
    },
    /// It was written by a newer observer.
    #[error("it has the schema {schema:?}, and this observer knows {SCHEMA:?}")]
    NewerSchema {
        /// What its header says.
        schema: String,
    },
    /// A line in it is no record.
    #[error("line {line} is damaged: {reason}")]
    Damaged {
        /// Which line: 1, 2, ...
        line: u64,
        /// What is wrong.
        reason: ParseError,
    },
    /// Several logs in one file.
    #[error("line {line} begins another log")]
    SecondHeader {
        /// Which line: 1, 2, ...
        line: u64,
    },
}

/// What follows the last newline of a log.
#[derive(Debug)]
pub enum Tail {
    /// A record that only lacks its newline; `None` where it is of an unknown type.
    Record(Option<Record>),
    /// The beginning of a line that was not written to its end.
    Cut {
        /// Which line: 1, 2, ...
        line: u64,
    },
}

/// Reads a log line by line. Has no file: the caller brings the lines.
#[derive(Debug, Default)]
pub struct Reader {
    line: u64,
}

impl Reader {
    /// A reader that expects the header next.
    pub const fn new() -> Self {
        Self { line: 0 }
    }

    /// Takes the next line, without its newline. `None` for what this version
    /// does not know, and for an empty line.
    ///
    /// # Errors
    /// Where the log cannot be read on. What was read before stays good.
    pub fn handle_line(&mut self, line: &[u8]) -> Result<Option<Record>, ReadError> {
        self.line += 1;
        let parsed = match line {
            [] if self.line > 1 => return Ok(None),
            _ => parse_line(line),
        };
        if self.line == 1 {
            return first_line(parsed);
        }
        match parsed {
            Ok(Some(Record::Header(_))) => Err(ReadError::SecondHeader { line: self.line }),
            Ok(record) => Ok(record),
            Err(reason) => Err(ReadError::Damaged {
                line: self.line,
                reason,
            }),
        }
    }

    /// Takes what follows the last newline, which must not be empty.
    ///
    /// # Errors
    /// As [`Self::handle_line`], save that a line which does not parse is [`Tail::Cut`]: it is the
    /// one that was being written when the observer, or the copy, ended.
    pub fn handle_tail(&mut self, rest: &[u8]) -> Result<Tail, ReadError> {
        match self.handle_line(rest) {
            Ok(record) => Ok(Tail::Record(record)),
            Err(ReadError::Damaged {
                line,
                reason: ParseError::Json(_),
            }) => Ok(Tail::Cut { line }),
            Err(error) => Err(error),
        }
    }

    /// Says that there are no more lines.
    ///
    /// # Errors
    /// [`ReadError::Empty`] where there was none.
    pub const fn finish(&self) -> Result<(), ReadError> {
        match self.line {
            0 => Err(ReadError::Empty),
            _ => Ok(()),
        }
    }
}

fn first_line(parsed: Result<Option<Record>, ParseError>) -> Result<Option<Record>, ReadError> {
    match parsed {
        Ok(header @ Some(Record::Header(_))) => Ok(header),
        Err(ParseError::NewerSchema { schema }) => Err(ReadError::NewerSchema { schema }),
        Ok(_) => Err(ReadError::NoHeader {
            reason: "it is another record".into(),
        }),
        Err(error) => Err(ReadError::NoHeader {
            reason: error.to_string(),
        }),
    }
}

/// The record in a line (without its newline); `None` where its type is unknown, or a word in it.
///
/// # Errors
/// Where it is no JSON object with a type, or not the fields that its type needs.
pub fn parse_line(line: &[u8]) -> Result<Option<Record>, ParseError> {
    match parse_known(line) {
        Err(ParseError::Json(error)) if is_unknown_word(&error) => Ok(None),
        parsed => parsed,
    }
}

fn parse_known(line: &[u8]) -> Result<Option<Record>, ParseError> {
    Ok(Some(match kind(line)?.as_ref() {
        "header" => Record::Header(Box::new(parse_header(line)?)),
        "process" => Record::Process(serde_json::from_slice(line)?),
        "connection" => Record::Connection(serde_json::from_slice(line)?),
        "message" => Record::Message(parse_message(line)?),
        "noise" => Record::Noise(serde_json::from_slice(line)?),
        "gap" => Record::Gap(serde_json::from_slice(line)?),
        "eof" => Record::Eof(serde_json::from_slice(line)?),
        "delivered" => Record::Delivered(serde_json::from_slice(line)?),
        "refused" => Record::Refused(serde_json::from_slice(line)?),
        "interrupt" => Record::Interrupt(serde_json::from_slice(line)?),
        "activity" => Record::Activity(serde_json::from_slice(line)?),
        "clock" => Record::Clock(serde_json::from_slice(line)?),
        "loss" => Record::Loss(serde_json::from_slice(line)?),
        "call" => Record::Call(serde_json::from_slice(line)?),
        "finding" => Record::Finding(serde_json::from_slice(line)?),
        "summary" => Record::Summary(serde_json::from_slice(line)?),
        "chain" => Record::Chain(serde_json::from_slice(line)?),
        _ => {
            serde_json::from_slice::<IgnoredAny>(line)?;
            return Ok(None);
        }
    }))
}

/// The record's type. The writer puts it first, so that a line is scanned once.
fn kind(line: &[u8]) -> Result<Cow<'_, str>, ParseError> {
    #[derive(Deserialize)]
    struct Kind<'a> {
        #[serde(borrow, rename = "type")]
        kind: Cow<'a, str>,
    }
    if let Some(rest) = line.strip_prefix(b"{\"type\":\"")
        && let Some(end) = memchr::memchr2(b'"', b'\\', rest)
        && rest[end] == b'"'
        && let Ok(kind) = str::from_utf8(&rest[..end])
    {
        return Ok(Cow::Borrowed(kind));
    }
    Ok(serde_json::from_slice::<Kind<'_>>(line)?.kind)
}

fn parse_header(line: &[u8]) -> Result<Header, ParseError> {
    #[derive(Deserialize)]
    struct Version<'a> {
        #[serde(borrow)]
        schema: Cow<'a, str>,
    }
    // Before the rest: a newer header may have other fields.
    let Version { schema } = serde_json::from_slice(line)?;
    let major = schema
        .strip_prefix("observer/")
        .and_then(|version| version.split('.').next())
        .and_then(|major| major.parse::<u32>().ok());
    match major {
        Some(1) => Ok(serde_json::from_slice(line)?),
        Some(2..) => Err(ParseError::NewerSchema {
            schema: schema.into_owned(),
        }),
        Some(0) | None => Err(ParseError::OtherSchema {
            schema: schema.into_owned(),
        }),
    }
}

/// What a message's line has beside `json`.
#[derive(Deserialize)]
struct Envelope {
    t: Timestamp,
    #[serde(default = "only_connection")]
    conn: ConnId,
    from: Side,
    bytes: u64,
    #[serde(default)]
    offset: Option<u64>,
}

#[derive(Deserialize)]
struct Json<'a> {
    #[serde(borrow)]
    json: &'a RawValue,
}

fn parse_message(line: &[u8]) -> Result<Message, ParseError> {
    if let Some(message) = parse_own_message(line) {
        return Ok(message);
    }
    let envelope: Envelope = serde_json::from_slice(line)?;
    let Json { json } = serde_json::from_slice(line)?;
    let text = with_blanks(line, json.get());
    let json = Frame::parse(Bytes::copy_from_slice(text)).map_err(ParseError::NotRpc)?;
    Ok(envelope.around(json))
}

/// A message as the writer writes it: `json` is the last field, so that its text is scanned once.
/// `None` where it is not, or is no message: the slow way tells what it is then.
fn parse_own_message(line: &[u8]) -> Option<Message> {
    const OPENING: &[u8] = b",\"json\":";
    // No string has these bytes in it: its quotes are escaped.
    let place = memchr::memmem::find(line, OPENING)?;
    let (envelope, rest) = line.split_at(place);
    let text = rest[OPENING.len()..].strip_suffix(b"}")?;
    let envelope: Envelope = serde_json::from_slice(&[envelope, b"}"].concat()).ok()?;
    let json = Frame::parse(Bytes::copy_from_slice(text)).ok()?;
    Some(envelope.around(json))
}

impl Envelope {
    const fn around(self, json: Frame) -> Message {
        let Self {
            t,
            conn,
            from,
            bytes,
            offset,
        } = self;
        Message {
            t,
            conn,
            from,
            bytes,
            offset,
            json,
        }
    }
}

/// `value`, which lies in `line`, with the blanks around it: they are the frame's own.
fn with_blanks<'a>(line: &'a [u8], value: &str) -> &'a [u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r');
    let start = value.as_ptr().addr() - line.as_ptr().addr();
    let end = start + value.len();
    let before = line[..start]
        .iter()
        .rev()
        .take_while(|&byte| blank(byte))
        .count();
    let after = line[end..].iter().take_while(|&byte| blank(byte)).count();
    &line[start - before..end + after]
}
