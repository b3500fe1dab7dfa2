//! What the rules see: each thing that happens to a request or a connection, already related to
//! the request it belongs to.

use super::call::{Call, Past};
use super::connection::Connection;
use super::lane::Answer;
use super::reading::{Asked, TaskNote};
use super::{Cancellation, Revision};
use crate::capture::{GapReason, Timestamp};
use crate::jsonrpc::Id;
use crate::session::{Noise, Side};

/// See the module. Every variant carries what it is about; the rest is in the state.
pub(super) enum Occurrence<'a> {
    /// A request was sent.
    Sent {
        conn: &'a Connection,
        call: &'a Call,
        asked: &'a Asked,
    },
    /// A request was sent under the id of one that is in flight.
    Duplicate { older: &'a Call, newer: &'a Call },
    /// A request was sent under the id of one that is over.
    Reused { call: &'a Call, past: &'a Past },
    /// A request was answered. `written` is the answer's id where it differs from the request's.
    Answered {
        conn: &'a Connection,
        call: &'a Call,
        answer: &'a Answer,
        task: Option<&'a TaskNote>,
        written: Option<&'a Id>,
    },
    /// An answer came for a request that was over.
    Echo {
        conn: &'a Connection,
        past: &'a Past,
        answer: &'a Answer,
    },
    /// An answer came for a request that was never sent; `from` sent the answer.
    UnknownAnswer {
        conn: &'a Connection,
        from: Side,
        id: Option<&'a Id>,
        at: Timestamp,
    },
    /// A request in flight was cancelled.
    Cancelled {
        call: &'a Call,
        cancel: &'a Cancellation,
    },
    /// A cancellation came for a request that was over.
    CancelledPast {
        conn: &'a Connection,
        past: &'a Past,
        cancel: &'a Cancellation,
    },
    /// A cancellation came for an id that is not in flight in that direction.
    CancelledUnknown {
        conn: &'a Connection,
        from: Side,
        id: &'a Id,
        near: Near<'a>,
        at: Timestamp,
    },
    /// A cancellation came without a usable id.
    CancelMalformed {
        conn: &'a Connection,
        from: Side,
        at: Timestamp,
    },
    /// Progress came for a request that was over.
    ProgressPast {
        conn: &'a Connection,
        past: &'a Past,
        at: Timestamp,
    },
    /// Progress came for a token that was never given.
    ProgressUnknown {
        conn: &'a Connection,
        token: &'a Id,
        at: Timestamp,
    },
    /// A notification that is neither progress nor a cancellation.
    Notified {
        conn: &'a Connection,
        from: Side,
        method: &'a str,
        params: Option<&'a str>,
    },
    /// There is new evidence of a call's having been given up.
    Suspected { call: &'a Call },
    /// The evidence of a call's having been given up is void: bytes went by unseen before it.
    Cleared { call: &'a Call },
    /// A server's request is still open though the call that it belonged to is over.
    Left {
        call: &'a Call,
        outer_ended: Timestamp,
    },
    /// The connection ended with this call in flight.
    TornDown {
        conn: &'a Connection,
        call: &'a Call,
    },
    /// A request is over, however it ended.
    Ended { past: &'a Past },
    /// A line that is no message.
    Noise {
        conn: &'a Connection,
        noise: &'a Noise,
        /// It is the first of so many lines that are one message together.
        spread: Option<usize>,
    },
    /// A batch.
    Batch {
        conn: &'a Connection,
        from: Side,
        revision: Option<Revision>,
        count: usize,
    },
    /// Bytes went by unseen.
    Gap {
        conn: &'a Connection,
        from: Side,
        offset: u64,
        bytes: Option<u64>,
        reason: GapReason,
    },
    /// The observer's own table was full: this request was dropped from it.
    Dropped {
        conn: &'a Connection,
        call: &'a Call,
    },
    /// A side closed its writing end.
    Eof { conn: &'a Connection, from: Side },
    /// The connection is forgotten.
    Gone { conn: &'a Connection },
}

/// What a cancellation for an unknown id may have meant.
#[derive(Clone, Copy, Debug)]
pub(super) enum Near<'a> {
    /// Nothing that was seen.
    Nothing,
    /// A request in flight whose id has another JSON type.
    OtherType(&'a Call),
    /// A request of the other side.
    OtherDirection,
}
