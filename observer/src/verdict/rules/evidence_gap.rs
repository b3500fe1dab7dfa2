//! `evidence-gap`: bytes went by unseen, and what depends on them cannot be judged.

use super::Rule;
use crate::capture::GapReason;
use crate::session::{NoiseKind, Side};
use crate::verdict::about::About;
use crate::verdict::connection::Connection;
use crate::verdict::desk::{Desk, Draft};
use crate::verdict::judge::State;
use crate::verdict::occurrence::Occurrence;
use crate::verdict::{Culprit, Severity};

pub(super) const ABOUT: About = About {
    name: "evidence-gap",
    side: "observer",
    severity: Severity::Warning,
    grading: Some("info where the stream was joined in the middle: that is how `attach` begins"),
    meaning: "Bytes were lost, so verdicts that depend on them say `unknown`.",
    evidence: &["`gap`: where, how much, and why."],
    exceptions: &["Bytes of streams that were found to be no MCP, and are left out on purpose."],
    clauses: [""; 5],
};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct EvidenceGap;

impl Rule for EvidenceGap {
    fn see(&mut self, seen: &Occurrence<'_>, _state: &State, desk: &mut Desk) {
        let draft = match seen {
            Occurrence::Gap {
                conn,
                from,
                offset,
                bytes,
                reason,
            } => gap(conn, *from, *offset, *bytes, *reason, desk),
            Occurrence::Noise { conn, noise, .. } if noise.kind == NoiseKind::Oversized => gap(
                conn,
                noise.from,
                noise.offset.unwrap_or(0),
                Some(noise.bytes),
                GapReason::Oversized,
                desk,
            ),
            Occurrence::Dropped { conn, call } => {
                let message = "there are more requests in flight than the observer keeps".into();
                let detail = format!("{} was dropped from the table", call.title());
                Draft::new(&ABOUT, Culprit::Observer, message)
                    .conn(conn.id)
                    .evidence("gap", call.sent, detail)
            }
            _ => return,
        };
        desk.report(draft);
    }
}

fn gap(
    conn: &Connection,
    from: Side,
    offset: u64,
    bytes: Option<u64>,
    reason: GapReason,
    desk: &Desk,
) -> Draft {
    let whose = match from {
        Side::Client => "host",
        Side::Server => "server",
    };
    let (why, severity) = match reason {
        GapReason::RingFull => ("the ring buffer was full", Severity::Warning),
        GapReason::Unreadable => ("the writer's memory could not be read", Severity::Warning),
        GapReason::MidStream => ("the stream was joined in the middle", Severity::Info),
        GapReason::Oversized => ("the frame was longer than the limit", Severity::Warning),
        GapReason::UnsupportedSyscall => (
            "they moved by a system call that shows no content",
            Severity::Warning,
        ),
    };
    let amount = bytes.map_or("an unknown number of bytes".into(), |bytes| {
        format!("{bytes} bytes")
    });
    let message = format!("{amount} of what the {whose} wrote went by unseen: {why}");
    Draft::new(&ABOUT, Culprit::Observer, message)
        .conn(conn.id)
        .severity(severity)
        .evidence(
            "gap",
            desk.now,
            format!("{amount} from offset {offset}: {why}"),
        )
}

#[cfg(test)]
mod tests {
    use crate::verdict::Settings;
    use crate::verdict::script::{hear, judged};

    #[test]
    fn bytes_are_lost() {
        let script = "0 hello 2025-06-18\n1 call 1 t\n2 gap s\n3 end";
        assert_eq!(judged(script), "1 unknown | evidence-gap confirmed warning");
        assert!(!hear(script, Settings::default()).summary.complete);
        let joined = "0 gap s mid-stream\n1 call 1 t\n2 s= 1\n3 end";
        assert_eq!(judged(joined), "1 answered | evidence-gap confirmed info");
    }

    #[test]
    fn a_gap_right_before_a_request_may_hold_its_answer() {
        assert!(judged("1 gap s\n1.1 call 1 t\n2 end").starts_with("1 unknown"));
        assert!(judged("1 gap s\n1.5 call 1 t\n2 end").starts_with("1 pending"));
    }

    #[test]
    fn an_answer_after_the_gap_is_an_answer() {
        let script =
            "0 hello 2025-06-18\n1 call 1 t\n1 call 2 t\n2 gap s\n3 s= 1\n4 cancel 2\n5 end";
        assert!(judged(script).starts_with("1 answered, 2 cancelled |"));
    }
}
