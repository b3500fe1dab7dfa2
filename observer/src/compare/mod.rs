//! What changed from one run to another: which rules are broken now for which tools, and were not,
//! or the other way round.
//!
//! A [`Tally`] sees what comes out of a pipeline; [`compare`] lays two beside each other. Pure; must
//! not change a verdict, and says nothing of chance: a tool that was called twice was called twice.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use crate::pipeline::Output;
use crate::session::Side;
use crate::verdict::{self, CallRecord, Finding, Outcome, Severity, Summary};
use crate::wording::{Parties, observed};

/// Names are cut to this many characters.
const LIMIT: usize = 200;

/// What requests ask for: a method, and the tool, prompt or resource that it names.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// The method; `None` where a finding is about no request.
    pub method: Option<String>,
    /// What it names.
    pub name: Option<String>,
}

impl Target {
    fn new(method: Option<&str>, name: Option<&str>) -> Self {
        let cut = |text: &str| observed(text, LIMIT);
        Self {
            method: method.map(cut),
            name: name.map(cut),
        }
    }

    /// `tools/call slow`.
    pub fn title(&self) -> String {
        match (&self.method, &self.name) {
            (Some(method), Some(name)) => format!("{method} {name}"),
            (Some(one), None) | (None, Some(one)) => one.clone(),
            (None, None) => "the connection".into(),
        }
    }
}

/// What a run amounts to.
#[derive(Debug, Default)]
pub struct Tally {
    parties: Parties,
    calls: BTreeMap<Target, u64>,
    outcomes: BTreeMap<Outcome, u64>,
    /// The findings that stand, by number.
    standing: BTreeMap<u32, (&'static str, Target, Severity)>,
    messages: u64,
    complete: bool,
}

impl Tally {
    /// Takes what came out of the pipeline.
    pub fn handle_output(&mut self, output: &Output) {
        match output {
            Output::Observed(observed) => self.parties.handle_event(&observed.event),
            Output::Derived(verdict::Output::Call(call)) => self.handle_call(call),
            Output::Derived(verdict::Output::Finding(finding)) => self.handle_finding(finding),
            Output::Derived(verdict::Output::Summary(summary)) => self.handle_summary(summary),
            Output::GiveUp(_) | Output::Forget(_) => {}
        }
    }

    /// The hosts, by the names that they give themselves.
    pub fn hosts(&self) -> BTreeSet<String> {
        self.parties
            .iter()
            .map(|(_, sides)| sides.host.title())
            .collect()
    }

    /// The hosts' calls, by outcome.
    pub const fn outcomes(&self) -> &BTreeMap<Outcome, u64> {
        &self.outcomes
    }

    /// How many messages were seen.
    pub const fn messages(&self) -> u64 {
        self.messages
    }

    /// Whether nothing went by unseen.
    pub const fn is_complete(&self) -> bool {
        self.complete
    }

    fn handle_call(&mut self, call: &CallRecord) {
        if call.from == Side::Client {
            let target = Target::new(Some(&call.method), call.name.as_deref());
            *self.calls.entry(target).or_default() += 1;
            *self.outcomes.entry(call.outcome).or_default() += 1;
        }
    }

    fn handle_finding(&mut self, finding: &Finding) {
        if let Some(earlier) = finding.supersedes {
            self.standing.remove(&earlier);
        }
        let target = Target::new(finding.method.as_deref(), finding.name.as_deref());
        self.standing
            .insert(finding.number, (finding.rule, target, finding.severity));
    }

    fn handle_summary(&mut self, summary: &Summary) {
        self.messages = summary.messages;
        self.complete = summary.complete;
    }

    /// How often each rule was broken for each target, and how bad that was at worst.
    fn broken(&self) -> BTreeMap<(&'static str, &Target), (u64, Severity)> {
        let mut broken = BTreeMap::new();
        for (rule, target, severity) in self.standing.values() {
            let entry = broken.entry((*rule, target)).or_insert((0, *severity));
            entry.0 += 1;
            entry.1 = entry.1.max(*severity);
        }
        broken
    }

    fn count(&self, target: &Target, findings: u64) -> Count {
        Count {
            findings,
            calls: self.calls.get(target).copied().unwrap_or(0),
        }
    }
}

/// How often a rule was broken, of how many calls. Findings about no call have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// Findings that stand.
    pub findings: u64,
    /// Calls.
    pub calls: u64,
}

impl Count {
    /// By the share of the calls; where there are none, by the number.
    fn compare(self, other: Self) -> Ordering {
        match (self.calls, other.calls) {
            (0, _) | (_, 0) => self.findings.cmp(&other.findings),
            (own, others) => {
                let product = |findings, calls| u128::from(findings) * u128::from(calls);
                product(self.findings, others).cmp(&product(other.findings, own))
            }
        }
    }
}

/// How it changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Turn {
    /// It is broken, and was not.
    Started,
    /// A larger share of the calls breaks it.
    More,
    /// It is as it was.
    Same,
    /// A smaller share of the calls breaks it.
    Less,
    /// It is broken no more.
    Stopped,
    /// What it was broken for is not called any more.
    Gone,
}

impl Turn {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::More => "more",
            Self::Same => "same",
            Self::Less => "less",
            Self::Stopped => "stopped",
            Self::Gone => "gone",
        }
    }
}

/// A rule and a target, in both runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// How it changed.
    pub turn: Turn,
    /// The rule.
    pub rule: &'static str,
    /// How bad it is at worst.
    pub severity: Severity,
    /// What was asked for.
    pub target: Target,
    /// The earlier run.
    pub old: Count,
    /// The later run.
    pub new: Count,
}

impl Change {
    /// Whether the later run is worse: what is only worth knowing does not count.
    pub fn is_worse(&self) -> bool {
        matches!(self.turn, Turn::Started | Turn::More) && self.severity >= Severity::Warning
    }
}

/// Every rule that is broken in one of the two, by what became of it.
pub fn compare(old: &Tally, new: &Tally) -> Vec<Change> {
    let (before, after) = (old.broken(), new.broken());
    let keys: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let mut changes: Vec<Change> = keys
        .into_iter()
        .map(|key| {
            let (rule, target) = *key;
            let (one, other) = (before.get(key), after.get(key));
            let severity = [one, other]
                .into_iter()
                .flatten()
                .map(|(_, severity)| *severity);
            let count = |tally: &Tally, found: Option<&(u64, Severity)>| {
                tally.count(target, found.map_or(0, |(findings, _)| *findings))
            };
            let (old, new) = (count(old, one), count(new, other));
            Change {
                turn: turn(old, new),
                rule,
                severity: severity.max().unwrap_or(Severity::Info),
                target: target.clone(),
                old,
                new,
            }
        })
        .collect();
    changes.sort_by_key(|change| change.turn);
    changes
}

fn turn(old: Count, new: Count) -> Turn {
    match (old.findings, new.findings) {
        (0, _) => Turn::Started,
        (_, 0) if old.calls > 0 && new.calls == 0 => Turn::Gone,
        (_, 0) => Turn::Stopped,
        _ => match new.compare(old) {
            Ordering::Greater => Turn::More,
            Ordering::Equal => Turn::Same,
            Ordering::Less => Turn::Less,
        },
    }
}
