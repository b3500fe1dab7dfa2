//! `reused-id`: an id is used again after its answer, where the revision forbids it.

use super::{Rule, culprit};
use crate::verdict::about::{About, clauses};
use crate::verdict::desk::{Desk, Draft};
use crate::verdict::judge::State;
use crate::verdict::occurrence::Occurrence;
use crate::verdict::{Revision, Severity};

pub(super) const ABOUT: About = About {
    name: "reused-id",
    side: "host or server",
    severity: Severity::Info,
    grading: None,
    meaning: "An id is used again after its answer, where the revision forbids it.",
    evidence: &["`first` and `second`: when each was sent."],
    exceptions: &[
        "2026-07-28, which allows it once the answer has come.",
        "A new session on the same connection, which begins with `initialize`.",
        "A connection whose revision is not known.",
    ],
    clauses: clauses(
        "basic, Requests: the request id MUST NOT have been previously used by the requestor \
         within the same session",
        "",
    ),
};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct ReusedId;

impl Rule for ReusedId {
    fn see(&mut self, seen: &Occurrence<'_>, _state: &State, desk: &mut Desk) {
        if let Occurrence::Reused { call, past } = seen
            && call
                .revision
                .is_some_and(|revision| !Revision::is_stateless(revision))
        {
            let (side, who) = culprit(call.from);
            let message = format!(
                "the {who} sent {} under id {}, which {} had before",
                call.title(),
                call.id,
                past.call.title()
            );
            let draft = Draft::new(&ABOUT, side, message)
                .call(call)
                .evidence("first", past.call.sent, past.call.title())
                .evidence("second", call.sent, call.title());
            desk.report(draft);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::verdict::script::judged;

    #[test]
    fn an_id_is_used_again() {
        let script = "0 hello 2025-06-18\n1 call 1 t\n2 s= 1\n3 call 1 u\n4 s= 1\n5 end";
        assert_eq!(
            judged(script),
            "1 answered, 1 answered | reused-id 1 confirmed info"
        );
    }

    #[test]
    fn it_may_be_where_the_revision_or_a_new_session_allows_it() {
        let modern =
            r#"{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
        let again =
            format!("1 c 1 tools/call {modern}\n2 s= 1\n3 c 1 tools/call {modern}\n4 s= 1\n5 end");
        assert_eq!(judged(&again), "1 answered, 1 answered");
        let anew =
            "0 hello 2025-06-18\n1 call 1 t\n2 s= 1\n3 hello 2025-06-18\n4 call 1 t\n5 s= 1\n6 end";
        assert_eq!(judged(anew), "1 answered, 1 answered");
        assert_eq!(
            judged("1 call 1 t\n2 s= 1\n3 call 1 t\n4 s= 1\n5 end"),
            "1 answered, 1 answered"
        );
    }
}
