//! The observed records: what happened. A replay reads these and nothing else.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Span, word};
use crate::capture::{Fate, GapReason, InterruptKind, Loss, Pid, Timestamp};
use crate::jsonrpc::Frame;
use crate::session::{ConnId, NoiseKind, Party, Side, Transport};

/// A process of the scope appears, executes a program, or ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Process {
    /// When.
    pub t: Timestamp,
    /// The process.
    pub pid: Pid,
    /// Its parent when it came into view.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ppid: Option<Pid>,
    /// Its executable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exe: Option<String>,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    /// Its start time, nanoseconds since boot: a reused pid is a new process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<u64>,
    /// What changed.
    pub event: ProcessEvent,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Fate>,
}

/// What changed about a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessEvent {
    /// It came into view.
    Seen,
    /// It executed a program.
    Exec,
    /// It ended.
    Exit,
}

/// Two streams are recognised as one MCP stdio connection, become better known (`open` again with
/// the same number), or are over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Connection {
    /// When.
    pub t: Timestamp,
    /// The connection's number: 1, 2, ...
    #[serde(default = "only_connection")]
    pub conn: ConnId,
    /// What changed.
    pub event: ConnectionEvent,
    /// The host; null while unknown.
    #[serde(default)]
    pub client: Option<Party>,
    /// The server; null while unknown.
    #[serde(default)]
    pub server: Option<Party>,
    /// What carries it.
    #[serde(
        default,
        deserialize_with = "word::transport",
        skip_serializing_if = "Option::is_none"
    )]
    pub transport: Option<Transport>,
    /// What identifies each direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<Streams>,
}

/// What changed about a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionEvent {
    /// It is recognised, or better known.
    Open,
    /// Both directions are over.
    Close,
}

/// What identifies each direction, by who writes into it: `pipe:[1234]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Streams {
    /// Client to server.
    #[serde(default)]
    pub client: Option<String>,
    /// Server to client.
    #[serde(default)]
    pub server: Option<String>,
}

/// One complete JSON-RPC line.
///
/// No `Deserialize`: [`parse_line`](super::parse_line) reads it, so that `json` keeps its text.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Message {
    /// When.
    pub t: Timestamp,
    /// Which connection.
    pub conn: ConnId,
    /// Who sent it.
    pub from: Side,
    /// Its size on the wire, with its line terminator.
    pub bytes: u64,
    /// Position of its first byte in its stream, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The frame, verbatim.
    #[serde(skip_serializing)]
    #[schemars(with = "serde_json::Value", transform = as_written)]
    pub json: Frame,
}

/// A line that is no JSON-RPC message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Noise")]
pub struct NoiseRecord {
    /// When.
    pub t: Timestamp,
    /// Which connection.
    #[serde(default = "only_connection")]
    pub conn: ConnId,
    /// Who wrote it.
    pub from: Side,
    /// Its size on the wire, with its terminator where it has one.
    pub bytes: u64,
    /// What is wrong with it.
    #[serde(deserialize_with = "word::noise")]
    pub kind: NoiseKind,
    /// Position of its first byte in its stream, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Its first 4 KiB, escaped: `\xff` is a byte that is no UTF-8, `\u{1b}` a control character,
    /// `\\` a backslash.
    #[serde(default)]
    pub text: String,
}

/// Bytes went by unseen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gap {
    /// When.
    pub t: Timestamp,
    /// Which connection.
    #[serde(default = "only_connection")]
    pub conn: ConnId,
    /// Whose bytes.
    pub from: Side,
    /// Position of the first missing byte in its stream.
    pub offset: u64,
    /// How many; null where nobody knows.
    pub bytes: Option<u64>,
    /// Why.
    #[serde(deserialize_with = "word::reason")]
    pub reason: GapReason,
}

/// A side closed its writing end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Eof {
    /// When.
    pub t: Timestamp,
    /// Which connection.
    #[serde(default = "only_connection")]
    pub conn: ConnId,
    /// Whose.
    pub from: Side,
}

/// The other side has read up to this offset of the stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Delivered {
    /// When.
    pub t: Timestamp,
    /// Which connection.
    #[serde(default = "only_connection")]
    pub conn: ConnId,
    /// Whose bytes were read.
    pub from: Side,
    /// Position after the last byte read.
    pub offset: u64,
}

/// A write failed because the other side cannot read any more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Refused {
    /// When.
    pub t: Timestamp,
    /// Which connection.
    #[serde(default = "only_connection")]
    pub conn: ConnId,
    /// Who tried to write.
    pub from: Side,
}

/// A signal to, or a key read by, a process of the scope.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interrupt {
    /// When.
    pub t: Timestamp,
    /// The process.
    pub pid: Pid,
    /// What it got.
    pub kind: InterruptKind,
    /// Who sent the signal; null for keys and for signals that the kernel made.
    #[serde(default)]
    pub sender: Option<Pid>,
}

/// A process of the scope sent this much to a network peer; never content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Activity {
    /// When.
    pub t: Timestamp,
    /// Who sent.
    pub pid: Pid,
    /// What it did.
    pub kind: ActivityKind,
    /// How many bytes.
    pub bytes: u64,
    /// To whom, where known.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub peer: Option<SocketAddr>,
}

/// What a process did beyond its stdio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActivityKind {
    /// It sent to the network.
    NetSend,
}

/// The clock that the times come from stood still: the machine was suspended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Clock {
    /// When it went on.
    pub t: Timestamp,
    /// For how long it stood; 0: it did not, but had come so far when the next record, which is
    /// older, became known.
    pub suspended: Span,
}

/// The capture's counters so far. Comes at the end, and whenever something was lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Loss")]
pub struct LossRecord {
    /// When.
    pub t: Timestamp,
    /// The counters.
    #[serde(flatten)]
    pub loss: Loss,
}

/// A log of one connection may leave its number out.
pub(super) const fn only_connection() -> ConnId {
    ConnId(1)
}

/// `json` is left out by the derived serialiser, and written all the same.
fn as_written(schema: &mut schemars::Schema) {
    schema.remove("writeOnly");
    schema.insert("type".into(), ["object", "array"].as_slice().into());
}
