//! The audit log's types, version 1: what is written, line by line, and read back.
//!
//! Owns the names and shapes of the public contract (`docs/audit-log.md`), and nothing but them:
//! must not conclude anything, nor touch a file. [`Record::write_line`] makes a line of a log,
//! [`Chain`] seals what was written, [`Reader`] takes lines back, [`Seals`] and [`Verifier`] look
//! whether the seals hold. Invariant: a message's own text goes through untouched.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod chain;
mod convert;
mod derived;
mod escape;
mod header;
mod observed;
mod read;
mod scalar;
mod seals;
mod verify;
mod word;

#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::Serialize;

use crate::capture::Timestamp;

pub use chain::{Chain, ChainRecord, Digest, SEALED_EVERY, Seal};
pub use derived::{Call, Cancel, Evidence, Finding, Summary};
pub use escape::{escape, printable, unescape};
pub use header::{Backend, Header, Part, Payload, Scope};
pub use observed::{
    Activity, Clock, Connection, ConnectionEvent, Delivered, Eof, Gap, Interrupt, LossRecord,
    Message, NoiseRecord, Process, ProcessEvent, Refused, Streams,
};
pub use read::{ParseError, ReadError, Reader, Tail, parse_line};
pub use scalar::Span;
pub use seals::Seals;
pub use verify::{Altered, End, Verified, Verifier, VerifyError};
pub use word::Word;

/// What the header's `schema` says: the format's name and major version.
pub const SCHEMA: &str = "observer/1";

/// One line of an audit log.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
#[schemars(title = "A line of an observer audit log, version 1")]
pub enum Record {
    /// The first line: what observed, and how.
    Header(Box<Header>),
    /// A process of the scope appears, executes a program, or ends.
    Process(Process),
    /// Two streams are recognised as one MCP stdio connection, or it is over.
    Connection(Connection),
    /// One complete JSON-RPC line.
    Message(Message),
    /// A line that is no JSON-RPC message.
    Noise(NoiseRecord),
    /// Bytes went by unseen.
    Gap(Gap),
    /// A side closed its writing end.
    Eof(Eof),
    /// The other side has read up to this offset.
    Delivered(Delivered),
    /// A write failed because the other side cannot read any more.
    Refused(Refused),
    /// A signal to, or a key read by, a process of the scope.
    Interrupt(Interrupt),
    /// A process of the scope sent bytes to a network peer.
    Activity(Activity),
    /// The clock stood still.
    Clock(Clock),
    /// The capture's counters so far.
    Loss(LossRecord),
    /// Derived: a request is over, or the log is.
    Call(Call),
    /// Derived: a rule is broken.
    Finding(Finding),
    /// Derived: what the whole log amounts to.
    Summary(Summary),
    /// What the file held so far.
    Chain(ChainRecord),
}

impl Record {
    /// When it happened or was concluded.
    pub fn t(&self) -> Timestamp {
        match self {
            Self::Header(record) => record.t,
            Self::Process(record) => record.t,
            Self::Connection(record) => record.t,
            Self::Message(record) => record.t,
            Self::Noise(record) => record.t,
            Self::Gap(record) => record.t,
            Self::Eof(record) => record.t,
            Self::Delivered(record) => record.t,
            Self::Refused(record) => record.t,
            Self::Interrupt(record) => record.t,
            Self::Activity(record) => record.t,
            Self::Clock(record) => record.t,
            Self::Loss(record) => record.t,
            Self::Call(record) => record.t,
            Self::Finding(record) => record.t,
            Self::Summary(record) => record.t,
            Self::Chain(record) => record.t,
        }
    }

    /// Appends the record's line, with its newline, to `out`.
    ///
    /// A message's text is copied, never written anew: blanks, escapes, duplicate keys and the
    /// digits of numbers stay as they were on the wire.
    pub fn write_line(&self, out: &mut Vec<u8>) {
        #[expect(
            clippy::expect_used,
            reason = "a Vec takes every write, and all keys are strings"
        )]
        serde_json::to_writer(&mut *out, self).expect("a record serialises");
        if let Self::Message(message) = self {
            // `json` is the last field and is left out above: open the object again.
            out.pop();
            out.extend_from_slice(b",\"json\":");
            out.extend_from_slice(message.json.text().as_bytes());
            out.push(b'}');
        }
        out.push(b'\n');
    }
}

/// The JSON Schema (2020-12) of a line, generated from the types above.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Record).to_value()
}
