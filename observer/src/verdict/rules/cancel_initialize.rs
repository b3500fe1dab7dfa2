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

#[cfg(test)]
mod tests {
    use crate::verdict::script::judged;

    #[test]
    fn the_handshake_is_cancelled() {
        let params = r#"{"protocolVersion":"2025-11-25"}"#;
        let script = format!("1 c 0 initialize {params}\n61 cancel 0");
        assert_eq!(judged(&script), " | cancel-initialize 0 confirmed warning");
    }

    #[test]
    fn after_its_answer_it_is_stale_and_a_probe_may_be_cancelled() {
        let stale = "0 hello 2025-11-25\n9 cancel 0";
        assert_eq!(judged(stale), " | stale-cancel 0 confirmed info");
        assert_eq!(
            judged("1 c \"p\" server/discover\n9 cancel \"p\""),
            "\"p\" cancelled"
        );
    }
}
