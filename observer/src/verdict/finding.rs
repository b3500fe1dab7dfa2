//! What the judge says: calls, findings, the summary. The derived records of the audit log.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::capture::{Loss, Timestamp};
use crate::jsonrpc::Id;
use crate::session::{ConnId, Side};

/// One conclusion of the judge, and the time at which it was drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// A request is over (or the log is).
    Call(CallRecord),
    /// A rule is broken.
    Finding(Finding),
    /// The end of the log.
    Summary(Summary),
}

/// A request and how it ended.
#[derive(Clone, Debug, PartialEq)]
pub struct CallRecord {
    /// When this was concluded.
    pub at: Timestamp,
    /// Which connection.
    pub conn: ConnId,
    /// Who sent the request.
    pub from: Side,
    /// Its id, as written.
    pub id: Id,
    /// Its method.
    pub method: String,
    /// The tool, prompt or resource it names.
    pub name: Option<String>,
    /// When it was sent.
    pub sent: Timestamp,
    /// When it ended; `None` while it is pending.
    pub ended: Option<Timestamp>,
    /// How it ended.
    pub outcome: Outcome,
    /// How long the server worked on after the host had given up.
    pub wasted: Option<Duration>,
    /// Size of the request on the wire.
    pub request_bytes: u64,
    /// Size of the response on the wire.
    pub response_bytes: Option<u64>,
    /// How many progress notifications came for it.
    pub progress: u64,
    /// Its cancellation, where one was sent.
    pub cancel: Option<Cancellation>,
}

/// A `notifications/cancelled`.
#[derive(Clone, Debug, PartialEq)]
pub struct Cancellation {
    /// When it was sent.
    pub at: Timestamp,
    /// The reason that it gives.
    pub reason: Option<String>,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// With a result.
    Answered,
    /// With a JSON-RPC error.
    Failed,
    /// With a cancellation.
    Cancelled,
    /// The requester stopped waiting and did not say so.
    Abandoned,
    /// The connection ended first.
    TornDown,
    /// The log ended first.
    Pending,
    /// A gap covers the time in which it could have ended.
    Unknown,
}

/// A broken rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// When this was concluded.
    pub at: Timestamp,
    /// Its number in this log: 1, 2, ...
    pub number: u32,
    /// The rule's name, as `audit-log.md` has it.
    pub rule: &'static str,
    /// How bad.
    pub severity: Severity,
    /// How sure.
    pub confidence: Confidence,
    /// Whose fault.
    pub side: Culprit,
    /// Which connection.
    pub conn: Option<ConnId>,
    /// The request it is about.
    pub id: Option<Id>,
    /// Its method.
    pub method: Option<String>,
    /// The tool, prompt or resource it names.
    pub name: Option<String>,
    /// One English sentence.
    pub message: String,
    /// What speaks for it, in order of time.
    pub evidence: Vec<Evidence>,
    /// The revision and clause that it breaks, where one does.
    pub spec: Option<String>,
    /// The earlier finding that this one takes the place of.
    pub supersedes: Option<u32>,
}

/// Something that speaks for a finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// What kind: `retry`, `late-answer`, `key-esc`, ...
    pub kind: &'static str,
    /// When.
    pub at: Timestamp,
    /// In words.
    pub detail: String,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Worth mending.
    Warning,
    /// Wrong.
    Error,
}

/// How sure a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confidence {
    /// It looks like it.
    Possible,
    /// It is hard to explain otherwise.
    Probable,
    /// It is shown.
    Confirmed,
}

/// Whose fault a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Culprit {
    /// The MCP host (client).
    Host,
    /// The MCP server.
    Server,
    /// Nobody's: the observation itself falls short.
    Observer,
}

/// What the whole log amounts to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// When it was drawn up.
    pub at: Timestamp,
    /// Calls by outcome.
    pub calls: BTreeMap<Outcome, u64>,
    /// Findings by rule and severity; superseded ones do not count.
    pub findings: BTreeMap<(&'static str, Severity), u64>,
    /// Messages seen.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Gaps seen.
    pub gaps: u64,
    /// Whether nothing of the scope went by unseen.
    pub complete: bool,
    /// The capture's counters, where the backend has any.
    pub loss: Option<Loss>,
}
