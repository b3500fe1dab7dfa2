//! What is kept of a log: enough for every format, and no more than fits.

use std::collections::BTreeMap;
use std::time::Duration;

use super::lines::Place;
use crate::capture::Timestamp;
use crate::policy::{Level, Ruling};
use crate::record::{Header, Word};
use crate::session::{ConnId, Side};
use crate::verdict::{CallRecord, Finding, Outcome, Summary};
use crate::wording::{Sides, observed};

/// Names are cut to this many characters.
const NAME: usize = 80;

/// Sentences are cut to this many characters.
const SENTENCE: usize = 400;

/// What a policy makes of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// Nothing is denied.
    Passed,
    /// Something is.
    Denied,
    /// Nothing is, but what should have been seen was not.
    #[default]
    NotShown,
}

impl Standing {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Denied => "denied",
            Self::NotShown => "not shown",
        }
    }
}

/// One log.
#[derive(Debug)]
pub(super) struct Log {
    /// What it is called.
    pub(super) name: String,
    pub(super) header: Header,
    pub(super) connections: BTreeMap<ConnId, Connection>,
    /// The calls of hosts, by method and name.
    pub(super) tools: BTreeMap<Tool, Tally>,
    /// By the time at which they were sent.
    pub(super) calls: Vec<Call>,
    /// How many more there are.
    pub(super) calls_left_out: u64,
    /// Those that stand, by number.
    pub(super) findings: BTreeMap<u32, Finding>,
    /// Where they stand in the file.
    pub(super) places: BTreeMap<u32, Place>,
    pub(super) findings_left_out: u64,
    /// What happened beside the calls, in order of time.
    pub(super) moments: Vec<Moment>,
    pub(super) summary: Summary,
    pub(super) ruling: Ruling,
    pub(super) standing: Standing,
    /// What of it could not be read, in sentences.
    pub(super) faults: Vec<String>,
}

/// Who spoke on a connection, and when.
#[derive(Clone, Debug, Default)]
pub(super) struct Connection {
    pub(super) sides: Sides,
    pub(super) opened: Option<Timestamp>,
    pub(super) closed: Option<Timestamp>,
    /// The host's calls on it.
    pub(super) calls: u64,
}

/// What a host can call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Tool {
    pub(super) method: String,
    pub(super) name: Option<String>,
}

impl Tool {
    /// `tools/call slow`.
    pub(super) fn title(&self) -> String {
        match &self.name {
            Some(name) => format!("{} {name}", self.method),
            None => self.method.clone(),
        }
    }
}

/// The calls of one tool.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) outcomes: BTreeMap<Outcome, u64>,
    /// Of those that ended.
    pub(super) ended: u32,
    pub(super) total: Duration,
    pub(super) longest: Duration,
    pub(super) wasted: Duration,
}

impl Tally {
    pub(super) fn add(&mut self, call: &CallRecord) {
        *self.outcomes.entry(call.outcome).or_insert(0) += 1;
        if let Some(ended) = call.ended {
            let took = ended.since(call.sent);
            self.ended = self.ended.saturating_add(1);
            self.total = self.total.saturating_add(took);
            self.longest = self.longest.max(took);
        }
        self.wasted = self.wasted.saturating_add(call.wasted.unwrap_or_default());
    }

    pub(super) fn calls(&self) -> u64 {
        self.outcomes.values().sum()
    }

    pub(super) fn mean(&self) -> Option<Duration> {
        (self.ended > 0).then(|| self.total / self.ended)
    }
}

/// One call, its texts cut and harmless.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) conn: ConnId,
    pub(super) from: Side,
    pub(super) id: String,
    pub(super) tool: Tool,
    pub(super) sent: Timestamp,
    /// When it was over or, while it is pending, when the log was.
    pub(super) until: Timestamp,
    /// Until when the one who sent it waited: an abandoned call may be answered later.
    pub(super) waited: Timestamp,
    pub(super) ended: Option<Timestamp>,
    pub(super) outcome: Outcome,
    pub(super) wasted: Option<Duration>,
    pub(super) request_bytes: u64,
    pub(super) response_bytes: Option<u64>,
    pub(super) progress: u64,
    pub(super) cancelled: Option<Timestamp>,
    /// The reason that the cancellation gives.
    pub(super) reason: Option<String>,
}

impl Call {
    pub(super) fn new(call: &CallRecord) -> Self {
        let cancel = call.cancel.as_ref();
        let until = call.ended.unwrap_or(call.at);
        Self {
            conn: call.conn,
            from: call.from,
            id: observed(&call.id.to_string(), NAME),
            tool: tool(call),
            sent: call.sent,
            until,
            waited: (until - call.wasted.unwrap_or_default()).max(call.sent),
            ended: call.ended,
            outcome: call.outcome,
            wasted: call.wasted,
            request_bytes: call.request_bytes,
            response_bytes: call.response_bytes,
            progress: call.progress,
            cancelled: cancel.map(|cancel| cancel.at),
            reason: cancel
                .and_then(|cancel| cancel.reason.as_deref())
                .map(|reason| observed(reason, SENTENCE)),
        }
    }

    /// `tools/call slow #2`.
    pub(super) fn title(&self) -> String {
        format!("{} #{}", self.tool.title(), self.id)
    }

    /// From when it was sent until it was over.
    pub(super) fn took(&self) -> Option<Duration> {
        self.ended.map(|ended| ended.since(self.sent))
    }
}

pub(super) fn tool(call: &CallRecord) -> Tool {
    Tool {
        method: observed(&call.method, NAME),
        name: call.name.as_deref().map(|name| observed(name, NAME)),
    }
}

/// A finding whose texts are cut and harmless.
pub(super) fn harmless(finding: &Finding) -> Finding {
    let mut finding = finding.clone();
    finding.method = finding.method.map(|method| observed(&method, NAME));
    finding.name = finding.name.map(|name| observed(&name, NAME));
    finding.message = observed(&finding.message, SENTENCE);
    finding.spec = finding.spec.map(|spec| observed(&spec, SENTENCE));
    for evidence in &mut finding.evidence {
        evidence.detail = observed(&evidence.detail, SENTENCE);
    }
    finding
}

/// `abandoned-call #2 (confirmed)`.
pub(super) fn heading(finding: &Finding) -> String {
    let id = finding
        .id
        .as_ref()
        .map(|id| format!(" #{}", observed(&id.to_string(), NAME)));
    format!(
        "{}{} ({})",
        finding.rule,
        id.unwrap_or_default(),
        finding.confidence.word()
    )
}

/// Something that happened at a time.
#[derive(Clone, Debug)]
pub(super) struct Moment {
    pub(super) at: Timestamp,
    /// `interrupt` or `gap`.
    pub(super) kind: &'static str,
    /// In words.
    pub(super) text: String,
}

impl Log {
    /// What the policy makes of a finding.
    pub(super) fn level(&self, finding: u32) -> Level {
        let objections = &self.ruling.objections;
        objections
            .iter()
            .find(|objection| objection.finding == Some(finding))
            .map_or(Level::Allow, |objection| objection.level)
    }

    /// The findings, the worst first.
    pub(super) fn worst_first(&self) -> Vec<&Finding> {
        let mut findings: Vec<_> = self.findings.values().collect();
        findings.sort_by_key(|finding| std::cmp::Reverse((finding.severity, finding.confidence)));
        findings
    }

    pub(super) fn call_count(&self) -> u64 {
        self.summary.calls.values().sum()
    }

    /// `3: 1 answered, 2 abandoned`.
    pub(super) fn outcomes(&self) -> String {
        outcomes(&self.summary.calls)
    }

    /// How long it is.
    pub(super) fn length(&self) -> Duration {
        self.summary.at.since(Timestamp::ZERO)
    }

    /// `codex-mcp-client 0.171.0 -> files 2`.
    pub(super) fn sides(&self, conn: ConnId) -> Option<String> {
        let sides = &self.connections.get(&conn)?.sides;
        Some(format!(
            "{} -> {}",
            sides.host.title(),
            sides.server.title()
        ))
    }

    /// What was lost, in words.
    pub(super) fn evidence(&self) -> String {
        match (self.summary.complete, self.summary.gaps) {
            (true, _) => "complete".into(),
            (false, 1) => "incomplete, 1 gap".into(),
            (false, gaps) => format!("incomplete, {gaps} gaps"),
        }
    }
}

/// `3: 1 answered, 2 abandoned`.
pub(super) fn outcomes(by_outcome: &BTreeMap<Outcome, u64>) -> String {
    let words: Vec<_> = by_outcome
        .iter()
        .filter(|(_, number)| **number > 0)
        .map(|(outcome, number)| format!("{number} {}", outcome.word()))
        .collect();
    let calls: u64 = by_outcome.values().sum();
    match words.is_empty() {
        true => calls.to_string(),
        false => format!("{calls}: {}", words.join(", ")),
    }
}
