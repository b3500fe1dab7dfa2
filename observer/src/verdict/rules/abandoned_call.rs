//! `abandoned-call`: the host stopped waiting and never said so.
//!
//! The evidence is gathered by the witnesses in `witness/`; this rule grades it and writes it up.

use std::collections::HashMap;

use super::Rule;
use crate::session::ConnId;
use crate::verdict::about::About;
use crate::verdict::call::{Call, LATE_PROGRESS, Seq, Weight};
use crate::verdict::desk::{Desk, Draft};
use crate::verdict::judge::State;
use crate::verdict::occurrence::Occurrence;
use crate::verdict::{Confidence, Culprit, Severity};

pub(super) const ABOUT: About = About {
    name: "abandoned-call",
    side: "host",
    severity: Severity::Warning,
    grading: Some(
        "error when confirmed, warning when probable, info when possible; one step up where a \
         retry or a request at the time limit shows the abandonment and the server goes on \
         sending progress",
    ),
    meaning: "The host stopped waiting for a request and never sent the cancellation that its \
              revision asks for.",
    evidence: &[
        "`retry`: the same method, name and arguments are sent again while the first is open \
         (`_meta` does not count), after at least 1.5 s in one thread of a host that names its \
         threads or is known to call one tool after the other, after 5 s (or the tool's time \
         limit, where that is shorter) otherwise. Strong; weak before that, and in 2026-07-28, \
         where conversations share a connection. Proof with a late answer in the first two cases, \
         and where a known limit was over.",
        "`new-turn`: the same thread goes on with another turn while a call of the earlier turn \
         is open. Strong.",
        "`key-esc`, `key-ctrl-c`, `sigint`: the host, or a program of its family, was interrupted, \
         lives on, and has sent no cancellation within the grace time (2 s). Strong; weak where \
         another program above or below the host was, or another window of it, and for a host \
         that is known to cancel what its user interrupts: something else was meant then.",
        "`deadline`: the time limit that the user gave for the tool (`--deadline`) is over, with \
         the grace time, and no progress started it anew. Weak.",
        "`request-at-limit`: the host's next request comes just when the limit is over. Weak.",
        "`model-request`: while the call is open, and at least 1 s after it, the host sends about as \
         much as before the call or more to the network peer that its largest burst before the \
         call went to: the conversation with the model goes on. Sizes only, and only of hosts that \
         run one turn at a time. Weak; strong of a host that is known to call one tool after the \
         other, where the burst is larger than the one before by up to 16 KiB: the call, and a few \
         words in place of its result.",
        "`window-closed`: the program that started the host and is of one product with it has \
         ended, and the host lives on. Weak.",
        "`late-answer`: an answer comes after such evidence. It confirms a `retry` that is proof, a \
         `new-turn`, and any two strong pieces; with a `deadline` alone it makes the abandonment \
         probable.",
        "`late-progress`: the server goes on reporting progress after such evidence.",
        "`unread-request`: where it is seen what the server reads, that it has not read the request.",
        "One strong piece, or two weak ones, make it probable; one weak piece makes it possible.",
    ],
    exceptions: &[
        "Time alone, however long: there are calls that take hours.",
        "Equal calls within 1.5 s of each other: a model calls tools in parallel.",
        "Equal calls of two threads, or of a host whose conversations are known to share a \
         connection; and other calls while one is open.",
        "A call that goes on with an `input_required` answer (`inputResponses`, `requestState`), \
         or comes again after error -32042: the first one is over.",
        "Esc while the server asks the user something (and within 1 s after that: a key that was \
         held), or while nothing is in flight; Esc once where the host wants it twice.",
        "Esc in an editor, a pager, a terminal or a shell that the host started or runs in; Esc in \
         another window, where a shell started each host.",
        "An answer, or the end of host or connection, within the grace time.",
        "Time in which the server waits for an answer of the host (sampling, elicitation, roots): \
         all limits stand still.",
        "`initialize`, `server/discover`, `subscriptions/listen` and background requests.",
        "A gap that could have hidden the answer or the cancellation: the outcome is `unknown`.",
        "Network traffic of hosts that run several conversations or background calls, or have \
         another connection to the same server, of small size, to another peer, or while the server \
         asks the user something.",
        "SIGTERM and SIGHUP: they end a host, they do not interrupt a call.",
    ],
    clauses: [
        "basic/lifecycle, Error Handling: implementations SHOULD implement timeouts; \
         basic/utilities/cancellation: either side can send a cancellation notification",
        "basic/lifecycle, Timeouts: when the timeout has passed the sender SHOULD issue a \
         cancellation notification for that request and stop waiting",
        "basic/lifecycle, Timeouts: when the timeout has passed the sender SHOULD issue a \
         cancellation notification for that request and stop waiting",
        "basic/lifecycle, Timeouts: when the timeout has passed the sender SHOULD issue a \
         cancellation notification for that request and stop waiting",
        "basic/transports/stdio, Cancellation: to cancel a request the client MUST send \
         notifications/cancelled; basic/patterns/cancellation, Timeouts: SHOULD on a timeout",
    ],
};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct AbandonedCall {
    said: HashMap<(ConnId, Seq), Said>,
}

/// What was said about a call last.
#[derive(Clone, Copy, Debug)]
struct Said {
    number: Option<u32>,
    grade: Grade,
}

/// What has to change before a finding is written anew. What would be proof with a late answer is
/// worth naming even where it makes nothing surer yet: a retry says more than bytes to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Grade {
    confidence: Confidence,
    severity: Severity,
    sure: usize,
}

impl Rule for AbandonedCall {
    fn see(&mut self, seen: &Occurrence<'_>, _state: &State, desk: &mut Desk) {
        match seen {
            Occurrence::Suspected { call } => self.write(call, desk),
            Occurrence::Cleared { call } => self.withdraw(call, desk),
            Occurrence::Ended { past } => {
                self.said.remove(&(past.call.conn, past.call.seq));
            }
            _ => {}
        }
    }
}

impl AbandonedCall {
    fn withdraw(&mut self, call: &Call, desk: &mut Desk) {
        let Some(said) = self.said.remove(&(call.conn, call.seq)) else {
            return;
        };
        let message = format!(
            "it cannot be said whether the host gave up {}: bytes went by unseen",
            call.title()
        );
        let detail = "bytes went by unseen, which may hold the answer or the cancellation".into();
        let draft = Draft::new(&ABOUT, Culprit::Host, message)
            .call(call)
            .severity(Severity::Info)
            .confidence(Confidence::Possible)
            .evidence("gap", desk.now, detail)
            .supersedes(said.number);
        desk.report(draft);
    }

    fn write(&mut self, call: &Call, desk: &mut Desk) {
        let Some(confidence) = call.confidence() else {
            return;
        };
        let severity = severity(call, confidence);
        let sure = call
            .case
            .as_ref()
            .map_or(0, |case| case.count(Weight::Sure));
        let grade = Grade {
            confidence,
            severity,
            sure,
        };
        let key = (call.conn, call.seq);
        let last = self.said.get(&key);
        if last.is_some_and(|last| last.grade == grade) {
            return;
        }
        let draft = Draft::new(&ABOUT, Culprit::Host, message(call, confidence))
            .call(call)
            .severity(severity)
            .confidence(confidence)
            .all_evidence(evidence(call))
            .supersedes(last.and_then(|last| last.number));
        let number = desk.report(draft);
        self.said.insert(key, Said { number, grade });
    }
}

fn severity(call: &Call, confidence: Confidence) -> Severity {
    let zombie = call.case.as_ref().is_some_and(|case| {
        case.has(LATE_PROGRESS) && (case.has("retry") || case.has("request-at-limit"))
    });
    match (confidence, zombie) {
        (Confidence::Confirmed, _) | (Confidence::Probable, true) => Severity::Error,
        (Confidence::Probable, false) | (Confidence::Possible, true) => Severity::Warning,
        (Confidence::Possible, false) => Severity::Info,
    }
}

fn evidence(call: &Call) -> Vec<crate::verdict::Evidence> {
    call.case
        .iter()
        .flat_map(|case| &case.clues)
        .map(|clue| clue.evidence.clone())
        .collect()
}

fn message(call: &Call, confidence: Confidence) -> String {
    let doubt = match confidence {
        Confidence::Confirmed => "gave up",
        Confidence::Probable => "very likely gave up",
        Confidence::Possible => "may have given up",
    };
    let because: Vec<String> = evidence(call)
        .into_iter()
        .map(|evidence| evidence.detail)
        .collect();
    format!(
        "the host {doubt} {} and has not sent notifications/cancelled: {}",
        call.title(),
        joined(&because)
    )
}

/// Clauses in one sentence; each may have a comma or an "and" of its own.
fn joined(clauses: &[String]) -> String {
    match clauses.len() {
        2 => clauses.join(" and "),
        _ => clauses.join("; "),
    }
}

#[cfg(test)]
mod tests;
