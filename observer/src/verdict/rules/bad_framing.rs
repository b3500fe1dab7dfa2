//! `bad-framing`: messages that are not one line of UTF-8 JSON each.

use std::collections::HashSet;

use bytes::Bytes;

use super::{Rule, culprit};
use crate::jsonrpc::Frame;
use crate::session::{ConnId, Noise, NoiseKind, Side};
use crate::verdict::Severity;
use crate::verdict::about::{About, clauses};
use crate::verdict::call::shown;
use crate::verdict::desk::{Desk, Draft};
use crate::verdict::judge::State;
use crate::verdict::occurrence::Occurrence;

pub(super) const ABOUT: About = About {
    name: "bad-framing",
    side: "host or server",
    severity: Severity::Warning,
    grading: None,
    meaning: "Content-Length blocks, JSON over several lines, a missing last newline, invalid \
              UTF-8; and anything that a host writes to a server's stdin and is no message.",
    evidence: &["`line`: the first of its kind; a side has one finding of each kind."],
    exceptions: &[
        "CRLF at the end of a line, and a byte order mark.",
        "A last line that is cut in the middle: the writer was stopped.",
        "An empty line of a host.",
        "Several messages in one write, or one message in several.",
    ],
    clauses: clauses(
        "basic/transports, stdio: messages are delimited by newlines and MUST NOT contain embedded \
         newlines; JSON-RPC messages MUST be UTF-8 (since 2025-03-26)",
        "basic/transports/stdio: messages are delimited by newlines and MUST NOT contain embedded \
         newlines; JSON-RPC messages MUST be UTF-8",
    ),
};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct BadFraming {
    said: HashSet<(ConnId, Side, &'static str)>,
}

impl Rule for BadFraming {
    fn see(&mut self, seen: &Occurrence<'_>, state: &State, desk: &mut Desk) {
        match seen {
            Occurrence::Noise {
                conn,
                noise,
                spread,
            } => {
                let Some(what) = fault(noise, *spread) else {
                    return;
                };
                if self.said.insert((conn.id, noise.from, what)) {
                    let (side, who) = culprit(noise.from);
                    let text = shown(&String::from_utf8_lossy(&noise.text));
                    let draft = Draft::new(&ABOUT, side, format!("the {who} wrote {what}"))
                        .conn(conn.id)
                        .revision(state.revision(conn.id))
                        .evidence("line", desk.now, format!("{} bytes: {text}", noise.bytes));
                    desk.report(draft);
                }
            }
            Occurrence::Gone { conn } => self.said.retain(|(of, ..)| *of != conn.id),
            _ => {}
        }
    }
}

fn fault(noise: &Noise, spread: Option<usize>) -> Option<&'static str> {
    if spread.is_some() {
        return Some("a message that is spread over several lines");
    }
    match noise.kind {
        NoiseKind::ContentLength => Some("Content-Length headers instead of lines"),
        NoiseKind::InvalidUtf8 => Some("bytes that are no UTF-8"),
        NoiseKind::Unterminated if is_message(noise) => {
            Some("a last message without a newline, which nobody can tell to be complete")
        }
        NoiseKind::Text | NoiseKind::InvalidJson if noise.from == Side::Client => {
            Some("a line that is no JSON-RPC message to the server's stdin")
        }
        NoiseKind::Text
        | NoiseKind::InvalidJson
        | NoiseKind::Unterminated
        | NoiseKind::Blank
        | NoiseKind::Oversized => None,
    }
}

fn is_message(noise: &Noise) -> bool {
    Frame::parse(Bytes::clone(&noise.text)).is_ok()
}

#[cfg(test)]
mod tests {
    use crate::verdict::script::judged;

    #[test]
    fn frames_of_another_kind() {
        for (noise, side) in [
            ("s content-length Content-Length: 30", ""),
            ("c content-length Content-Length: 30", ""),
            ("s invalid-utf8 x", ""),
            (
                "s unterminated {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
                "",
            ),
            ("c text hello", ""),
        ] {
            let verdict = judged(&format!(
                "0 hello 2025-06-18\n1 noise {noise}\n2 noise {noise}\n3 end"
            ));
            assert_eq!(verdict, " | bad-framing confirmed warning", "{noise}{side}");
        }
    }

    #[test]
    fn json_over_several_lines() {
        let script = "0 hello 2025-06-18\n1 noise s invalid-json {\n1 noise s text \"jsonrpc\":\"2.0\",\n\
                      1 noise s text \"method\":\"x\"\n1 noise s text }\n2 end";
        assert_eq!(judged(script), " | bad-framing confirmed warning");
        let broken = "0 hello 2025-06-18\n1 noise s invalid-json {\n1 noise s text oops\n2 end";
        assert_eq!(judged(broken), " | stdout-noise confirmed warning");
    }

    #[test]
    fn a_line_that_is_cut_and_an_empty_one() {
        for noise in [
            "s unterminated {\"jsonrpc\":\"2.0\",\"id\":1,\"res",
            "c blank ",
        ] {
            let verdict = judged(&format!("0 hello 2025-06-18\n1 noise {noise}\n2 end"));
            assert!(!verdict.contains('|'), "{noise}: {verdict}");
        }
    }
}
