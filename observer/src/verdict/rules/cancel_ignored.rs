//! `cancel-ignored`: results or progress keep coming well after the cancellation.

use std::collections::HashMap;

use super::Rule;
use crate::capture::Timestamp;
use crate::jsonrpc::Outcome as Answered;
use crate::session::{ConnId, Side};
use crate::verdict::about::{About, clauses};
use crate::verdict::call::{Past, Seq, spoken};
use crate::verdict::connection::Connection;
use crate::verdict::desk::{Desk, Draft};
use crate::verdict::judge::State;
use crate::verdict::occurrence::Occurrence;
use crate::verdict::{Cancellation, Culprit, Outcome, Severity};

pub(super) const ABOUT: About = About {
    name: "cancel-ignored",
    side: "server",
    severity: Severity::Warning,
    grading: None,
    meaning: "Results or progress keep coming well after the cancellation.",
    evidence: &[
        "`cancel`, then `late-progress` or `late-answer` more than the race time (500 ms) later. \
         The finding for the first late message is superseded when the answer comes.",
        "`unread-cancel`: where it is seen what the server reads, that it had not read the \
         cancellation by then.",
    ],
    exceptions: &[
        "What comes within 500 ms of the cancellation, or was in the pipe already.",
        "An error: servers may say in their own way that they stopped (the Python SDK 1.x answers \
         with code 0, \"Request cancelled\").",
        "A request that cannot be cancelled: `initialize`.",
        "A task that was created: this notification does not end it.",
    ],
    clauses: clauses(
        "basic/utilities/cancellation: receivers SHOULD stop processing the cancelled request, \
         and SHOULD NOT send a response",
        "basic/transports/stdio: after a cancellation the server MUST NOT send any further \
         messages for the request (basic/patterns/cancellation: SHOULD NOT)",
    ),
};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct CancelIgnored {
    /// What was said for late progress, until the answer comes.
    progress: HashMap<(ConnId, Seq), (Option<u32>, Timestamp)>,
}

impl Rule for CancelIgnored {
    fn see(&mut self, seen: &Occurrence<'_>, state: &State, desk: &mut Desk) {
        match seen {
            Occurrence::ProgressPast { conn, past, at } => {
                let key = (conn.id, past.call.seq);
                if let Some(cancel) = ignored(past, *at, state)
                    && !self.progress.contains_key(&key)
                {
                    let lag = spoken(at.since(cancel.at));
                    let message = format!(
                        "the server goes on with {} {lag} after its cancellation",
                        past.call.title()
                    );
                    let detail = format!("progress came {lag} after the cancellation");
                    let draft =
                        draft(conn, past, cancel, message).evidence("late-progress", *at, detail);
                    self.progress.insert(key, (desk.report(draft), *at));
                }
            }
            Occurrence::Echo { conn, past, answer } if answer.outcome == Answered::Result => {
                let before = self.progress.remove(&(conn.id, past.call.seq));
                if let Some(cancel) = ignored(past, answer.at, state) {
                    let lag = spoken(answer.at.since(cancel.at));
                    let message = format!(
                        "the server answered {} {lag} after its cancellation",
                        past.call.title()
                    );
                    let detail = format!("the result came {lag} after the cancellation");
                    let mut draft = draft(conn, past, cancel, message)
                        .evidence("late-answer", answer.at, detail)
                        .supersedes(before.and_then(|(number, _)| number));
                    if let Some((_, at)) = before {
                        let detail = "progress came after the cancellation".into();
                        draft = draft.evidence("late-progress", at, detail);
                    }
                    desk.report(draft);
                }
            }
            Occurrence::Gone { conn } => self.progress.retain(|(of, _), _| *of != conn.id),
            _ => {}
        }
    }
}

/// The cancellation that a message at `at` ignores, if it does.
fn ignored<'a>(past: &'a Past, at: Timestamp, state: &State) -> Option<&'a Cancellation> {
    let by_client = past.call.from == Side::Client && past.outcome == Outcome::Cancelled;
    let cancel = past
        .call
        .cancel
        .as_ref()
        .filter(|_| by_client && !past.call.may_stay_open())?;
    (at.since(cancel.at) > state.settings.race).then_some(cancel)
}

fn draft(conn: &Connection, past: &Past, cancel: &Cancellation, message: String) -> Draft {
    let unread = conn.has_read(Side::Client, past.call.cancel_end) == Some(false);
    let message = if unread {
        format!("{message}, which it has not read")
    } else {
        message
    };
    let draft = Draft::new(&ABOUT, Culprit::Server, message)
        .past(past)
        .evidence("cancel", cancel.at, "the host cancelled".into());
    if unread {
        let detail = "the server had not read the cancellation".into();
        draft.evidence("unread-cancel", cancel.at, detail)
    } else {
        draft
    }
}

#[cfg(test)]
mod tests {
    use crate::verdict::Settings;
    use crate::verdict::script::{hear, judged};

    #[test]
    fn the_server_goes_on() {
        let progress =
            "0 hello 2025-06-18\n1 call 1 t\n2 cancel 1\n4 progress 1\n5 progress 1\n6 end";
        assert_eq!(
            judged(progress),
            "1 cancelled | cancel-ignored 1 confirmed warning"
        );
        let answer = "0 hello 2025-06-18\n1 call 1 t\n2 cancel 1\n4 progress 1\n5 s= 1\n6 end";
        assert_eq!(
            judged(answer),
            "1 cancelled | cancel-ignored 1 confirmed warning"
        );
    }

    #[test]
    fn what_a_server_may_still_send() {
        for (what, script) in [
            (
                "what was on its way",
                "2 cancel 1\n2.4 progress 1\n2.4 s= 1",
            ),
            ("an error", "2 cancel 1\n9 s! 1 0"),
        ] {
            let verdict = judged(&format!("0 hello 2025-06-18\n1 call 1 t\n{script}\n20 end"));
            assert_eq!(verdict, "1 cancelled", "{what}");
        }
        assert_eq!(
            judged("1 c 0 initialize\n2 cancel 0\n9 s= 0\n20 end"),
            " | cancel-initialize 0 confirmed warning"
        );
    }

    #[test]
    fn it_is_told_that_the_server_had_not_read_the_cancellation() {
        let script = "1 call 1 t\n1 read c 20\n2 cancel 1\n9 s= 1\n10 end";
        let heard = hear(script, Settings::default());
        assert!(heard.findings[0].message.ends_with("which it has not read"));
        assert!(
            heard.findings[0]
                .evidence
                .iter()
                .any(|it| it.kind == "unread-cancel")
        );
    }
}
