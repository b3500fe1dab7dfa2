//! The derived records: what was concluded. A replay computes them anew.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::observed::only_connection;
use super::{Seal, Span};
use crate::capture::{Loss, Timestamp};
use crate::jsonrpc::Id;
use crate::session::{ConnId, Side};
use crate::verdict::{Confidence, Culprit, Outcome, Severity};

/// A request is over, or the log is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Call {
    /// When this was concluded.
    pub t: Timestamp,
    /// Which connection.
    #[serde(default = "only_connection")]
    pub conn: ConnId,
    /// Who sent the request.
    pub from: Side,
    /// Its id, its JSON type kept.
    pub id: Id,
    /// Its method.
    pub method: String,
    /// The tool, prompt or resource that it names.
    pub name: Option<String>,
    /// When it was sent.
    pub sent: Timestamp,
    /// When it ended; null while it is pending.
    pub ended: Option<Timestamp>,
    /// How it ended.
    pub outcome: Outcome,
    /// From `sent` to `ended`.
    pub duration: Option<Span>,
    /// How long the server worked on after the host had given up.
    pub wasted: Option<Span>,
    /// Size of the request on the wire.
    pub request_bytes: u64,
    /// Size of the response on the wire.
    pub response_bytes: Option<u64>,
    /// How many progress notifications came for it.
    pub progress: u64,
    /// Its cancellation, where one was sent.
    pub cancel: Option<Cancel>,
}

/// A `notifications/cancelled`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cancel {
    /// When it was sent.
    pub t: Timestamp,
    /// The reason that it gives.
    pub reason: Option<String>,
}

/// A rule is broken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// When this was concluded.
    pub t: Timestamp,
    /// Its number in this log: 1, 2, ...
    pub finding: u32,
    /// The rule.
    pub rule: Cow<'static, str>,
    /// How bad.
    pub severity: Severity,
    /// How sure.
    pub confidence: Confidence,
    /// Whose fault.
    pub side: Culprit,
    /// Which connection.
    pub conn: Option<ConnId>,
    /// The request that it is about.
    #[serde(default)]
    pub id: Option<Id>,
    /// Its method.
    pub method: Option<String>,
    /// The tool, prompt or resource that it names.
    pub name: Option<String>,
    /// One English sentence.
    pub message: String,
    /// What speaks for it, in order of time.
    pub evidence: Vec<Evidence>,
    /// The revision and clause that it breaks.
    pub spec: Option<String>,
    /// The earlier finding that this one takes the place of.
    pub supersedes: Option<u32>,
}

/// Something that speaks for a finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// What kind: `retry`, `late-answer`, `key-esc`, ...
    pub kind: Cow<'static, str>,
    /// When.
    pub t: Timestamp,
    /// In words.
    pub detail: String,
}

/// What the whole log amounts to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// When it was drawn up.
    pub t: Timestamp,
    /// Calls by outcome.
    pub calls: BTreeMap<Outcome, u64>,
    /// Findings by rule and severity; superseded ones do not count.
    pub findings: BTreeMap<Cow<'static, str>, BTreeMap<Severity, u64>>,
    /// Messages seen.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Gaps seen.
    pub gaps: u64,
    /// Whether nothing of the scope went by unseen.
    pub complete: bool,
    /// The kernel's counters, where the backend has any.
    pub loss: Option<Loss>,
    /// What the file held so far; the last field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<Seal>,
}
