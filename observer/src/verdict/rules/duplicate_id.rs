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
        "An id of a session before: a new one begins with `initialize`.",
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

#[cfg(test)]
mod tests {
    use crate::verdict::script::judged;

    #[test]
    fn two_requests_under_one_id() {
        let script = "0 hello 2025-06-18\n1 call 1 t\n2 call 1 u\n3 s= 1\n4 s= 1\n5 end";
        assert_eq!(
            judged(script),
            "1 answered, 1 answered | duplicate-id 1 confirmed error"
        );
        let silent =
            "0 hello 2025-06-18\n1 call 1 t\n2 call 1 t\n3 key-esc 10\n60 call 1 t\n99 end";
        assert!(
            !judged(silent).contains("abandoned"),
            "nothing is concluded from their silence"
        );
        let modern =
            r#"{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
        let script = format!("1 c 1 tools/call {modern}\n2 c 1 tools/call {modern}\n3 end");
        assert_eq!(
            judged(&script),
            "1 pending, 1 pending | duplicate-id 1 confirmed error"
        );
    }

    #[test]
    fn ids_that_only_look_alike() {
        let sides = "0 hello 2025-06-18\n1 call 1 t\n1 s 1 ping\n2 c= 1\n3 s= 1";
        assert_eq!(judged(sides), "1 answered, 1 answered");
        let types = "0 hello 2025-06-18\n1 call 1 t\n1 c \"1\" ping\n2 s= 1\n3 s= \"1\"";
        assert_eq!(judged(types), "1 answered, \"1\" answered");
    }

    #[test]
    fn the_first_may_have_been_answered() {
        let gap = "0 hello 2025-06-18\n1 call 1 t\n2 gap s\n3 call 1 u\n4 s= 1";
        assert_eq!(
            judged(gap),
            "1 unknown, 1 answered | evidence-gap confirmed warning, reused-id 1 confirmed info"
        );
        let modern =
            r#"{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
        let late =
            format!("1 c 1 tools/call {modern}\n2 c 1 tools/call {modern}\n2.01 s= 1\n3 s= 1");
        assert_eq!(judged(&late), "1 answered, 1 answered");
        let probe = "1 c 0 server/discover\n4 hello 2025-06-18\n5 end";
        assert_eq!(judged(probe), "0 unknown");
    }
}
