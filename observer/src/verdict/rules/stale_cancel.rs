//! `stale-cancel`: a cancellation for a request that had been answered well before.

use std::time::Duration;

use super::Rule;
use crate::session::Side;
use crate::verdict::about::About;
use crate::verdict::call::{Past, spoken};
use crate::verdict::connection::Connection;
use crate::verdict::desk::{Desk, Draft};
use crate::verdict::host::{Cause, cause};
use crate::verdict::judge::State;
use crate::verdict::occurrence::Occurrence;
use crate::verdict::{Cancellation, Confidence, Culprit, Outcome, Settings, Severity};

const ABOUT: About = About {
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
    clauses: [
        "basic/utilities/cancellation: cancellation notifications MUST only reference requests \
         that are believed to still be in progress",
        "basic/utilities/cancellation: cancellation notifications MUST only reference requests \
         that are believed to still be in progress",
        "basic/utilities/cancellation: cancellation notifications MUST only reference requests \
         that are believed to still be in progress",
        "basic/utilities/cancellation: cancellation notifications MUST only reference requests \
         that are believed to still be in progress",
        "basic/patterns/cancellation: cancellation notifications MUST only reference requests \
         that are believed to still be in progress",
    ],
};

/// Two writes this close to each other have crossed.
const CROSSING: Duration = Duration::from_millis(1);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct StaleCancel;

impl Rule for StaleCancel {
    fn about(&self) -> &'static About {
        &ABOUT
    }

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
