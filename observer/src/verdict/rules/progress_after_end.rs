//! `progress-after-end`: progress for a request that is over, or for a token never given.

use std::collections::HashSet;

use super::Rule;
use crate::session::{ConnId, Side};
use crate::verdict::about::{About, clauses};
use crate::verdict::call::Seq;
use crate::verdict::desk::{Desk, Draft};
use crate::verdict::judge::State;
use crate::verdict::occurrence::Occurrence;
use crate::verdict::{Culprit, Severity};

pub(super) const ABOUT: About = About {
    name: "progress-after-end",
    side: "server",
    severity: Severity::Info,
    grading: None,
    meaning: "Progress for a request that is over, or for a token that was never given.",
    evidence: &["`progress`, and `answer` where the request was answered."],
    exceptions: &[
        "Progress whose record comes before its request's: it is held for 250 ms.",
        "Progress while a write of the asking side still blocks, of which more was read than is seen.",
        "Progress after a cancellation: that is `cancel-ignored`.",
        "Progress of a task: its token lives as long as the task (2025-11-25).",
        "A token that may have been given unseen, or is too old to be remembered.",
    ],
    clauses: clauses(
        "basic/utilities/progress: progress notifications MUST only reference tokens of an active \
         request, and MUST stop after completion",
        "basic/patterns/progress: progress notifications MUST only reference tokens of an active \
         request, and MUST stop after completion",
    ),
};

/// How many requests are remembered that had their finding.
const REMEMBERED: usize = 4096;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct ProgressAfterEnd {
    said: HashSet<(ConnId, Seq)>,
}

impl Rule for ProgressAfterEnd {
    fn see(&mut self, seen: &Occurrence<'_>, state: &State, desk: &mut Desk) {
        let draft = match seen {
            Occurrence::ProgressPast { past, at, .. }
                if past.answered && past.task.is_none() && past.call.from == Side::Client =>
            {
                if self.said.len() >= REMEMBERED {
                    self.said.clear();
                }
                if !self.said.insert((past.call.conn, past.call.seq)) {
                    return;
                }
                let message = format!(
                    "the server reports progress of {} after its answer",
                    past.call.title()
                );
                Draft::new(&ABOUT, Culprit::Server, message)
                    .past(past)
                    .evidence("answer", past.ended, "the answer".into())
                    .evidence("progress", *at, "progress after it".into())
            }
            Occurrence::ProgressUnknown { conn, token, at } => {
                let message = format!("the server reports progress for token {token}, never given");
                Draft::new(&ABOUT, Culprit::Server, message)
                    .conn(conn.id)
                    .revision(state.revision(conn.id))
                    .evidence("progress", *at, format!("token {token}"))
            }
            _ => return,
        };
        desk.report(draft);
    }
}

#[cfg(test)]
mod tests {
    use crate::verdict::script::judged;

    #[test]
    fn progress_of_nothing() {
        let over = "0 hello 2025-06-18\n1 call 1 t\n2 s= 1\n3 progress 1\n4 progress 1\n5 end";
        assert_eq!(
            judged(over),
            "1 answered | progress-after-end 1 confirmed info"
        );
        let never = "0 hello 2025-06-18\n1 progress 77\n2 end";
        assert_eq!(judged(never), " | progress-after-end confirmed info");
    }

    #[test]
    fn progress_that_has_its_request() {
        let made = r#"{"task":{"taskId":"a","status":"completed"}}"#;
        let params = r#"{"name":"t","task":{},"_meta":{"progressToken":1}}"#;
        for (what, script) in [
            (
                "recorded early",
                "1 progress 1\n1.1 call 1 t\n2 s= 1\n3 end".into(),
            ),
            (
                "cancelled",
                "1 call 1 t\n2 cancel 1\n2.3 progress 1\n3 end".into(),
            ),
            ("unseen", "0 gap c mid-stream\n1 progress 1\n2 end".into()),
            (
                "a task",
                format!("1 c 1 tools/call {params}\n2 s= 1 {made}\n3 progress 1\n4 end"),
            ),
        ] {
            let verdict = judged(&format!("0 hello 2025-11-25\n{script}"));
            assert!(!verdict.contains("progress-after-end"), "{what}: {verdict}");
        }
    }
}
