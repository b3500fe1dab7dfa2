//! The JSON-RPC envelope of a frame, with the frame's own text kept verbatim.

use std::ops::Range;

use bytes::Bytes;

use super::Id;

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
    params: Option<Range<usize>>,
    result: Option<Range<usize>>,
    error: Option<Range<usize>>,
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

/// Why a line is no JSON-RPC frame. The names are the audit log's kinds of noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Text that does not look like JSON.
    Text,
    /// An empty line.
    Blank,
    /// It begins as JSON and is none, or is JSON without being JSON-RPC.
    InvalidJson,
    /// Bytes that are no UTF-8.
    InvalidUtf8,
    /// A `Content-Length:` header as the Language Server Protocol frames messages.
    ContentLength,
}
