//! `late-cancel`: the host did cancel, but long after it had given up.

use super::Rule;
use crate::verdict::about::{About, clauses};
use crate::verdict::call::{Call, Weight, shown, spoken};
use crate::verdict::desk::{Desk, Draft};
use crate::verdict::judge::State;
use crate::verdict::occurrence::Occurrence;
use crate::verdict::{Cancellation, Confidence, Culprit, Severity};

pub(super) const ABOUT: About = About {
    name: "late-cancel",
    side: "host",
    severity: Severity::Warning,
    grading: Some(
        "info where it is only possible that the host had given up before; so also where the user \
         had interrupted it once more just before, as the first time may have meant something else",
    ),
    meaning: "The host did cancel, but long after it had given up.",
    evidence: &[
        "The evidence of `abandoned-call`, which this finding supersedes, and then `cancel`.",
    ],
    exceptions: &[
        "A cancellation within the grace time (2 s) of an interrupt or a time limit, or within \
         500 ms of a retry.",
        "A cancellation after hours: without evidence that the host gave up before, it is simply \
         one.",
    ],
    clauses: clauses(
        "basic/utilities/cancellation: a party that no longer needs a result sends the \
         cancellation notification; basic/lifecycle, Timeouts: when the timeout has passed",
        "basic/transports/stdio, Cancellation: to cancel a request the client MUST send \
         notifications/cancelled",
    ),
};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct LateCancel;

impl Rule for LateCancel {
    fn see(&mut self, seen: &Occurrence<'_>, state: &State, desk: &mut Desk) {
        if let Occurrence::Cancelled { call, cancel } = seen
            && let Some(case) = &call.case
            && let Some(confidence) = case.confidence()
            && let Some(since) = call.given_up()
        {
            let again = interrupted_again(call, cancel, state);
            let confidence = if again {
                Confidence::Possible
            } else {
                confidence
            };
            let severity = match confidence {
                Confidence::Possible => Severity::Info,
                Confidence::Probable | Confidence::Confirmed => ABOUT.severity,
            };
            let lag = spoken(cancel.at.since(since));
            let first = case.clues.iter().find(|clue| clue.weight != Weight::Effect);
            let why = first.map_or("", |clue| clue.evidence.detail.as_str());
            let message = format!("the host cancelled {} only {lag} after {why}", call.title());
            let draft = Draft::new(&ABOUT, Culprit::Host, message)
                .call(call)
                .severity(severity)
                .confidence(confidence)
                .all_evidence(case.clues.iter().map(|clue| clue.evidence.clone()))
                .evidence("cancel", cancel.at, reason(cancel))
                .supersedes(desk.standing(call));
            desk.report(draft);
        }
    }
}

/// Whether the host answered a later interrupt as it should, and only an earlier one speaks
/// against it.
fn interrupted_again(call: &Call, cancel: &Cancellation, state: &State) -> bool {
    let Some(conn) = state.conns.get(&call.conn) else {
        return false;
    };
    let prompt = conn
        .interrupted
        .is_some_and(|at| cancel.at.since(at) <= state.settings.grace);
    let own = |kind: &str| matches!(kind, "key-esc" | "key-ctrl-c" | "sigint");
    let only = call.case.as_ref().is_some_and(|case| {
        let mut clues = case
            .clues
            .iter()
            .filter(|clue| clue.weight != Weight::Effect);
        clues.all(|clue| own(clue.evidence.kind))
    });
    prompt && only
}

fn reason(cancel: &Cancellation) -> String {
    match &cancel.reason {
        Some(reason) => format!("the host cancelled: {}", shown(reason)),
        None => "the host cancelled without a reason".into(),
    }
}

#[cfg(test)]
mod tests {
    use crate::verdict::Settings;
    use crate::verdict::script::{hear, judged};

    #[test]
    fn a_cancellation_long_after_the_interrupt() {
        let script = "0 hello 2025-06-18\n1 call 1 t\n3 key-esc 10\n600 cancel 1\n601 end";
        assert_eq!(
            judged(script),
            "1 cancelled | late-cancel 1 probable warning"
        );
        let heard = hear(script, Settings::default());
        let [first, late] = &heard.findings[..] else {
            panic!("two findings")
        };
        assert_eq!(
            (first.rule, late.supersedes),
            ("abandoned-call", Some(first.number))
        );
        assert!(
            late.message.contains("10 min after the user pressed Esc"),
            "{}",
            late.message
        );
    }

    #[test]
    fn cancellations_in_time() {
        for script in [
            "1 call 1 t\n3 key-esc 10\n4.9 cancel 1",
            "1 call 1 t\n9000 cancel 1",
            "1 call 1 t\n60 call 2 t\n60.3 cancel 1\n61 s= 2",
        ] {
            let verdict = judged(&format!("0 hello 2025-06-18\n{script}"));
            assert!(!verdict.contains('|'), "{verdict}");
        }
    }

    #[test]
    fn the_first_esc_may_have_closed_a_menu() {
        let script = "0 hello 2025-06-18\n1 call 1 t\n3 key-esc 10\n60 key-esc 10\n60.3 cancel 1";
        assert_eq!(judged(script), "1 cancelled | late-cancel 1 possible info");
    }
}
