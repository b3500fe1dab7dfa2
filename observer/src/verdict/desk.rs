//! Where findings are written up: numbered, superseded, folded where there are too many.

use std::collections::{HashMap, VecDeque};

use super::about::About;
use super::call::{Call, Past, Seq};
use super::timers::Timers;
use super::{Confidence, Culprit, Evidence, Finding, Output, Revision, Severity};
use crate::capture::Timestamp;
use crate::jsonrpc::Id;
use crate::session::ConnId;

/// How many findings of one rule a connection may have before the rest is only counted.
const FOLD: u32 = 100;

/// The desk that all rules share.
#[derive(Debug, Default)]
pub(super) struct Desk {
    pub(super) now: Timestamp,
    /// The place in the list of the rule that has the word.
    pub(super) rule: usize,
    pub(super) outputs: VecDeque<Output>,
    /// Every finding's rule and severity, by number; `None` once it is superseded.
    written: Vec<Option<(&'static str, Severity)>>,
    /// The finding that stands about a call.
    standing: HashMap<(ConnId, Seq), u32>,
    folds: HashMap<(Option<ConnId>, &'static str), Fold>,
    wakes: Timers<(usize, u64)>,
}

#[derive(Debug, Default)]
struct Fold {
    written: u32,
    folded: u32,
    draft: Option<Box<Finding>>,
}

/// A finding that is being written.
#[derive(Debug)]
pub(super) struct Draft {
    about: &'static About,
    finding: Finding,
    revision: Option<Revision>,
    call: Option<(ConnId, Seq)>,
}

impl Draft {
    pub(super) fn new(about: &'static About, side: Culprit, message: String) -> Self {
        let finding = Finding {
            at: Timestamp::ZERO,
            number: 0,
            rule: about.name,
            severity: about.severity,
            confidence: Confidence::Confirmed,
            side,
            conn: None,
            id: None,
            method: None,
            name: None,
            message,
            evidence: Vec::new(),
            spec: None,
            supersedes: None,
        };
        Self {
            about,
            finding,
            revision: None,
            call: None,
        }
    }

    pub(super) fn call(mut self, call: &Call) -> Self {
        self.finding.id = Some(call.id.clone());
        self.finding.method = Some(call.method.to_string());
        self.finding.name = call.name.as_deref().map(str::to_owned);
        self.call = Some((call.conn, call.seq));
        self.conn(call.conn).revision(call.revision)
    }

    pub(super) fn past(self, past: &Past) -> Self {
        self.call(&past.call)
    }

    pub(super) fn conn(mut self, conn: ConnId) -> Self {
        self.finding.conn = Some(conn);
        self
    }

    pub(super) fn id(mut self, id: &Id) -> Self {
        self.finding.id = Some(id.clone());
        self
    }

    pub(super) fn revision(mut self, revision: Option<Revision>) -> Self {
        self.revision = revision.or(self.revision);
        self
    }

    pub(super) fn severity(mut self, severity: Severity) -> Self {
        self.finding.severity = severity;
        self
    }

    pub(super) fn confidence(mut self, confidence: Confidence) -> Self {
        self.finding.confidence = confidence;
        self
    }

    pub(super) fn evidence(mut self, kind: &'static str, at: Timestamp, detail: String) -> Self {
        self.finding.evidence.push(Evidence { kind, at, detail });
        self
    }

    pub(super) fn all_evidence(mut self, evidence: impl IntoIterator<Item = Evidence>) -> Self {
        self.finding.evidence.extend(evidence);
        self
    }

    pub(super) fn supersedes(mut self, number: Option<u32>) -> Self {
        self.finding.supersedes = number.or(self.finding.supersedes);
        self
    }
}

impl Desk {
    /// Writes a finding; `None` where the connection has too many of its kind already, so that it
    /// is only counted.
    pub(super) fn report(&mut self, draft: Draft) -> Option<u32> {
        let Draft {
            about,
            mut finding,
            revision,
            call,
        } = draft;
        finding.at = self.now;
        finding.evidence.sort_by_key(|evidence| evidence.at);
        finding.spec = revision.and_then(|revision| {
            Some(format!("{} {}", revision.as_str(), about.clause(revision)?))
        });
        let fold = self.folds.entry((finding.conn, about.name)).or_default();
        if fold.written >= FOLD && finding.supersedes.is_none() {
            fold.folded += 1;
            fold.draft = Some(Box::new(finding));
            return None;
        }
        fold.written += 1;
        let number = self.write(finding);
        if let Some(call) = call {
            self.standing.insert(call, number);
        }
        Some(number)
    }

    fn write(&mut self, mut finding: Finding) -> u32 {
        if let Some(number) = finding.supersedes
            && let Some(superseded) = self.written.get_mut(number as usize - 1)
        {
            *superseded = None;
        }
        self.written.push(Some((finding.rule, finding.severity)));
        let number = u32::try_from(self.written.len()).unwrap_or(u32::MAX);
        finding.number = number;
        self.outputs.push_back(Output::Finding(finding));
        number
    }

    /// The finding that stands about a call.
    pub(super) fn standing(&self, call: &Call) -> Option<u32> {
        self.standing.get(&(call.conn, call.seq)).copied()
    }

    /// Forgets what stands about a call: nothing will supersede it any more.
    pub(super) fn settle(&mut self, call: &Call) {
        self.standing.remove(&(call.conn, call.seq));
    }

    /// Writes one finding for all that were only counted on a connection, and forgets it.
    pub(super) fn unfold(&mut self, conn: Option<ConnId>) {
        let mut folded: Vec<Fold> = Vec::new();
        self.folds.retain(|(of, _), fold| {
            let goes = conn.is_none() || *of == conn;
            if goes {
                folded.push(std::mem::take(fold));
            }
            !goes
        });
        self.standing
            .retain(|(of, _), _| conn.is_some() && Some(*of) != conn);
        folded.sort_by(|one, other| {
            one.draft
                .as_ref()
                .map(|draft| draft.rule)
                .cmp(&other.draft.as_ref().map(|draft| draft.rule))
        });
        for Fold { folded, draft, .. } in folded {
            if let Some(mut finding) = draft {
                finding.at = self.now;
                if folded > 1 {
                    finding.message =
                        format!("{} (one of {folded} more of this kind)", finding.message);
                }
                self.write(*finding);
            }
        }
    }

    /// Asks for the rule that has the word to be called at `at`.
    pub(super) fn wake(&mut self, at: Timestamp, key: u64) {
        self.wakes.set(at, (self.rule, key));
    }

    pub(super) fn next_wake(&self) -> Option<Timestamp> {
        self.wakes.next()
    }

    pub(super) fn pop_wake(&mut self, now: Timestamp) -> Option<(Timestamp, (usize, u64))> {
        self.wakes.pop(now)
    }

    /// How many findings stand, by rule and severity.
    pub(super) fn tally(&self) -> std::collections::BTreeMap<(&'static str, Severity), u64> {
        let mut tally = std::collections::BTreeMap::new();
        for written in self.written.iter().flatten() {
            *tally.entry(*written).or_default() += 1;
        }
        tally
    }
}
