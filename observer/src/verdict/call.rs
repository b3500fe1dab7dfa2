//! One request in flight, and what speaks for its having been given up.

use std::time::Duration;

use super::reading::Turn;
use super::witness::Burst;
use super::{Cancellation, Confidence, Evidence, Outcome, Revision};
use crate::capture::Timestamp;
use crate::jsonrpc::Id;
use crate::session::{ConnId, Side};

/// A request's place in the order of sending, on its connection.
pub(super) type Seq = u64;

/// Requests that are never waited for as a tool is, so that no rule about waiting holds.
const BY_DESIGN: [&str; 3] = ["initialize", "server/discover", "subscriptions/listen"];

/// A request that was sent.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) conn: ConnId,
    pub(super) seq: Seq,
    pub(super) from: Side,
    pub(super) id: Id,
    pub(super) method: Box<str>,
    pub(super) name: Option<Box<str>>,
    pub(super) sent: Timestamp,
    /// When it was sent, by the clock that stands still while the server asks back.
    pub(super) sent_active: Duration,
    pub(super) bytes: u64,
    /// Where it ends in its stream, where known.
    pub(super) end: Option<u64>,
    pub(super) revision: Option<Revision>,
    pub(super) token: Option<Id>,
    pub(super) turn: Turn,
    pub(super) fingerprint: Option<u64>,
    pub(super) as_task: bool,
    pub(super) progress: u64,
    pub(super) last_progress: Option<Timestamp>,
    pub(super) cancel: Option<Cancellation>,
    /// Where its cancellation ends in its stream, where known.
    pub(super) cancel_end: Option<u64>,
    /// The request to the model that it most likely follows from.
    pub(super) request: Option<Burst>,
    /// A gap may have hidden its answer or its cancellation.
    pub(super) clouded: bool,
    /// Its id is used twice at once, or a cancellation missed it only by the type of the id:
    /// nothing is concluded from its silence.
    pub(super) tainted: bool,
    /// For a server's request: the newest of the client's calls in flight when it was sent.
    pub(super) within: Option<Seq>,
    /// For a server's request: reported as left open; it holds up nothing any more.
    pub(super) left: bool,
    pub(super) case: Option<Box<Case>>,
}

impl Call {
    /// Whether giving it up without a word is a fault: a request of the host that works for
    /// somebody, in whose life nothing is hidden.
    pub(super) fn is_judged(&self) -> bool {
        let works = super::reading::repeatable(&self.method);
        self.from == Side::Client && !self.clouded && !self.tainted && works
    }

    /// Whether a turn of the host waits for it.
    pub(super) fn is_work(&self) -> bool {
        super::reading::repeatable(&self.method) || self.method.as_ref() == "tasks/result"
    }

    /// Whether it may stay unanswered: a probe, a subscription, the handshake.
    pub(super) fn may_stay_open(&self) -> bool {
        BY_DESIGN.contains(&self.method.as_ref())
    }

    /// How sure it is that the host gave it up.
    pub(super) fn confidence(&self) -> Option<Confidence> {
        self.case.as_ref()?.confidence()
    }

    /// Since when the host does not wait any more, as far as the evidence goes.
    pub(super) fn given_up(&self) -> Option<Timestamp> {
        self.case
            .as_ref()?
            .clues
            .iter()
            .filter(|clue| clue.weight != Weight::Effect)
            .map(|clue| clue.evidence.at)
            .min()
    }

    /// How long the server worked on after the host had given up, `until` its last sign.
    pub(super) fn wasted(&self, until: Option<Timestamp>) -> Option<Duration> {
        let since = self.given_up()?;
        let until = until.max(self.last_progress)?;
        (until > since).then(|| until.since(since))
    }

    /// What a person would call it: `tools/call slow`.
    pub(super) fn title(&self) -> String {
        match &self.name {
            Some(name) => format!("{} {}", shown(&self.method), shown(name)),
            None => shown(&self.method),
        }
    }

    /// About how much memory its texts take.
    pub(super) fn weight(&self) -> usize {
        let id = match &self.id {
            Id::Number(text) | Id::String(text) => text.len(),
            Id::Null => 0,
        };
        id + self.method.len() + self.name.as_ref().map_or(0, |name| name.len())
    }
}

/// A request that is over, kept for what may still come for it.
#[derive(Clone, Debug)]
pub(super) struct Past {
    pub(super) call: Call,
    pub(super) outcome: Outcome,
    pub(super) ended: Timestamp,
    /// An answer has come for it.
    pub(super) answered: bool,
    /// Where its answer ends in its stream, where known.
    pub(super) answer_end: Option<u64>,
    /// The task that its answer created.
    pub(super) task: Option<Box<str>>,
}

/// What a piece of evidence is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weight {
    /// It ranks, and convicts only together with another.
    Weak,
    /// Hard to explain otherwise.
    Strong,
    /// Hard to explain otherwise, and proof once the answer comes all the same.
    Sure,
    /// It follows from the abandonment and does not show it: a late answer, more progress.
    Effect,
}

/// A piece of evidence and its worth.
#[derive(Clone, Debug)]
pub(super) struct Clue {
    pub(super) evidence: Evidence,
    pub(super) weight: Weight,
}

/// What speaks for a call's having been given up.
#[derive(Clone, Debug, Default)]
pub(super) struct Case {
    pub(super) clues: Vec<Clue>,
    /// Seen, but a cancellation may still be on its way.
    pub(super) brewing: Vec<Clue>,
}

/// More clues than this say nothing new.
const CLUES: usize = 16;

impl Case {
    /// Takes a clue in; `false` where it says nothing new.
    pub(super) fn add(&mut self, clue: Clue) -> bool {
        let known = self
            .clues
            .iter()
            .any(|known| known.evidence.kind == clue.evidence.kind);
        if known || self.clues.len() >= CLUES {
            return false;
        }
        self.clues.push(clue);
        self.clues.sort_by_key(|clue| clue.evidence.at);
        true
    }

    pub(super) fn has(&self, kind: &str) -> bool {
        self.clues.iter().any(|clue| clue.evidence.kind == kind)
    }

    pub(super) fn count(&self, weight: Weight) -> usize {
        self.clues
            .iter()
            .filter(|clue| clue.weight == weight)
            .count()
    }

    /// How sure it is, by `shared/protocol.md` section 5: one strong clue or two weak ones are
    /// probable; the answer that comes all the same confirms a sure clue, or two strong ones.
    pub(super) fn confidence(&self) -> Option<Confidence> {
        let (weak, strong, sure) = (
            self.count(Weight::Weak),
            self.count(Weight::Strong),
            self.count(Weight::Sure),
        );
        let late = self.has(LATE_ANSWER);
        match (sure, sure + strong, weak) {
            (1.., _, _) | (_, 2.., _) if late => Some(Confidence::Confirmed),
            (_, 1.., _) | (_, _, 2..) => Some(Confidence::Probable),
            // The user knows the limit; an answer beyond it finds nobody waiting.
            (_, _, 1) if late && self.has(DEADLINE) => Some(Confidence::Probable),
            (_, _, 1) => Some(Confidence::Possible),
            _ => None,
        }
    }

    /// Whether a gap that begins where a side was last heard may hold what refutes a clue: the
    /// answer before it, or the cancellation that belongs to it.
    pub(super) fn rests_on_silence(&self, spoke: Option<Timestamp>, grace: Duration) -> bool {
        let mut own = self
            .clues
            .iter()
            .filter(|clue| clue.weight != Weight::Effect);
        let refuted = |clue: &Clue| {
            let slack = if clue.evidence.kind == "retry" {
                Duration::ZERO
            } else {
                grace
            };
            spoke.is_none_or(|spoke| spoke < clue.evidence.at + slack)
        };
        own.any(refuted) || !self.brewing.is_empty()
    }

    /// Whether a call with this case counts as abandoned.
    pub(super) fn convicts(&self) -> bool {
        self.confidence() >= Some(Confidence::Probable)
    }
}

/// The kind of evidence that the user's own time limit is.
pub(super) const DEADLINE: &str = "deadline";
/// The kind of evidence that an answer after the abandonment is.
pub(super) const LATE_ANSWER: &str = "late-answer";
/// The kind of evidence that progress after the abandonment is.
pub(super) const LATE_PROGRESS: &str = "late-progress";

/// A text of the observed world as it may be printed: no control characters, not too long.
pub(super) fn shown(text: &str) -> String {
    const LONG: usize = 80;
    let cut = text
        .char_indices()
        .nth(LONG)
        .map_or(text.len(), |(place, _)| place);
    let mut shown = String::with_capacity(cut);
    for char in text[..cut].chars() {
        if char.is_control() || is_invisible(char) {
            shown.extend(char.escape_unicode());
        } else {
            shown.push(char);
        }
    }
    if cut < text.len() {
        shown.push('…');
    }
    shown
}

/// Characters that change how the text around them is shown.
fn is_invisible(char: char) -> bool {
    matches!(char, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// A duration as people read it: `3.1 s`, `250 ms`.
pub(super) fn spoken(duration: Duration) -> String {
    match duration.as_secs_f64() {
        seconds if seconds < 1.0 => format!("{:.0} ms", seconds * 1000.0),
        seconds if seconds < 120.0 => format!("{seconds:.1} s"),
        seconds => format!("{:.0} min", seconds / 60.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clue(kind: &'static str, weight: Weight) -> Clue {
        let evidence = Evidence {
            kind,
            at: Timestamp::ZERO,
            detail: String::new(),
        };
        Clue { evidence, weight }
    }

    fn grade(clues: &[(&'static str, Weight)]) -> Option<Confidence> {
        let mut case = Case::default();
        for (kind, weight) in clues {
            case.add(clue(kind, *weight));
        }
        case.confidence()
    }

    #[test]
    fn evidence_adds_up() {
        use Confidence::{Confirmed, Possible, Probable};
        use Weight::{Effect, Strong, Sure, Weak};
        let late = (LATE_ANSWER, Effect);
        assert_eq!(grade(&[]), None);
        assert_eq!(grade(&[late]), None, "a late answer alone is an answer");
        assert_eq!(grade(&[("a", Weak)]), Some(Possible));
        assert_eq!(grade(&[("a", Weak), late]), Some(Possible));
        assert_eq!(grade(&[(DEADLINE, Weak), late]), Some(Probable));
        assert_eq!(grade(&[("a", Weak), ("b", Weak)]), Some(Probable));
        assert_eq!(
            grade(&[("a", Weak), ("a", Weak)]),
            Some(Possible),
            "the same twice is once"
        );
        assert_eq!(grade(&[("a", Strong)]), Some(Probable));
        assert_eq!(
            grade(&[("a", Strong), late]),
            Some(Probable),
            "Esc may close a menu"
        );
        assert_eq!(
            grade(&[("a", Strong), ("b", Strong), late]),
            Some(Confirmed)
        );
        assert_eq!(grade(&[("a", Sure)]), Some(Probable));
        assert_eq!(grade(&[("a", Sure), late]), Some(Confirmed));
    }

    #[test]
    fn what_is_shown_cannot_reach_the_terminal() {
        assert_eq!(shown("a\u{1b}[31m\u{202e}b"), "a\\u{1b}[31m\\u{202e}b");
        assert_eq!(shown(&"ä".repeat(100)).chars().count(), 81);
    }
}
