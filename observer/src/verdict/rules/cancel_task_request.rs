//! `cancel-task-request`: a task is cancelled with `tasks/cancel`, not with the notification.

use super::Rule;
use crate::session::Side;
use crate::verdict::about::About;
use crate::verdict::call::shown;
use crate::verdict::desk::{Desk, Draft};
use crate::verdict::judge::State;
use crate::verdict::occurrence::Occurrence;
use crate::verdict::{Culprit, Severity};

pub(super) const ABOUT: About = About {
    name: "cancel-task-request",
    side: "host",
    severity: Severity::Warning,
    grading: None,
    meaning: "The host cancelled a request that had become a task; a task is cancelled with \
              `tasks/cancel`.",
    evidence: &["`task`: the answer that created the task; then `cancel`."],
    exceptions: &[
        "A cancellation before the task is created: there is no task to name yet.",
        "A cancellation of a `tasks/result` that waits: it only stops waiting.",
    ],
    clauses: [
        "",
        "",
        "",
        "basic/utilities/cancellation: for task-augmented requests tasks/cancel MUST be used \
         instead of the cancellation notification",
        "extension io.modelcontextprotocol/tasks: notifications/cancelled MUST NOT be used to \
         cancel a task",
    ],
};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct CancelTaskRequest;

impl Rule for CancelTaskRequest {
    fn see(&mut self, seen: &Occurrence<'_>, _state: &State, desk: &mut Desk) {
        if let Occurrence::CancelledPast { past, cancel, .. } = seen
            && past.call.from == Side::Client
            && let Some(task) = &past.task
        {
            let task = shown(task);
            let message = format!(
                "the host cancelled {}, which had become the task {task}",
                past.call.title()
            );
            let draft = Draft::new(&ABOUT, Culprit::Host, message)
                .past(past)
                .evidence(
                    "task",
                    past.ended,
                    format!("the answer created the task {task}"),
                )
                .evidence("cancel", cancel.at, "the host cancelled the request".into());
            desk.report(draft);
        }
    }
}
