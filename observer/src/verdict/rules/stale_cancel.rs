//! `stale-cancel`: a cancellation for a request that had been answered well before.

use std::time::Duration;

use super::Rule;
use crate::session::Side;
use crate::verdict::about::{About, clauses};
use crate::verdict::call::{Past, spoken};
use crate::verdict::connection::Connection;
use crate::verdict::desk::{Desk, Draft};
use crate::verdict::host::{Cause, cause};
use crate::verdict::judge::State;
use crate::verdict::occurrence::Occurrence;
use crate::verdict::{Cancellation, Confidence, Culprit, Outcome, Settings, Severity};

pub(super) const ABOUT: About = About {
    name: "stale-cancel",
    side: "host",
    severity: Severity::Info,
    grading: None,
    meaning: "A cancellation for a request that had been answered well before.",
    evidence: &[
        "`answer`, then `cancel`. Where it is seen when the host read the answer, only a \
         cancellation that was sent after that counts.",
        "Within the race time (500 ms) it is only possible, after that it is confirmed.",
    ],
    exceptions: &[
        "A cancellation that crosses the answer on its way: sent before the host has read the \
         answer, or within 1 ms of it.",
        "A cancellation that gives a time limit as its reason, within 500 ms of the answer.",
        "Hosts that are known to send one after each answer as a habit (opencode).",
        "A second cancellation of a request that was cancelled.",
    ],
    clauses: clauses(
        "basic/utilities/cancellation: cancellation notifications MUST only reference requests \
         that are believed to still be in progress",
        "basic/patterns/cancellation: cancellation notifications MUST only reference requests \
         that are believed to still be in progress",
    ),
};

/// Two writes this close to each other have crossed.
const CROSSING: Duration = Duration::from_millis(1);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct StaleCancel;

impl Rule for StaleCancel {
    fn see(&mut self, seen: &Occurrence<'_>, state: &State, desk: &mut Desk) {
        if let Occurrence::CancelledPast { conn, past, cancel } = seen
            && past.call.from == Side::Client
            && is_stale(conn, past, cancel, &state.settings)
        {
            let lag = cancel.at.since(past.ended);
            let sure = lag > state.settings.race;
            let message = format!(
                "the host cancelled {} {} after its answer",
                past.call.title(),
                spoken(lag)
            );
            let draft = Draft::new(&ABOUT, Culprit::Host, message)
                .past(past)
                .confidence(if sure {
                    Confidence::Confirmed
                } else {
                    Confidence::Possible
                })
                .evidence("answer", past.ended, "the server answered".into())
                .evidence("cancel", cancel.at, reason(cancel));
            desk.report(draft);
        }
    }
}

fn is_stale(conn: &Connection, past: &Past, cancel: &Cancellation, settings: &Settings) -> bool {
    let answered = matches!(past.outcome, Outcome::Answered | Outcome::Failed);
    let by_habit = conn
        .known
        .as_ref()
        .is_some_and(|host| host.cancels_answered);
    if !answered || by_habit || past.task.is_some() {
        return false;
    }
    let unread = conn.has_read(Side::Server, past.answer_end) == Some(false);
    let by_limit = cancel.reason.as_deref().and_then(cause) == Some(Cause::Timeout);
    let crossing = if by_limit { settings.race } else { CROSSING };
    !unread && cancel.at.since(past.ended) > crossing
}

fn reason(cancel: &Cancellation) -> String {
    match &cancel.reason {
        Some(reason) => format!(
            "the host cancelled: {}",
            crate::verdict::call::shown(reason)
        ),
        None => "the host cancelled without a reason".into(),
    }
}

#[cfg(test)]
mod tests {
    use crate::verdict::script::judged;

    #[test]
    fn a_cancellation_after_the_answer() {
        let stale = |lag: f64, reason: &str| {
            judged(&format!(
                "0 hello 2025-11-25\n1 call 1 t\n2 s= 1\n{} cancel 1 {reason}",
                2.0 + lag
            ))
        };
        assert_eq!(
            stale(5.0, "turn over"),
            "1 answered | stale-cancel 1 confirmed info"
        );
        assert_eq!(
            stale(0.002, "turn over"),
            "1 answered | stale-cancel 1 possible info"
        );
        assert_eq!(stale(0.0005, "turn over"), "1 answered", "they crossed");
        assert_eq!(
            stale(0.3, "timed out after 1.0s"),
            "1 answered",
            "two clocks ran out"
        );
    }

    #[test]
    fn the_host_had_not_read_the_answer_yet() {
        let script = |read: u32| {
            format!("0 hello 2025-11-25\n1 call 1 t\n2 s= 1\n2.1 read s {read}\n2.2 cancel 1")
        };
        assert_eq!(judged(&script(5)), "1 answered");
        assert_eq!(
            judged(&script(9999)),
            "1 answered | stale-cancel 1 possible info"
        );
    }

    #[test]
    fn habits_and_second_cancellations() {
        let habit = "0 hello 2025-11-25 opencode 1.18.33\n1 call 1 t\n2 s= 1\n2.1 cancel 1";
        assert_eq!(judged(habit), "1 answered");
        let twice = "0 hello 2025-11-25\n1 call 1 t\n2 cancel 1\n9 cancel 1";
        assert_eq!(judged(twice), "1 cancelled");
    }
}
