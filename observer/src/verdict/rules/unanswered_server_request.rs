//! `unanswered-server-request`: the server asked, and the host never answered, though the call
//! that it belonged to is over.

use super::Rule;
use crate::verdict::about::{About, clauses};
use crate::verdict::desk::{Desk, Draft};
use crate::verdict::judge::State;
use crate::verdict::occurrence::Occurrence;
use crate::verdict::{Culprit, Severity};

pub(super) const ABOUT: About = About {
    name: "unanswered-server-request",
    side: "host",
    severity: Severity::Warning,
    grading: None,
    meaning: "The server asked something (sampling, elicitation, roots, ping), and the host never \
              answered, though the call it belonged to is over.",
    evidence: &[
        "`asked`: when the server asked, with a call of the host in flight.",
        "`call-over`: when the last of those calls was over; the request is still open 5 s later.",
    ],
    exceptions: &[
        "A request whose call is in flight: a person may take hours to answer.",
        "A request that the server cancelled.",
        "A request that came while no call was in flight.",
        "The end of the connection.",
    ],
    clauses: clauses(
        "basic, Responses: responses are sent in reply to requests, and MUST include the same id",
        "",
    ),
};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct UnansweredServerRequest;

impl Rule for UnansweredServerRequest {
    fn see(&mut self, seen: &Occurrence<'_>, _state: &State, desk: &mut Desk) {
        if let Occurrence::Left {
            call, outer_ended, ..
        } = seen
            && !call.clouded
            && !call.tainted
        {
            let message = format!(
                "the host left {} of the server unanswered, and the call it belonged to is over",
                call.title()
            );
            let draft = Draft::new(&ABOUT, Culprit::Host, message)
                .call(call)
                .evidence(
                    "asked",
                    call.sent,
                    format!("the server sent {}", call.title()),
                )
                .evidence("call-over", *outer_ended, "the host's call was over".into());
            desk.report(draft);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::verdict::script::judged;

    #[test]
    fn the_call_is_over_and_the_question_open() {
        for end in ["cancel 1", "s= 1"] {
            let script = format!(
                "0 hello 2025-06-18\n1 call 1 t\n2 s 7 sampling/createMessage\n3 {end}\n9 end"
            );
            let verdict = judged(&script);
            assert!(
                verdict.ends_with(" | unanswered-server-request 7 confirmed warning"),
                "{verdict}"
            );
        }
    }

    #[test]
    fn questions_that_may_be_open() {
        for (what, script) in [
            (
                "its call is in flight",
                "1 call 1 t\n2 s 7 elicitation/create\n9000 end",
            ),
            (
                "another call is",
                "1 call 1 t\n1 call 2 u\n2 s 7 elicitation/create\n3 s= 1\n90 end",
            ),
            (
                "answered in time",
                "1 call 1 t\n2 s 7 roots/list\n3 s= 1\n7 c= 7\n90 end",
            ),
            (
                "withdrawn",
                "1 call 1 t\n2 s 7 roots/list\n3 s= 1\n4 scancel 7\n90 end",
            ),
            ("no call", "2 s 7 ping\n90 end"),
            (
                "the end",
                "1 call 1 t\n2 s 7 roots/list\n3 s= 1\n4 eof c\n5 exit 20\n90 end",
            ),
        ] {
            let verdict = judged(&format!("0 hello 2025-06-18\n{script}"));
            assert!(!verdict.contains('|'), "{what}: {verdict}");
        }
    }

    #[test]
    fn a_question_left_open_holds_up_later_calls_no_more() {
        let script = "0 hello 2025-06-18\n1 call 1 t\n2 s 7 roots/list\n3 s= 1\n20 call 2 t\n\
                      21 key-esc 10\n60 end";
        assert!(judged(script).contains("abandoned-call 2 probable warning"));
    }
}
