//! A request as the view knows it: running, or over, with what was found about it.

use std::time::Duration;

use crate::capture::Timestamp;
use crate::jsonrpc::Id;
use crate::record::Word;
use crate::session::{ConnId, Side};
use crate::verdict::{CallRecord, Cancellation, Confidence, Outcome};

/// A request, and all that is known of its life.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) conn: ConnId,
    pub(crate) from: Side,
    pub(crate) id: Id,
    pub(crate) method: Box<str>,
    pub(crate) name: Option<Box<str>>,
    pub(crate) sent: Timestamp,
    pub(crate) ended: Option<Timestamp>,
    /// How it ended; `None` while nobody has concluded anything.
    pub(crate) outcome: Option<Outcome>,
    pub(crate) wasted: Option<Duration>,
    pub(crate) request_bytes: u64,
    pub(crate) response_bytes: Option<u64>,
    pub(crate) progress: u64,
    pub(crate) cancel: Option<Cancellation>,
    /// How sure it is that the host gave it up, by the finding that stands.
    pub(crate) abandoned: Option<Confidence>,
    /// When the host gave it up, by the first evidence of that finding.
    pub(crate) given_up: Option<Timestamp>,
    /// Frames in the ledger: the request, the answer, the cancellation.
    pub(crate) request: Option<u32>,
    pub(crate) answer: Option<u32>,
    pub(crate) cancellation: Option<u32>,
    /// What its progress notifications carry, while it is open.
    pub(crate) token: Option<Id>,
    /// What it asks for, as a hash: an equal call has an equal one.
    pub(crate) print: Option<u64>,
    /// Places in the list of findings.
    pub(crate) findings: Vec<u32>,
}

/// What a reader is told about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    /// Neither answered nor given up, as far as is known.
    Running,
    /// It is over, or as good as over.
    Over(Outcome),
}

impl Call {
    pub(crate) fn new(conn: ConnId, from: Side, id: Id, method: &str, sent: Timestamp) -> Self {
        Self {
            conn,
            from,
            id,
            method: method.into(),
            name: None,
            sent,
            ended: None,
            outcome: None,
            wasted: None,
            request_bytes: 0,
            response_bytes: None,
            progress: 0,
            cancel: None,
            abandoned: None,
            given_up: None,
            request: None,
            answer: None,
            cancellation: None,
            token: None,
            print: None,
            findings: Vec::new(),
        }
    }

    /// Takes over what the judge concluded.
    pub(crate) fn conclude(&mut self, record: &CallRecord) {
        self.name = record.name.as_deref().map(Into::into);
        self.sent = record.sent;
        self.ended = record.ended;
        self.outcome = Some(record.outcome);
        self.wasted = record.wasted;
        self.request_bytes = record.request_bytes;
        self.response_bytes = record.response_bytes;
        self.progress = record.progress;
        self.cancel.clone_from(&record.cancel);
    }

    pub(crate) fn state(&self) -> State {
        match self.outcome {
            Some(outcome) => State::Over(outcome),
            // The judge waits with its record for a late answer, and has said what it thinks.
            None if self.abandoned > Some(Confidence::Possible) => State::Over(Outcome::Abandoned),
            None if self.cancel.is_some() => State::Over(Outcome::Cancelled),
            None => State::Running,
        }
    }

    /// Whether it is thought to be abandoned, and not shown to be.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.state() == State::Over(Outcome::Abandoned)
            && self
                .abandoned
                .is_some_and(|sure| sure < Confidence::Confirmed)
    }

    /// Whether time still counts for it.
    pub(crate) fn is_open(&self) -> bool {
        self.outcome.is_none() && self.answer.is_none() && self.cancel.is_none()
    }

    /// How long it took, or has taken so far.
    pub(crate) fn took(&self, now: Timestamp) -> Duration {
        self.end(now).since(self.sent)
    }

    /// When it ended, or `now`.
    pub(crate) fn end(&self, now: Timestamp) -> Timestamp {
        let cancelled = self.cancel.as_ref().map(|cancel| cancel.at);
        self.ended.or(cancelled).unwrap_or(now).max(self.sent)
    }

    /// The time in which the server worked for nobody: from when the host gave up.
    pub(crate) fn waste(&self, now: Timestamp) -> Option<(Timestamp, Timestamp)> {
        let given_up = self.given_up?;
        let until = match (self.wasted, self.outcome) {
            (Some(wasted), _) => given_up + wasted,
            (None, None) => self.end(now),
            (None, Some(_)) => return None,
        };
        (until > given_up).then_some((given_up, until))
    }

    /// Roughly how much memory it takes.
    pub(crate) fn weight(&self) -> usize {
        size_of::<Self>() + self.method.len() + self.name.as_ref().map_or(0, |name| name.len()) + 32
    }
}

impl State {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Over(outcome) => outcome.word(),
        }
    }
}
