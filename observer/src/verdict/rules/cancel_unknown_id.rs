//! `cancel-unknown-id`: a cancellation for an id that was never sent in that direction.

use super::{Rule, culprit};
use crate::verdict::Severity;
use crate::verdict::about::{About, clauses};
use crate::verdict::desk::{Desk, Draft};
use crate::verdict::judge::State;
use crate::verdict::occurrence::{Near, Occurrence};

pub(super) const ABOUT: About = About {
    name: "cancel-unknown-id",
    side: "host or server",
    severity: Severity::Warning,
    grading: None,
    meaning: "A cancellation for an id that was never sent in that direction, or has another JSON \
              type.",
    evidence: &[
        "`cancel`: the id; and whether a request in flight has it with another type, or the other \
         side has a request under it.",
    ],
    exceptions: &[
        "A request that may have gone by unseen: before the observer joined, or in a gap.",
        "An id so old that the observer does not remember it.",
        "A server that ends a subscription of the client (2026-07-28).",
    ],
    clauses: clauses(
        "basic/utilities/cancellation: cancellation notifications MUST only reference requests \
         that were previously issued in the same direction",
        "basic/patterns/cancellation: cancellation notifications MUST only reference requests \
         that were previously issued by the client",
    ),
};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct CancelUnknownId;

impl Rule for CancelUnknownId {
    fn see(&mut self, seen: &Occurrence<'_>, state: &State, desk: &mut Desk) {
        if let Occurrence::CancelledUnknown {
            conn,
            from,
            id,
            near,
            at,
        } = seen
        {
            let (side, who) = culprit(*from);
            let message = match near {
                Near::Nothing => format!("the {who} cancelled id {id}, which it never sent"),
                Near::OtherType(call) => format!(
                    "the {who} cancelled id {id}, but {} has id {}",
                    call.title(),
                    call.id
                ),
                Near::OtherDirection => {
                    format!("the {who} cancelled id {id}, which only the other side has sent")
                }
            };
            let mut draft = Draft::new(&ABOUT, side, message);
            if let Near::OtherType(call) = near {
                draft = draft.call(call);
            }
            let draft = draft
                .conn(conn.id)
                .id(id)
                .revision(state.revision(conn.id))
                .evidence("cancel", *at, format!("the cancellation of id {id}"));
            desk.report(draft);
        }
    }
}
