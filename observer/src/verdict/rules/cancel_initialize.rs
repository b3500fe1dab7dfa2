//! `cancel-initialize`: the handshake may not be cancelled.

use super::Rule;
use crate::session::Side;
use crate::verdict::about::{About, clauses};
use crate::verdict::desk::{Desk, Draft};
use crate::verdict::judge::State;
use crate::verdict::occurrence::Occurrence;
use crate::verdict::{Culprit, Severity};

pub(super) const ABOUT: About = About {
    name: "cancel-initialize",
    side: "host",
    severity: Severity::Warning,
    grading: None,
    meaning: "The host cancelled `initialize`, which may not be cancelled.",
    evidence: &["`cancel`: while `initialize` was in flight."],
    exceptions: &[
        "A cancellation after the answer is a `stale-cancel`.",
        "A `server/discover` that is given up: no revision forbids its cancellation.",
    ],
    clauses: clauses(
        "basic/utilities/cancellation: the initialize request MUST NOT be cancelled by clients",
        "",
    ),
};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct CancelInitialize;

impl Rule for CancelInitialize {
    fn see(&mut self, seen: &Occurrence<'_>, _state: &State, desk: &mut Desk) {
        if let Occurrence::Cancelled { call, cancel } = seen
            && call.from == Side::Client
            && call.method.as_ref() == "initialize"
        {
            let message = "the host cancelled initialize, which may not be cancelled".into();
            let detail = "while initialize was in flight".into();
            let draft = Draft::new(&ABOUT, Culprit::Host, message)
                .call(call)
                .evidence("cancel", cancel.at, detail);
            desk.report(draft);
        }
    }
}
