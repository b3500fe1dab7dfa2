//! `batch-not-allowed`: a JSON array where the revision has no batches.

use std::collections::HashSet;

use super::{Rule, culprit};
use crate::session::{ConnId, Side};
use crate::verdict::about::About;
use crate::verdict::desk::{Desk, Draft};
use crate::verdict::judge::State;
use crate::verdict::occurrence::Occurrence;
use crate::verdict::{Revision, Severity};

pub(super) const ABOUT: About = About {
    name: "batch-not-allowed",
    side: "host or server",
    severity: Severity::Info,
    grading: None,
    meaning: "A JSON array where the revision has no batches.",
    evidence: &["`batch`: the first one; a side has one finding."],
    exceptions: &[
        "2025-03-26, where both sides must take batches.",
        "A connection whose revision is not known.",
    ],
    clauses: [
        "schema, JSONRPCMessage: a request, a notification or a response; no arrays",
        "",
        "changelog: support for JSON-RPC batching was removed",
        "changelog of 2025-06-18: support for JSON-RPC batching was removed",
        "changelog of 2025-06-18: support for JSON-RPC batching was removed",
    ],
};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct BatchNotAllowed {
    said: HashSet<(ConnId, Side)>,
}

impl Rule for BatchNotAllowed {
    fn see(&mut self, seen: &Occurrence<'_>, _state: &State, desk: &mut Desk) {
        match seen {
            Occurrence::Batch {
                conn,
                from,
                revision: Some(revision),
                count,
            } if *revision != Revision::R20250326 => {
                if self.said.insert((conn.id, *from)) {
                    let (side, who) = culprit(*from);
                    let message = format!(
                        "the {who} sent a batch, which {} does not have",
                        revision.as_str()
                    );
                    let draft = Draft::new(&ABOUT, side, message)
                        .conn(conn.id)
                        .revision(Some(*revision))
                        .evidence("batch", desk.now, format!("{count} messages in one array"));
                    desk.report(draft);
                }
            }
            Occurrence::Gone { conn } => self.said.retain(|(of, _)| *of != conn.id),
            _ => {}
        }
    }
}
