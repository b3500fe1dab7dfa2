//! `duplicate-id`: two requests in flight in one direction under one id.

use super::{Rule, culprit};
use crate::verdict::Severity;
use crate::verdict::about::{About, clauses};
use crate::verdict::desk::{Desk, Draft};
use crate::verdict::judge::State;
use crate::verdict::occurrence::Occurrence;

pub(super) const ABOUT: About = About {
    name: "duplicate-id",
    side: "host or server",
    severity: Severity::Error,
    grading: None,
    meaning: "Two requests in flight in one direction under one id: their answers cannot be told \
              apart, and nothing is concluded from their silence.",
    evidence: &["`first` and `second`: when each was sent."],
    exceptions: &[
        "One id in both directions: each side counts for itself.",
        "`2` and `\"2\"`, which are two ids.",
        "An id that is used again after its answer, where the answer's record is late \
         (2026-07-28).",
        "A first request whose answer may be what went by unseen.",
        "A probe that stays unanswered, and `initialize` under the same id.",
    ],
    clauses: clauses(
        "basic, Requests: the request id MUST NOT have been previously used by the requestor \
         within the same session",
        "basic, Requests: the id MUST NOT match the id of any other request that the sender has \
         issued and not yet received a response for",
    ),
};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct DuplicateId;

impl Rule for DuplicateId {
    fn see(&mut self, seen: &Occurrence<'_>, _state: &State, desk: &mut Desk) {
        if let Occurrence::Duplicate { older, newer } = seen {
            let (side, who) = culprit(newer.from);
            let message = format!(
                "the {who} sent {} under id {}, under which {} was in flight",
                newer.title(),
                newer.id,
                older.title()
            );
            let draft = Draft::new(&ABOUT, side, message)
                .call(newer)
                .evidence("first", older.sent, older.title())
                .evidence("second", newer.sent, newer.title());
            desk.report(draft);
        }
    }
}
