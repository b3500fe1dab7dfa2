//! All that the view knows of what was observed and concluded, in bounded memory.
//!
//! Takes the pipeline's outputs in, in order. The oldest texts leave first; where a log holds
//! them, their place in it is kept. When texts alone are not enough, the oldest frames and calls
//! leave altogether, and are counted.

use std::collections::{BTreeMap, HashMap};

use super::call::{Call, State};
use super::connection::{Connection, Processes};
use super::frame::{Body, Frame, LogPlace, Place};
use super::store::Store;
use crate::capture::{Loss, Timestamp};
use crate::jsonrpc::Id;
use crate::pipeline::Output;
use crate::session::{ConnId, Event, Side};
use crate::verdict::{self, CallRecord, Confidence, Finding, Outcome, Summary};

/// A finding, and whether it still stands.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) finding: Finding,
    pub(crate) superseded: bool,
    pub(crate) call: Option<u32>,
}

/// Counts over everything that came in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    pub(crate) gaps: u64,
    pub(crate) loss: Option<Loss>,
    /// Messages that the view left out because it could not keep up; the log has them.
    pub(crate) skipped: u64,
    /// Frames, and calls, that left memory.
    pub(crate) forgotten: (u64, u64),
    pub(crate) states: BTreeMap<State, u32>,
    pub(crate) standing: u32,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    pub(crate) connections: BTreeMap<ConnId, Connection>,
    pub(crate) processes: Processes,
    pub(crate) calls: Store<Call>,
    pub(crate) frames: Store<Frame>,
    pub(crate) findings: Vec<Found>,
    pub(crate) totals: Totals,
    pub(crate) summary: Option<Summary>,
    /// The time of the newest output.
    pub(crate) newest: Timestamp,
    /// Calls that have changed since [`Self::take_touched`].
    touched: Vec<u32>,
    /// Frames whose text was read back.
    restored: Vec<u32>,
    by_id: HashMap<(ConnId, Side, Id), u32>,
    pub(super) tokens: HashMap<(ConnId, Side, Id), u32>,
    limit: usize,
    used: usize,
    /// The first frame whose body is still in memory.
    first_body: u32,
}

impl Ledger {
    /// An empty one that keeps to about `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            connections: BTreeMap::new(),
            processes: Processes::default(),
            calls: Store::default(),
            frames: Store::default(),
            findings: Vec::new(),
            totals: Totals::default(),
            summary: None,
            newest: Timestamp::ZERO,
            touched: Vec::new(),
            restored: Vec::new(),
            by_id: HashMap::new(),
            tokens: HashMap::new(),
            limit,
            used: 0,
            first_body: 0,
        }
    }

    /// Takes what came out of the pipeline, and where a log holds it.
    pub(crate) fn handle_output(&mut self, output: Output, place: Option<LogPlace>) {
        if let Some(at) = output.at() {
            self.newest = self.newest.max(at);
        }
        match output {
            Output::Observed(observed) => self.observe(observed.at, observed.event, place),
            Output::Derived(verdict::Output::Call(record)) => self.conclude(&record),
            Output::Derived(verdict::Output::Finding(finding)) => self.find(finding),
            Output::Derived(verdict::Output::Summary(summary)) => {
                self.totals.loss = summary.loss.or(self.totals.loss);
                self.summary = Some(summary);
            }
            Output::GiveUp(_) | Output::Forget(_) => {}
        }
        self.keep_to_limit();
    }

    /// The calls that have changed since this was last asked.
    pub(crate) fn take_touched(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.touched)
    }

    /// Whether nothing of the scope went by unseen, as far as is known.
    pub(crate) fn is_complete(&self) -> bool {
        self.totals.gaps == 0
            && self.totals.loss.is_none_or(|loss| loss.complete())
            && self.summary.as_ref().is_none_or(|summary| summary.complete)
    }

    pub(crate) fn count(&self, outcome: Outcome) -> u32 {
        self.totals
            .states
            .get(&State::Over(outcome))
            .copied()
            .unwrap_or(0)
    }

    pub(crate) fn running(&self) -> u32 {
        self.totals
            .states
            .get(&State::Running)
            .copied()
            .unwrap_or(0)
    }

    /// Calls that may have been abandoned by the findings that stand, and that ended otherwise, or
    /// have not ended, as far as is shown.
    pub(crate) fn suspected(&self) -> u64 {
        let suspects = self.findings.iter().filter(|found| {
            let call = found.call.and_then(|call| self.calls.get(call));
            !found.superseded
                && found.finding.rule == "abandoned-call"
                && call.is_some_and(|call| call.state() != State::Over(Outcome::Abandoned))
        });
        suspects.count() as u64
    }

    /// Whether it is shown beyond doubt that a call was abandoned.
    pub(crate) fn is_proven(&self) -> bool {
        self.findings.iter().any(|found| {
            !found.superseded
                && found.finding.rule == "abandoned-call"
                && found.finding.confidence == Confidence::Confirmed
        })
    }

    /// Whether an entry concerns this connection.
    pub(crate) fn concerns(&self, frame: &Frame, conn: ConnId) -> bool {
        match frame.place {
            Place::Connection(of) => of == conn,
            Place::Process(pid) => self
                .connections
                .get(&conn)
                .is_some_and(|conn| conn.has(pid)),
            Place::Everything => true,
        }
    }

    /// The connection that something belongs to, which is made known where it is not.
    pub(super) fn connection(&mut self, conn: ConnId, at: Timestamp) -> &mut Connection {
        self.connections
            .entry(conn)
            .or_insert_with(|| Connection::new(conn, at))
    }

    /// The newest call of that id in that direction.
    pub(super) fn call_of(&self, conn: ConnId, from: Side, id: &Id) -> Option<u32> {
        let known = |id: Id| self.by_id.get(&(conn, from, id)).copied();
        known(id.clone()).or_else(|| match id {
            // "2" answers 2 in several SDKs.
            Id::Number(text) => known(Id::String(text.clone())),
            Id::String(text) => known(Id::Number(text.clone())),
            Id::Null => None,
        })
    }

    pub(super) fn add_call(&mut self, call: Call) -> u32 {
        let key = (call.conn, call.from, call.id.clone());
        let (conn, sent, state) = (call.conn, call.sent, call.state());
        let (open, abandoned) = (call.is_open(), state == State::Over(Outcome::Abandoned));
        self.used += call.weight();
        let number = self.calls.push(call);
        self.by_id.insert(key, number);
        *self.totals.states.entry(state).or_default() += 1;
        let connection = self.connection(conn, sent);
        connection.calls += 1;
        connection.open_calls += u32::from(open);
        connection.abandoned += u32::from(abandoned);
        number
    }

    /// Changes a call, and all the counts that follow from it.
    pub(super) fn change(&mut self, number: u32, change: impl FnOnce(&mut Call)) {
        let Some(call) = self.calls.get_mut(number) else {
            return;
        };
        let before = (call.is_open(), call.state());
        change(call);
        let after = (call.is_open(), call.state());
        let conn = call.conn;
        self.touched.push(number);
        if before == after {
            return;
        }
        if let Some(count) = self.totals.states.get_mut(&before.1) {
            *count = count.saturating_sub(1);
        }
        *self.totals.states.entry(after.1).or_default() += 1;
        if let Some(connection) = self.connections.get_mut(&conn) {
            let gave_up = |state| u32::from(state == State::Over(Outcome::Abandoned));
            let moved = |count: u32, plus: u32, minus: u32| (count + plus).saturating_sub(minus);
            connection.open_calls = moved(
                connection.open_calls,
                u32::from(after.0),
                u32::from(before.0),
            );
            connection.abandoned = moved(connection.abandoned, gave_up(after.1), gave_up(before.1));
        }
    }

    pub(super) fn add_frame(&mut self, frame: Frame) -> u32 {
        self.used += frame.weight() + frame.body.weight();
        self.frames.push(frame)
    }

    /// Puts the text of a frame that was read back from a log into its place.
    pub(crate) fn restore(&mut self, number: u32, event: Event) {
        if let Some(frame) = self.frames.get_mut(number) {
            frame.body = Body::Here(Box::new(event));
            self.restored.push(number);
        }
    }

    /// Lets go of the texts that were read back: nobody looks at them any more.
    pub(crate) fn release(&mut self) {
        for number in std::mem::take(&mut self.restored) {
            if let Some(frame) = self.frames.get_mut(number)
                && let Some(place) = frame.origin
            {
                frame.body = Body::InLog(place);
            }
        }
    }

    fn conclude(&mut self, record: &CallRecord) {
        // Not by the time of sending: the judge takes a message that comes late for a newer one.
        let newest = self.call_of(record.conn, record.from, &record.id);
        let open = |number: &u32| {
            self.calls.get(*number).is_some_and(|call| {
                (call.conn, call.from) == (record.conn, record.from)
                    && call.outcome.is_none()
                    && call.id.loosely_equals(&record.id)
            })
        };
        let number = newest.filter(open).or_else(|| {
            let range = self.calls.range();
            range.rev().take(REACH).find(open)
        });
        // Its request may have been skipped.
        let number = number.unwrap_or_else(|| {
            let (conn, from, id) = (record.conn, record.from, record.id.clone());
            self.add_call(Call::new(conn, from, id, &record.method, record.sent))
        });
        let token = self
            .calls
            .get_mut(number)
            .and_then(|call| call.token.take());
        if let Some(token) = token {
            self.tokens.remove(&(record.conn, record.from, token));
        }
        self.change(number, |call| call.conclude(record));
    }

    fn find(&mut self, finding: Finding) {
        let place = u32::try_from(self.findings.len()).unwrap_or(u32::MAX);
        let replaced = finding.supersedes.and_then(|number| {
            self.findings
                .iter_mut()
                .rev()
                .find(|found| found.finding.number == number)
        });
        let before = replaced.map(|found| {
            found.superseded = true;
            found.call
        });
        let call = before.flatten().or_else(|| self.call_meant(&finding));
        if before.is_none() {
            self.totals.standing += 1;
            if let Some(connection) = finding
                .conn
                .and_then(|conn| self.connections.get_mut(&conn))
            {
                connection.findings += 1;
            }
        }
        if let Some(number) = call {
            let standing = (finding.rule == "abandoned-call").then(|| {
                (
                    finding.confidence,
                    finding.evidence.iter().map(|evidence| evidence.at).min(),
                )
            });
            let replaced = finding.supersedes;
            let stale: Vec<u32> = (0..place)
                .rev()
                .take(REACH)
                .filter(|&at| Some(self.findings[at as usize].finding.number) == replaced)
                .collect();
            self.change(number, |call| {
                call.findings.retain(|at| !stale.contains(at));
                call.findings.push(place);
                if let Some((confidence, given_up)) = standing {
                    call.abandoned = Some(confidence);
                    call.given_up = given_up;
                }
            });
        }
        self.findings.push(Found {
            finding,
            superseded: false,
            call,
        });
    }

    /// The call that a finding is about.
    fn call_meant(&self, finding: &Finding) -> Option<u32> {
        let (conn, id) = (finding.conn?, finding.id.as_ref()?);
        let fits = |number: &u32| {
            let call = self.calls.get(*number);
            call.is_some_and(|call| {
                finding
                    .method
                    .as_deref()
                    .is_none_or(|of| of == &*call.method)
            })
        };
        [Side::Client, Side::Server]
            .into_iter()
            .filter_map(|from| self.call_of(conn, from, id))
            .find(fits)
    }

    fn keep_to_limit(&mut self) {
        while self.used > self.limit && self.first_body < self.frames.range().end {
            // Bodies first, but never the newest: somebody may be looking at it.
            let newest = self.frames.range().end - 1;
            if self.first_body >= newest {
                break;
            }
            let number = self.first_body.max(self.frames.range().start);
            self.first_body = number + 1;
            if let Some(frame) = self.frames.get_mut(number) {
                self.used = self.used.saturating_sub(frame.body.weight());
                frame.body = match frame.origin {
                    Some(place) => Body::InLog(place),
                    None => Body::Gone,
                };
            }
        }
        while self.used > self.limit && self.frames.len() + self.calls.len() > KEPT {
            let older_call = self.calls.first().map(|call| call.sent)
                < self.frames.first().map(|frame| frame.at);
            if older_call || self.frames.len() == 0 {
                self.forget_call();
            } else if let Some(frame) = self.frames.pop_first() {
                self.used = self
                    .used
                    .saturating_sub(frame.weight() + frame.body.weight());
                self.totals.forgotten.0 += 1;
            }
        }
    }

    fn forget_call(&mut self) {
        let number = self.calls.range().start;
        if let Some(call) = self.calls.pop_first() {
            self.used = self.used.saturating_sub(call.weight());
            self.totals.forgotten.1 += 1;
            let key = (call.conn, call.from, call.id);
            if self.by_id.get(&key) == Some(&number) {
                self.by_id.remove(&key);
            }
        }
    }
}

/// So far back a call or a finding is looked for where its number does not lead to it.
const REACH: usize = 1_000;

/// So many entries stay, whatever the limit.
const KEPT: usize = 1_000;
