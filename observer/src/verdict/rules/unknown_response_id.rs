//! `unknown-response-id`: an answer to a request that was never sent, or was already answered.

use super::{Rule, culprit};
use crate::verdict::Severity;
use crate::verdict::about::{About, clauses};
use crate::verdict::call::Past;
use crate::verdict::desk::{Desk, Draft};
use crate::verdict::judge::State;
use crate::verdict::occurrence::Occurrence;

pub(super) const ABOUT: About = About {
    name: "unknown-response-id",
    side: "server or host",
    severity: Severity::Warning,
    grading: None,
    meaning: "An answer to a request that was never sent, or was already answered.",
    evidence: &["`answer`: the id, and `first-answer` where there was one."],
    exceptions: &[
        "An answer whose record comes before its request's: it is held for 250 ms.",
        "An answer while a write of the asking side still blocks, of which more was read than is seen: the request may be in it.",
        "An answer to a request that was cancelled, or given up.",
        "An error without an id, or with `null`: the request could not be read.",
        "A request that may have gone by unseen, or is too old to be remembered.",
        "Answers under an id that was used twice at once.",
    ],
    clauses: clauses(
        "basic, Responses: responses MUST include the same id as the request they correspond to",
        "basic, Responses: responses MUST include the same id as the request they correspond to",
    ),
};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct UnknownResponseId;

impl Rule for UnknownResponseId {
    fn see(&mut self, seen: &Occurrence<'_>, state: &State, desk: &mut Desk) {
        let draft = match seen {
            Occurrence::UnknownAnswer { conn, from, id, at } => {
                let (side, who) = culprit(*from);
                let (message, id) = match id {
                    Some(id) => (
                        format!("the {who} answered id {id}, which was never sent"),
                        *id,
                    ),
                    None => (format!("the {who} sent a result without an id"), &NO_ID),
                };
                Draft::new(&ABOUT, side, message)
                    .conn(conn.id)
                    .id(id)
                    .revision(state.revision(conn.id))
                    .evidence("answer", *at, format!("an answer to id {id}"))
            }
            Occurrence::Echo { past, answer, .. } if was_answered(past) => {
                let (side, who) = culprit(past.call.from.peer());
                let message = format!("the {who} answered {} a second time", past.call.title());
                Draft::new(&ABOUT, side, message)
                    .past(past)
                    .evidence("first-answer", past.ended, "the first answer".into())
                    .evidence("answer", answer.at, "the second answer".into())
            }
            _ => return,
        };
        desk.report(draft);
    }
}

const NO_ID: crate::jsonrpc::Id = crate::jsonrpc::Id::Null;

fn was_answered(past: &Past) -> bool {
    past.answered && !past.call.tainted
}

#[cfg(test)]
mod tests {
    use crate::verdict::script::judged;

    #[test]
    fn answers_to_nothing() {
        let never = "0 hello 2025-06-18\n1 s= 9\n2 end";
        assert_eq!(judged(never), " | unknown-response-id 9 confirmed warning");
        let twice = "0 hello 2025-06-18\n1 call 1 t\n2 s= 1\n3 s= 1\n4 end";
        assert_eq!(
            judged(twice),
            "1 answered | unknown-response-id 1 confirmed warning"
        );
        let null = "0 hello 2025-06-18\n1 s= null\n2 end";
        assert_eq!(
            judged(null),
            " | unknown-response-id null confirmed warning"
        );
        let host = "0 hello 2025-06-18\n1 c= 9\n2 end";
        assert_eq!(judged(host), " | unknown-response-id 9 confirmed warning");
    }

    #[test]
    fn an_answer_is_held_while_its_request_may_be_in_a_blocked_write() {
        let blocked = "0 hello 2025-06-18\n1 read c 500\n1 progress 1\n1.1 s= 1\n1.1 s= 7";
        let returned = format!("{blocked}\n9 call 1 t\n9 call 2 {}", "t".repeat(300));
        assert_eq!(
            judged(&format!("{returned}\n9.1 s= 2\n12 end")),
            "1 answered, 2 answered | unknown-response-id 7 confirmed warning"
        );
        assert_eq!(judged(&format!("{blocked}\n9 eof s\n9 close\n12 end")), "");
    }

    #[test]
    fn answers_that_have_a_request() {
        for (what, script) in [
            (
                "recorded early",
                "0 hello 2025-06-18\n1 s= 1\n1.2 call 1 t\n2 end",
            ),
            (
                "cancelled",
                "0 hello 2025-06-18\n1 call 1 t\n1.5 cancel 1\n1.6 s= 1\n2 end",
            ),
            (
                "an unreadable request",
                "0 hello 2025-06-18\n1 s! null -32700\n2 end",
            ),
            ("unseen", "0 gap c mid-stream\n1 s= 4\n2 end"),
            (
                "in a write that never returned",
                "0 hello 2025-06-18\n1 read c 65536\n1 s= 1\n9 end",
            ),
            (
                "in a write that a gap took",
                "0 hello 2025-06-18\n1 read c 65536\n1 s= 1\n2 gap c\n9 end",
            ),
        ] {
            let verdict = judged(script);
            assert!(
                !verdict.contains("unknown-response-id"),
                "{what}: {verdict}"
            );
        }
    }
}
