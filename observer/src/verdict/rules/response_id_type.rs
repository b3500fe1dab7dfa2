//! `response-id-type`: `"2"` answers `2`.

use super::{Rule, culprit};
use crate::verdict::Severity;
use crate::verdict::about::{About, clauses};
use crate::verdict::desk::{Desk, Draft};
use crate::verdict::judge::State;
use crate::verdict::occurrence::Occurrence;

pub(super) const ABOUT: About = About {
    name: "response-id-type",
    side: "server or host",
    severity: Severity::Info,
    grading: None,
    meaning: "The answer has the id with another JSON type: `\"2\"` answers `2`. The two are \
              paired, as the TypeScript and Python SDKs do.",
    evidence: &["`request` and `answer`, with the id as each wrote it."],
    exceptions: &[
        "Two requests under `2` and `\"2\"`, each answered as it was written.",
        "The same number written otherwise: `2.0` is `2`.",
    ],
    clauses: clauses(
        "basic, Responses: responses MUST include the same id as the request they correspond to",
        "basic, Responses: responses MUST include the same id as the request they correspond to",
    ),
};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct ResponseIdType;

impl Rule for ResponseIdType {
    fn see(&mut self, seen: &Occurrence<'_>, _state: &State, desk: &mut Desk) {
        if let Occurrence::Answered {
            call,
            answer,
            written: Some(written),
            ..
        } = seen
        {
            let (side, who) = culprit(call.from.peer());
            let message = format!(
                "the {who} answered {} under id {written}, but the request has id {}",
                call.title(),
                call.id
            );
            let draft = Draft::new(&ABOUT, side, message)
                .call(call)
                .evidence("request", call.sent, format!("id {}", call.id))
                .evidence("answer", answer.at, format!("id {written}"));
            desk.report(draft);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::verdict::script::judged;

    #[test]
    fn a_string_answers_a_number() {
        let script = "0 hello 2025-06-18\n1 call 2 t\n2 s= \"2\"\n3 end";
        assert_eq!(
            judged(script),
            "2 answered | response-id-type 2 confirmed info"
        );
    }

    #[test]
    fn a_number_may_be_written_otherwise() {
        let script = "0 hello 2025-06-18\n1 call 1 t\n2 progress 1.0\n2 s= 1.0\n3 call 2 t\n\
                      4 cancel 2e0\n5 s= 3.0\n5.1 call 3 t\n6 end";
        assert_eq!(judged(script), "1 answered, 2 cancelled, 3 answered");
        let never = "0 hello 2025-06-18\n1 call 1 t\n2 s= 1.5\n3 s= 1\n4 end";
        assert_eq!(
            judged(never),
            "1 answered | unknown-response-id 1.5 confirmed warning"
        );
    }

    #[test]
    fn both_are_in_flight() {
        let script = "0 hello 2025-06-18\n1 call 2 t\n1 c \"2\" ping\n2 s= \"2\"\n2 s= 2\n3 end";
        assert_eq!(judged(script), "\"2\" answered, 2 answered");
    }
}
