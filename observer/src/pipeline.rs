//! The pure layers in a row: a captured event goes in, what was observed and concluded comes out.
//!
//! Owns nothing but the order: session, then what is hidden, then verdict. No clock, no I/O: time comes in with each
//! event. A replay enters behind the session, with the events that a log kept, and gets the same
//! conclusions, record for record:
//!
//! - Times are cut to the log's microseconds before anybody sees them.
//! - The judge's timers run up to an event's time before it sees the event.
//! - Where a look at the clock has let timers run, and an event comes that is older, the log says
//!   so: a suspension of no length stands before the event.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::VecDeque;
use std::time::Duration;

use crate::capture::{Captured, StreamId, Timestamp};
use crate::redact::Redactor;
use crate::session::{self, Event, Observed, Session};
use crate::verdict::{self, Judge};

/// What comes out of a [`Pipeline`].
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// What happened.
    Observed(Observed),
    /// What was concluded.
    Derived(verdict::Output),
    /// For the backend: the stream is no MCP, its bytes are not wanted any more.
    GiveUp(StreamId),
    /// For the backend: the stream is over, what it keeps about it can go.
    Forget(StreamId),
}

impl Output {
    /// When it happened or was concluded; `None` for what is meant for the backend.
    pub fn at(&self) -> Option<Timestamp> {
        match self {
            Self::Observed(observed) => Some(observed.at),
            Self::Derived(verdict::Output::Call(call)) => Some(call.at),
            Self::Derived(verdict::Output::Finding(finding)) => Some(finding.at),
            Self::Derived(verdict::Output::Summary(summary)) => Some(summary.at),
            Self::GiveUp(_) | Self::Forget(_) => None,
        }
    }
}

/// The pure layers, from captured events to conclusions.
///
/// After each `handle_*` and after [`finish`](Self::finish), [`poll_output`](Self::poll_output)
/// must be called until it has nothing more.
#[derive(Debug)]
pub struct Pipeline {
    session: Session,
    judge: Judge,
    redactor: Option<Redactor>,
    outputs: VecDeque<Output>,
    /// The time of the latest event.
    seen: Timestamp,
    /// The time of the latest look at the clock, and of the latest that the log tells.
    looked: Timestamp,
    told: Timestamp,
}

impl Pipeline {
    /// A pipeline that has seen nothing yet.
    pub fn new(session: session::Settings, verdict: verdict::Settings) -> Self {
        Self {
            session: Session::new(session),
            judge: Judge::new(verdict),
            redactor: None,
            outputs: VecDeque::new(),
            seen: Timestamp::ZERO,
            looked: Timestamp::ZERO,
            told: Timestamp::ZERO,
        }
    }

    /// This pipeline, which lets nobody see what `redactor` hides.
    #[must_use]
    pub fn redacting(self, redactor: Option<Redactor>) -> Self {
        Self { redactor, ..self }
    }

    /// Takes what a backend saw.
    pub fn handle_event(&mut self, mut event: Captured) {
        event.at = whole_micros(event.at);
        self.run_session_before(event.at);
        self.session.handle_event(event);
        self.drain_session();
    }

    /// Takes what a log kept.
    pub fn handle_observed(&mut self, mut observed: Observed) {
        if let Some(redactor) = &self.redactor {
            observed = redactor.redact(observed);
        }
        if observed.event == LOOK {
            self.look(observed.at);
            self.tell_look();
            return;
        }
        let older = observed.at <= self.looked && self.seen <= self.looked;
        if older && self.told < self.looked {
            self.tell_look();
        }
        self.seen = self.seen.max(observed.at);
        self.run_judge_before(observed.at);
        self.judge.handle_event(&observed);
        self.outputs.push_back(Output::Observed(observed));
        self.drain_judge();
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called next, at the latest.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        [self.session.poll_timeout(), self.judge.poll_timeout()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Lets time pass.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        let now = whole_micros(now);
        self.run_session_before(now);
        self.session.handle_timeout(now);
        self.drain_session();
        self.look(now);
    }

    /// What follows will not be seen: the log breaks off here. The summary will say so.
    pub const fn note_cut(&mut self) {
        self.judge.note_cut();
    }

    /// Ends: what is still open is concluded, and the summary drawn up.
    pub fn finish(&mut self, now: Timestamp) {
        let now = whole_micros(now);
        self.run_session_before(now);
        self.session.finish(now);
        self.drain_session();
        self.run_judge_before(now);
        self.judge.finish(now);
        self.drain_judge();
    }

    /// What came out, in order.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Lets the judge see the clock.
    fn look(&mut self, now: Timestamp) {
        self.run_judge_before(now);
        self.judge.handle_timeout(now);
        self.drain_judge();
        self.looked = self.looked.max(now);
    }

    fn tell_look(&mut self) {
        self.told = self.looked;
        let look = Observed {
            at: self.looked,
            event: LOOK,
        };
        self.outputs.push_back(Output::Observed(look));
    }

    /// Runs the session's timers that are due before `at`, one after the other, so that each sees
    /// the time it waited for and not a later one.
    fn run_session_before(&mut self, at: Timestamp) {
        while let Some(due) = self.session.poll_timeout().filter(|&due| due < at) {
            self.session.handle_timeout(due);
            self.drain_session();
        }
    }

    /// As [`Self::run_session_before`], for the judge.
    fn run_judge_before(&mut self, at: Timestamp) {
        while let Some(due) = self.judge.poll_timeout().filter(|&due| due < at) {
            self.judge.handle_timeout(due);
            self.drain_judge();
        }
    }

    fn drain_session(&mut self) {
        while let Some(output) = self.session.poll_output() {
            match output {
                session::Output::Observed(observed) => self.handle_observed(observed),
                session::Output::GiveUp(stream) => self.outputs.push_back(Output::GiveUp(stream)),
                session::Output::Forget(stream) => self.outputs.push_back(Output::Forget(stream)),
            }
        }
    }

    fn drain_judge(&mut self) {
        while let Some(output) = self.judge.poll_output() {
            self.outputs.push_back(Output::Derived(output));
        }
    }
}

/// What a look at the clock is in the log.
const LOOK: Event = Event::Suspended { nanos: 0 };

/// The time as the log can keep it.
fn whole_micros(at: Timestamp) -> Timestamp {
    at - Duration::from_nanos(at.as_nanos() % 1_000)
}
