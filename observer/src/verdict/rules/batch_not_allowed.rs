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
            } if *revision != Revision::R20250326 && self.said.insert((conn.id, *from)) => {
                let (side, who) = culprit(*from);
                let revision = *revision;
                let message = format!(
                    "the {who} sent a batch, which {} does not have",
                    revision.as_str()
                );
                let draft = Draft::new(&ABOUT, side, message)
                    .conn(conn.id)
                    .revision(Some(revision))
                    .evidence("batch", desk.now, format!("{count} messages in one array"));
                desk.report(draft);
            }
            Occurrence::Gone { conn } => self.said.retain(|(of, _)| *of != conn.id),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::verdict::script::judged;

    const BATCH: &str = r#"raw c [{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]"#;

    #[test]
    fn a_batch_where_there_are_none() {
        for revision in ["2024-11-05", "2025-06-18", "2025-11-25"] {
            let script = format!("0 hello {revision}\n1 {BATCH}\n2 s= 2\n2 s= 1\n3 end");
            let verdict = judged(&script);
            assert_eq!(
                verdict,
                "2 answered, 1 answered | batch-not-allowed confirmed info"
            );
        }
    }

    #[test]
    fn a_batch_where_it_is_right_or_nobody_knows() {
        for hello in ["0 hello 2025-03-26", "0 c 9 ping\n0 s= 9"] {
            let verdict = judged(&format!("{hello}\n1 {BATCH}\n2 s= 2\n2 s= 1\n3 end"));
            assert!(!verdict.contains('|'), "{verdict}");
        }
    }
}
