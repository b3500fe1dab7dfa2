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

#[cfg(test)]
mod tests {
    use crate::verdict::script::judged;

    const TASK: &str =
        "0 hello 2025-11-25\n1 c 1 tools/call {\"name\":\"t\",\"task\":{\"ttl\":9000}}\n";
    const MADE: &str = "2 s= 1 {\"task\":{\"taskId\":\"a\",\"status\":\"working\"}}\n";

    #[test]
    fn a_request_that_became_a_task_is_cancelled() {
        let script = format!("{TASK}{MADE}9 cancel 1");
        assert_eq!(
            judged(&script),
            "1 answered | cancel-task-request 1 confirmed warning"
        );
    }

    #[test]
    fn before_there_is_a_task_and_while_its_result_is_waited_for() {
        assert_eq!(judged(&format!("{TASK}1.5 cancel 1")), "1 cancelled");
        let waiting = "3 c 2 tasks/result {\"taskId\":\"a\"}\n9 cancel 2";
        assert_eq!(
            judged(&format!("{TASK}{MADE}{waiting}")),
            "1 answered, 2 cancelled"
        );
    }
}
