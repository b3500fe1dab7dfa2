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
