//! `malformed-cancel`: a cancellation without a usable `requestId`.

use super::{Rule, culprit};
use crate::verdict::about::About;
use crate::verdict::desk::{Desk, Draft};
use crate::verdict::judge::State;
use crate::verdict::occurrence::Occurrence;
use crate::verdict::{Revision, Severity};

pub(super) const ABOUT: About = About {
    name: "malformed-cancel",
    side: "host or server",
    severity: Severity::Warning,
    grading: Some("info in 2025-11-25, whose schema lets the id be left out"),
    meaning: "A cancellation without a usable `requestId`: it cancels nothing.",
    evidence: &["`cancel`: `requestId` is missing, or is neither a string nor a number."],
    exceptions: &["The ids `0` and `\"\"`, which are ids like any other."],
    clauses: [
        "schema, CancelledNotification: params.requestId is required",
        "schema, CancelledNotification: params.requestId is required",
        "schema, CancelledNotification: params.requestId is required",
        "schema, CancelledNotification: requestId MUST be provided for cancelling non-task \
         requests",
        "schema, CancelledNotification: params.requestId is required",
    ],
};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct MalformedCancel;

impl Rule for MalformedCancel {
    fn see(&mut self, seen: &Occurrence<'_>, state: &State, desk: &mut Desk) {
        if let Occurrence::CancelMalformed { conn, from, at } = seen {
            let revision = state.revision(conn.id);
            let optional = revision == Some(Revision::R20251125);
            let (side, who) = culprit(*from);
            let message = format!("the {who} sent a cancellation without a usable requestId");
            let draft = Draft::new(&ABOUT, side, message)
                .conn(conn.id)
                .revision(revision)
                .severity(if optional {
                    Severity::Info
                } else {
                    ABOUT.severity
                })
                .evidence("cancel", *at, "requestId is no string and no number".into());
            desk.report(draft);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::verdict::script::judged;

    #[test]
    fn a_cancellation_without_an_id() {
        for params in ["{}", r#"{"requestId":null}"#, r#"{"requestId":{"id":1}}"#] {
            let script = |revision| {
                format!(
                    "0 hello {revision}\n1 call 1 t\n2 c- notifications/cancelled {params}\n3 s= 1"
                )
            };
            let verdict = judged(&script("2025-06-18"));
            assert_eq!(
                verdict, "1 answered | malformed-cancel confirmed warning",
                "{params}"
            );
            let verdict = judged(&script("2025-11-25"));
            assert_eq!(
                verdict, "1 answered | malformed-cancel confirmed info",
                "{params}"
            );
        }
    }

    #[test]
    fn zero_and_empty_are_ids() {
        let script = "1 call 0 t\n1 c \"\" tools/call\n2 cancel 0\n2 cancel \"\"";
        assert_eq!(judged(script), "0 cancelled, \"\" cancelled");
    }
}
