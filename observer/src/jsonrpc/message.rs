//! The JSON-RPC envelope of a frame, with the frame's own text kept verbatim.

use bytes::Bytes;

use super::Id;
use super::fault::{Fault, fault};
use super::raw::{as_i64, as_str, member};
use super::scan::{Invalid, Scanner, Span};

/// A complete line that is a JSON-RPC message, or a batch of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// The line without its terminator: valid UTF-8, valid JSON.
    text: Bytes,
    messages: Vec<Message>,
    batch: bool,
}

/// One JSON-RPC message. The ranges point into its frame's text.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Request, notification or response.
    pub kind: Kind,
    params: Option<Span>,
    result: Option<Span>,
    error: Option<Span>,
}

/// What a message is.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// `id` and `method`.
    Request {
        /// Its id.
        id: Id,
        /// Its method.
        method: Box<str>,
    },
    /// `method` without `id`.
    Notification {
        /// Its method.
        method: Box<str>,
    },
    /// `result` or `error`; an error may lack its id where the request's could not be read.
    Response {
        /// The id it answers.
        id: Option<Id>,
        /// What it says.
        outcome: Outcome,
    },
}

/// What a response says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// `result`.
    Result,
    /// `error`, with its code (0 where it has none that fits).
    Error {
        /// The JSON-RPC error code.
        code: i64,
    },
}

impl Frame {
    /// Reads a line, given without its `\n`. A `\r` at its end and a byte order mark at its
    /// beginning are tolerated and are no part of the text.
    ///
    /// A message is an object with `"jsonrpc":"2.0"` and a `method`, or an `id` with `result` or
    /// `error`, or an `error` alone (MCP 2025-11-25 and later: the request's id could not be
    /// read). Ids are numbers, strings or null. So a line of a JSON log is none. Where a member
    /// comes twice the last one counts. An array is a batch whatever the revision says; elements
    /// of it that are no messages are left out, and an array without any message is no frame.
    ///
    /// # Errors
    ///
    /// The [`Fault`] says what the line is instead. It is data, not a failure of ours.
    pub fn parse(line: Bytes) -> Result<Self, Fault> {
        let text = trimmed(line);
        let Ok(json) = std::str::from_utf8(&text) else {
            return Err(Fault::InvalidUtf8);
        };
        let (messages, batch) = read(json).map_err(|position| fault(json, position))?;
        Ok(Self {
            messages,
            batch,
            text,
        })
    }

    /// The line's own text: one JSON value.
    pub fn text(&self) -> &str {
        // SAFETY: `parse`, the one constructor, checked exactly these bytes with `from_utf8`, and
        // `Bytes` never change.
        unsafe { std::str::from_utf8_unchecked(&self.text) }
    }

    /// The messages, in order: one, or those of a batch. Never empty.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Whether the line is an array.
    pub const fn is_batch(&self) -> bool {
        self.batch
    }

    /// The raw text of a message's `params`. The message is one of this frame's.
    pub fn params(&self, message: &Message) -> Option<&str> {
        self.text().get(message.params.clone()?)
    }

    /// The raw text of a message's `result`. The message is one of this frame's.
    pub fn result(&self, message: &Message) -> Option<&str> {
        self.text().get(message.result.clone()?)
    }

    /// The raw text of a message's `error`. The message is one of this frame's.
    pub fn error(&self, message: &Message) -> Option<&str> {
        self.text().get(message.error.clone()?)
    }
}

impl Message {
    /// The id of a request or response; `None` where it has none.
    pub const fn id(&self) -> Option<&Id> {
        match &self.kind {
            Kind::Request { id, .. } | Kind::Response { id: Some(id), .. } => Some(id),
            Kind::Notification { .. } | Kind::Response { id: None, .. } => None,
        }
    }

    /// The method of a request or notification.
    pub fn method(&self) -> Option<&str> {
        match &self.kind {
            Kind::Request { method, .. } | Kind::Notification { method } => Some(method),
            Kind::Response { .. } => None,
        }
    }
}

/// Without byte order mark and carriage return.
fn trimmed(mut line: Bytes) -> Bytes {
    if line.starts_with(b"\xEF\xBB\xBF") {
        line = line.slice(3..);
    }
    if line.ends_with(b"\r") {
        line.truncate(line.len() - 1);
    }
    line
}

/// The messages of a text, and whether it is a batch; or how far it was valid JSON.
fn read(text: &str) -> Result<(Vec<Message>, bool), usize> {
    let mut scanner = Scanner::new(text);
    let read = match scanner.peek() {
        Some(b'{') => {
            envelope(text, &mut scanner).map(|message| (message.into_iter().collect(), false))
        }
        Some(b'[') => batch(text, &mut scanner).map(|messages| (messages, true)),
        _ => scanner.value().map(|_| (Vec::new(), false)),
    };
    match read {
        Ok((messages, batch)) if scanner.peek().is_none() && !messages.is_empty() => {
            Ok((messages, batch))
        }
        _ => Err(scanner.position()),
    }
}

fn batch(text: &str, scanner: &mut Scanner<'_>) -> Result<Vec<Message>, Invalid> {
    let mut messages = Vec::new();
    let mut first = true;
    scanner.eat(b'[');
    while scanner.element(&mut first)? {
        if scanner.peek() == Some(b'{') {
            messages.extend(envelope(text, scanner)?);
        } else {
            scanner.value()?;
        }
    }
    Ok(messages)
}

/// Where the members that make an envelope lie.
#[derive(Default)]
struct Envelope {
    jsonrpc: Option<Span>,
    id: Option<Span>,
    method: Option<Span>,
    params: Option<Span>,
    result: Option<Span>,
    error: Option<Span>,
}

/// Reads an object; `None` where it is no JSON-RPC message.
fn envelope(text: &str, scanner: &mut Scanner<'_>) -> Result<Option<Message>, Invalid> {
    let mut envelope = Envelope::default();
    let mut first = true;
    scanner.eat(b'{');
    while let Some((key, value)) = scanner.member(&mut first)? {
        let field = match as_str(&text[key]).as_deref() {
            Some("jsonrpc") => &mut envelope.jsonrpc,
            Some("id") => &mut envelope.id,
            Some("method") => &mut envelope.method,
            Some("params") => &mut envelope.params,
            Some("result") => &mut envelope.result,
            Some("error") => &mut envelope.error,
            _ => continue,
        };
        *field = Some(value);
    }
    Ok(envelope.message(text))
}

impl Envelope {
    fn message(self, text: &str) -> Option<Message> {
        let raw = |range: Option<Span>| text.get(range?);
        if as_str(raw(self.jsonrpc.clone())?)? != "2.0" {
            return None;
        }
        // A member that is null is there; an id of another type than these makes no message.
        let id = match raw(self.id.clone()) {
            Some(id) => Some(Id::from_raw(id)?),
            None => None,
        };
        let kind = match raw(self.method.clone()) {
            Some(method) => {
                let method = as_str(method)?.into();
                match id {
                    Some(id) => Kind::Request { id, method },
                    None => Kind::Notification { method },
                }
            }
            None => self.response(id, raw(self.error.clone()))?,
        };
        let Self {
            params,
            result,
            error,
            ..
        } = self;
        Some(Message {
            kind,
            params,
            result,
            error,
        })
    }

    /// Some servers send `"error":null` with a result; that is no error.
    fn response(&self, id: Option<Id>, error: Option<&str>) -> Option<Kind> {
        let outcome = match error {
            Some("null") | None if self.result.is_some() => Outcome::Result,
            None => return None,
            Some(error) => {
                let code = member(error, "code").and_then(as_i64).unwrap_or(0);
                Outcome::Error { code }
            }
        };
        let anonymous_result = id.is_none() && outcome == Outcome::Result;
        (!anonymous_result).then_some(Kind::Response { id, outcome })
    }
}

#[cfg(test)]
mod tests;
