//! From what the pipeline gives to what a report shows.

use std::collections::BTreeMap;

use super::lines::Lines;
use super::model::{self, Call, Connection, Log, Moment, Standing};
use crate::capture::Timestamp;
use crate::pipeline::Output;
use crate::policy::Ruling;
use crate::record::{Header, Word};
use crate::session::{ConnId, ConnectionChange, Event, Observed, Side};
use crate::verdict::{self, CallRecord, Finding, Outcome, Summary};
use crate::wording::{Parties, observed, size};

/// So many calls are kept that ended as they should, and as many of the others.
const CALLS: usize = 10_000;
/// So many findings are kept.
const FINDINGS: usize = 10_000;
/// So many interrupts and gaps are kept.
const MOMENTS: usize = 2_000;
/// So many connections are kept, and tools of a log.
const NAMED: usize = 2_000;

/// A file's name is cut to this many characters.
const FILE: usize = 400;

/// What logs amount to. The limits above hold for all its logs together.
#[derive(Debug, Default)]
pub struct Report {
    pub(super) logs: Vec<Log>,
    open: Option<Open>,
    kept: Kept,
}

/// How much is kept.
#[derive(Debug, Default)]
struct Kept {
    answered: usize,
    others: usize,
    findings: usize,
    moments: usize,
    connections: usize,
}

/// A log that is being read.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) log: Log,
    pub(super) parties: Parties,
    lines: Lines,
}

/// Where a log comes from.
#[derive(Clone, Debug)]
pub struct Source {
    /// What to call it: its path.
    pub name: String,
    /// Its header.
    pub header: Header,
}

impl Report {
    /// A report on nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a log. The one before must have ended.
    pub fn begin_log(&mut self, Source { name, header }: Source) {
        let log = Log {
            name: observed(&name, FILE),
            header,
            connections: BTreeMap::new(),
            tools: BTreeMap::new(),
            calls: Vec::new(),
            calls_left_out: 0,
            findings: BTreeMap::new(),
            places: BTreeMap::new(),
            findings_left_out: 0,
            moments: Vec::new(),
            summary: Summary::default(),
            ruling: Ruling::default(),
            standing: Standing::default(),
            faults: Vec::new(),
        };
        self.open = Some(Open {
            log,
            parties: Parties::default(),
            lines: Lines::default(),
        });
    }

    /// Says in which line of the log's file, counted from 1, what comes next has its cause; `None`
    /// where that is in another file.
    pub fn begin_line(&mut self, line: Option<u64>) {
        if let Some(open) = &mut self.open {
            open.lines.begin(line);
        }
    }

    /// Takes what came out of the pipeline.
    pub fn handle_output(&mut self, output: &Output) {
        let Some(open) = &mut self.open else { return };
        match output {
            Output::Observed(observed) => open.observed(observed, &mut self.kept),
            Output::Derived(verdict::Output::Call(call)) => open.call(call, &mut self.kept),
            Output::Derived(verdict::Output::Finding(finding)) => {
                open.finding(finding, &mut self.kept);
            }
            Output::Derived(verdict::Output::Summary(summary)) => {
                open.log.summary = summary.clone();
            }
            Output::GiveUp(_) | Output::Forget(_) => {}
        }
    }

    /// Ends a log: what a policy makes of it, and what of it could not be read.
    pub fn end_log(&mut self, ruling: Ruling, standing: Standing, faults: &[String]) {
        let Some(Open {
            mut log, parties, ..
        }) = self.open.take()
        else {
            return;
        };
        for (conn, sides) in parties.iter() {
            if let Some(connection) = log.connections.get_mut(&conn) {
                connection.sides = sides.clone();
            }
        }
        log.calls.sort_by_key(|call| call.sent);
        log.ruling = ruling;
        log.standing = standing;
        log.faults = faults.iter().map(|fault| observed(fault, FILE)).collect();
        self.logs.push(log);
    }

    /// The log that is being read.
    pub(super) const fn open(&self) -> Option<&Open> {
        self.open.as_ref()
    }

    /// What the policy makes of all logs.
    pub(super) fn standing(&self) -> Standing {
        let has = |standing| self.logs.iter().any(|log| log.standing == standing);
        if has(Standing::Denied) {
            Standing::Denied
        } else if has(Standing::NotShown) || self.logs.is_empty() {
            Standing::NotShown
        } else {
            Standing::Passed
        }
    }
}

impl Open {
    fn observed(&mut self, Observed { at, event }: &Observed, kept: &mut Kept) {
        self.parties.handle_event(event);
        self.lines.note(*at);
        match event {
            Event::Connection { conn, change } => {
                let Some(connection) = self.connection(*conn, kept) else {
                    return;
                };
                match change {
                    ConnectionChange::Open { .. } => _ = connection.opened.get_or_insert(*at),
                    ConnectionChange::Close => connection.closed = Some(*at),
                }
            }
            Event::Message { conn, .. } => {
                if let Some(connection) = self.connection(*conn, kept) {
                    connection.opened.get_or_insert(*at);
                }
            }
            Event::Interrupt { pid, kind, .. } => {
                let text = format!("{} to {}", kind.word(), self.parties.process(*pid));
                self.moment(*at, "interrupt", text, kept);
            }
            Event::Gap {
                conn,
                from,
                bytes,
                reason,
                ..
            } => {
                let missing = bytes.map_or("bytes".into(), size);
                let (from, reason) = (from.word(), reason.word());
                let text = format!("{missing} from the {from} of {conn} unseen: {reason}");
                self.moment(*at, "gap", text, kept);
            }
            _ => {}
        }
    }

    fn connection(&mut self, conn: ConnId, kept: &mut Kept) -> Option<&mut Connection> {
        if !self.log.connections.contains_key(&conn) {
            if kept.connections >= NAMED {
                return None;
            }
            kept.connections += 1;
        }
        Some(self.log.connections.entry(conn).or_default())
    }

    fn moment(&mut self, at: Timestamp, kind: &'static str, text: String, kept: &mut Kept) {
        if kept.moments < MOMENTS {
            kept.moments += 1;
            self.log.moments.push(Moment { at, kind, text });
        }
    }

    fn call(&mut self, call: &CallRecord, kept: &mut Kept) {
        let log = &mut self.log;
        if call.from == Side::Client {
            let tool = model::tool(call);
            if log.tools.len() < NAMED || log.tools.contains_key(&tool) {
                log.tools.entry(tool).or_default().add(call);
            }
            if let Some(connection) = log.connections.get_mut(&call.conn) {
                connection.calls += 1;
            }
        }
        let kind = match call.outcome {
            Outcome::Answered => &mut kept.answered,
            _ => &mut kept.others,
        };
        if *kind < CALLS {
            *kind += 1;
            log.calls.push(Call::new(call));
        } else {
            log.calls_left_out += 1;
        }
    }

    fn finding(&mut self, finding: &Finding, kept: &mut Kept) {
        let findings = &mut self.log.findings;
        let replaces = finding.supersedes.is_some_and(|earlier| {
            self.log.places.remove(&earlier);
            findings.remove(&earlier).is_some()
        });
        if replaces {
            kept.findings -= 1;
        }
        if kept.findings < FINDINGS {
            kept.findings += 1;
            findings.insert(finding.number, model::harmless(finding));
            let place = self.lines.place(finding);
            self.log.places.insert(finding.number, place);
        } else if finding.supersedes.is_none() {
            self.log.findings_left_out += 1;
        }
    }
}
