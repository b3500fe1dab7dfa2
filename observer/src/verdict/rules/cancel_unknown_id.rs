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

#[cfg(test)]
mod tests {
    use crate::verdict::script::judged;

    #[test]
    fn ids_that_were_never_sent() {
        let never = "0 hello 2025-06-18\n1 call 1 t\n2 cancel 99\n3 s= 1";
        assert_eq!(
            judged(never),
            "1 answered | cancel-unknown-id 99 confirmed warning"
        );
        let other_side = "0 hello 2025-06-18\n1 s 5 ping\n2 cancel 5\n3 c= 5";
        assert_eq!(
            judged(other_side),
            "5 answered | cancel-unknown-id 5 confirmed warning"
        );
        let other_type = "0 hello 2025-06-18\n1 call 1 t\n2 cancel \"1\"\n3 s= 1";
        assert_eq!(
            judged(other_type),
            "1 answered | cancel-unknown-id \"1\" confirmed warning"
        );
        let server = "0 hello 2025-06-18\n1 call 1 t\n2 scancel 1\n3 s= 1";
        assert_eq!(
            judged(server),
            "1 answered | cancel-unknown-id 1 confirmed warning"
        );
    }

    #[test]
    fn ids_that_may_have_been_sent() {
        for gap in ["gap c", "gap c mid-stream"] {
            assert!(!judged(&format!("0 {gap}\n1 cancel 99")).contains("cancel-unknown-id"));
        }
        let mut many: String = (1..2000)
            .map(|id| format!("1 call {id} t\n1 s= {id}\n"))
            .collect();
        many.push_str("2 cancel 3\n3 cancel 5000");
        let verdict = judged(&many);
        assert!(verdict.ends_with("1999 answered | cancel-unknown-id 5000 confirmed warning"));
    }

    #[test]
    fn a_server_ends_a_subscription() {
        let script = "1 c 1 subscriptions/listen\n2 scancel 1\n2 s= 1\n3 end";
        assert_eq!(judged(script), "1 cancelled");
    }
}
