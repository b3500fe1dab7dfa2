//! The requests of one side of a connection: those in flight, and the last of those that are over.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use super::call::{Call, Past, Seq};
use crate::capture::Timestamp;
use crate::jsonrpc::{Id, Outcome as Answered};

/// How many requests that are over are remembered on each side of each connection.
const REMEMBERED: usize = 1024;
/// Longer ids are not remembered: a peer may make them as long as it likes.
const LONG_ID: usize = 256;
/// How many answers and progress notifications without a request are held.
const HELD: usize = 1024;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Lane {
    calls: BTreeMap<Seq, Call>,
    by_id: HashMap<Id, Vec<Seq>>,
    by_token: HashMap<Id, Seq>,
    /// Those that belong to a request of the other side and have not outlived it.
    nested: BTreeSet<Seq>,
    past: VecDeque<Past>,
    first_past: u64,
    past_by_id: HashMap<Id, u64>,
    past_by_token: HashMap<Id, u64>,
    /// Something of this side went by unseen: an id that is not known may well have been sent.
    pub(super) hidden: bool,
    forgotten: Option<Forgotten>,
    /// What came for a request that was not seen yet.
    held: VecDeque<Held>,
    /// What is held waits for bytes that were read and not seen yet.
    pub(super) waits: bool,
}

/// What is still known of the ids that are not remembered.
#[derive(Debug)]
struct Forgotten {
    /// All of them were whole numbers from here ...
    from: i64,
    /// ... to here; empty (`from > to`) where some were not.
    to: i64,
    numbers: bool,
}

/// Something for a request that was not seen yet.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) at: Timestamp,
    pub(super) what: Early,
}

/// See [`Held`].
#[derive(Debug)]
pub(super) enum Early {
    /// An answer.
    Answer(Answer),
    /// Progress, by its token.
    Progress(Id),
}

/// A response, as far as it matters.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) id: Id,
    pub(super) at: Timestamp,
    pub(super) outcome: Answered,
    pub(super) bytes: u64,
    pub(super) end: Option<u64>,
    /// The result's text, as far as a verdict may need it.
    pub(super) result: Option<Box<str>>,
}

impl Lane {
    pub(super) fn insert(&mut self, call: Call) {
        self.by_id
            .entry(call.id.clone())
            .or_default()
            .push(call.seq);
        if let Some(token) = &call.token {
            self.by_token.insert(token.clone(), call.seq);
        }
        if call.within.is_some() && !call.left {
            self.nested.insert(call.seq);
        }
        self.calls.insert(call.seq, call);
    }

    pub(super) fn get(&self, seq: Seq) -> Option<&Call> {
        self.calls.get(&seq)
    }

    pub(super) fn get_mut(&mut self, seq: Seq) -> Option<&mut Call> {
        self.calls.get_mut(&seq)
    }

    /// The requests in flight, oldest first.
    pub(super) fn calls(&self) -> impl DoubleEndedIterator<Item = &Call> {
        self.calls.values()
    }

    pub(super) fn calls_mut(&mut self) -> impl Iterator<Item = &mut Call> {
        self.calls.values_mut()
    }

    /// The requests in flight that belong to one of the other side's, and have not outlived it.
    pub(super) fn nested(&self) -> impl Iterator<Item = &Call> {
        self.nested.iter().filter_map(|seq| self.calls.get(seq))
    }

    /// A request has outlived the one that it belongs to.
    pub(super) fn leave(&mut self, seq: Seq) {
        self.nested.remove(&seq);
        if let Some(call) = self.calls.get_mut(&seq) {
            call.left = true;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The oldest request in flight under an id.
    pub(super) fn by_id(&self, id: &Id) -> Option<Seq> {
        self.by_id.get(id)?.first().copied()
    }

    /// The request in flight that a lenient peer would take the id for.
    pub(super) fn by_loose_id(&self, id: &Id) -> Option<Seq> {
        let other = match id {
            Id::Number(text) => Id::String(text.clone()),
            Id::String(text) => Id::Number(text.clone()),
            Id::Null => return None,
        };
        self.by_id(&other)
    }

    pub(super) fn by_token(&self, token: &Id) -> Option<Seq> {
        self.by_token.get(token).copied()
    }

    pub(super) fn remove(&mut self, seq: Seq) -> Option<Call> {
        let call = self.calls.remove(&seq)?;
        self.nested.remove(&seq);
        if let Some(seqs) = self.by_id.get_mut(&call.id) {
            seqs.retain(|other| *other != seq);
            if seqs.is_empty() {
                self.by_id.remove(&call.id);
            }
        }
        if let Some(token) = &call.token
            && self.by_token.get(token) == Some(&seq)
        {
            self.by_token.remove(token);
        }
        Some(call)
    }

    /// Remembers a request that is over.
    pub(super) fn remember(&mut self, past: Past) {
        if past.call.weight() > LONG_ID {
            self.forget(&past.call.id);
            return;
        }
        let place = self.first_past + self.past.len() as u64;
        self.past_by_id.insert(past.call.id.clone(), place);
        if let Some(token) = &past.call.token {
            self.past_by_token.insert(token.clone(), place);
        }
        self.past.push_back(past);
        if self.past.len() > REMEMBERED {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some(past) = self.past.pop_front() else {
            return;
        };
        let place = self.first_past;
        self.first_past += 1;
        if self.past_by_id.get(&past.call.id) == Some(&place) {
            self.past_by_id.remove(&past.call.id);
        }
        if let Some(token) = &past.call.token
            && self.past_by_token.get(token) == Some(&place)
        {
            self.past_by_token.remove(token);
        }
        self.forget(&past.call.id);
    }

    fn forget(&mut self, id: &Id) {
        let forgotten = self.forgotten.get_or_insert(Forgotten {
            from: i64::MAX,
            to: i64::MIN,
            numbers: true,
        });
        match id.as_integer() {
            Some(number) => {
                forgotten.from = forgotten.from.min(number);
                forgotten.to = forgotten.to.max(number);
            }
            None => forgotten.numbers = false,
        }
    }

    /// The last request under an id that is over.
    pub(super) fn past(&self, id: &Id) -> Option<&Past> {
        self.at(*self.past_by_id.get(id)?)
    }

    /// The last request under a progress token that is over.
    pub(super) fn past_by_token(&self, token: &Id) -> Option<&Past> {
        self.at(*self.past_by_token.get(token)?)
    }

    fn at(&self, place: u64) -> Option<&Past> {
        self.past
            .get(usize::try_from(place.checked_sub(self.first_past)?).ok()?)
    }

    /// Forgets the requests that are over: their ids may be used anew.
    pub(super) fn forget_past(&mut self) {
        self.past.clear();
        self.past_by_id.clear();
        self.past_by_token.clear();
        self.first_past = 0;
        self.forgotten = None;
    }

    /// Whether a request under this id was certainly never sent.
    pub(super) fn never_sent(&self, id: &Id) -> bool {
        let known = self.by_id.contains_key(id) || self.past_by_id.contains_key(id);
        !known && !self.hidden && !self.may_be_forgotten(id)
    }

    /// Whether this side certainly never gave this progress token.
    pub(super) fn never_given(&self, token: &Id) -> bool {
        let known = self.by_token.contains_key(token) || self.past_by_token.contains_key(token);
        !known && !self.hidden && self.forgotten.is_none()
    }

    fn may_be_forgotten(&self, id: &Id) -> bool {
        let Some(forgotten) = &self.forgotten else {
            return false;
        };
        match id {
            Id::Number(_) if forgotten.numbers => id
                .as_integer()
                .is_some_and(|number| (forgotten.from..=forgotten.to).contains(&number)),
            _ => true,
        }
    }

    pub(super) fn hold(&mut self, at: Timestamp, what: Early) {
        if self.held.len() < HELD {
            self.held.push_back(Held { at, what });
        }
    }

    /// Takes the held things that belong to a request which has now been sent.
    pub(super) fn take_held(&mut self, id: &Id, token: Option<&Id>) -> Vec<Held> {
        if self.held.is_empty() {
            return Vec::new();
        }
        let belongs = |held: &Held| match &held.what {
            Early::Answer(answer) => answer.id == *id,
            Early::Progress(given) => Some(given) == token,
        };
        let (taken, kept) = self.held.drain(..).partition(belongs);
        self.held = kept;
        Vec::from(taken)
    }

    /// Takes what has been held since before `until`.
    pub(super) fn take_stale(&mut self, until: Timestamp) -> Option<Held> {
        let stale = self.held.front().is_some_and(|held| held.at <= until);
        if stale { self.held.pop_front() } else { None }
    }
}
