//! `stdout-noise`: something that is no MCP message on the server's stdout.

use std::collections::HashMap;

use super::Rule;
use crate::session::{ConnId, Noise, NoiseKind, Side};
use crate::verdict::about::{About, clauses};
use crate::verdict::call::shown;
use crate::verdict::desk::{Desk, Draft};
use crate::verdict::judge::State;
use crate::verdict::occurrence::Occurrence;
use crate::verdict::{Culprit, Severity};

pub(super) const ABOUT: About = About {
    name: "stdout-noise",
    side: "server",
    severity: Severity::Warning,
    grading: Some("info for empty lines, which hosts pass over"),
    meaning: "Something that is no MCP message on stdout.",
    evidence: &[
        "`line`: the first such line. A connection has one finding; the last one for it says how \
         many lines there were.",
    ],
    exceptions: &[
        "stderr: a server may write there what it likes.",
        "A line that ends in CRLF, or begins with a byte order mark.",
        "A frame that is longer than the observer's own limit: that is an `evidence-gap`.",
        "What is JSON-RPC in the wrong frame is `bad-framing`.",
    ],
    clauses: clauses(
        "basic/transports, stdio: the server MUST NOT write anything to its stdout that is not a \
         valid MCP message",
        "basic/transports/stdio: the server MUST NOT write anything to its stdout that is not a \
         valid MCP message",
    ),
};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct StdoutNoise {
    heard: HashMap<ConnId, Heard>,
}

#[derive(Debug)]
struct Heard {
    number: Option<u32>,
    severity: Severity,
    lines: u64,
    first: Noise,
    at: crate::capture::Timestamp,
}

impl Rule for StdoutNoise {
    fn see(&mut self, seen: &Occurrence<'_>, state: &State, desk: &mut Desk) {
        match seen {
            Occurrence::Noise {
                conn,
                noise,
                spread: None,
            } if noise.from == Side::Server => {
                if let Some(severity) = severity(noise.kind) {
                    self.hear(conn.id, noise, severity, state, desk);
                }
            }
            Occurrence::Gone { conn } => {
                if let Some(heard) = self.heard.remove(&conn.id) {
                    sum_up(conn.id, &heard, state, desk);
                }
            }
            _ => {}
        }
    }

    fn finish(&mut self, state: &State, desk: &mut Desk) {
        let mut heard: Vec<_> = self.heard.drain().collect();
        heard.sort_by_key(|(conn, _)| *conn);
        for (conn, heard) in heard {
            sum_up(conn, &heard, state, desk);
        }
    }
}

impl StdoutNoise {
    fn hear(
        &mut self,
        conn: ConnId,
        noise: &Noise,
        severity: Severity,
        state: &State,
        desk: &mut Desk,
    ) {
        if let Some(heard) = self.heard.get_mut(&conn)
            && heard.severity >= severity
        {
            heard.lines += 1;
            return;
        }
        let mut heard = Heard {
            number: None,
            severity,
            lines: 1,
            first: noise.clone(),
            at: desk.now,
        };
        if let Some(before) = self.heard.get(&conn) {
            heard.lines += before.lines;
            heard.number = before.number;
        }
        heard.number = write(conn, &heard, state, desk);
        self.heard.insert(conn, heard);
    }
}

fn sum_up(conn: ConnId, heard: &Heard, state: &State, desk: &mut Desk) {
    if heard.lines > 1 {
        write(conn, heard, state, desk);
    }
}

fn write(conn: ConnId, heard: &Heard, state: &State, desk: &mut Desk) -> Option<u32> {
    let what = match heard.first.kind {
        NoiseKind::Blank => "an empty line",
        NoiseKind::InvalidJson => "a line that is no valid JSON-RPC message",
        _ => "a line that is no JSON",
    };
    let more = match heard.lines {
        0 | 1 => String::new(),
        lines => format!(" (one of {lines} such lines)"),
    };
    let text = shown(&String::from_utf8_lossy(&heard.first.text));
    let draft = Draft::new(
        &ABOUT,
        Culprit::Server,
        format!("the server wrote {what} to stdout{more}"),
    )
    .conn(conn)
    .revision(state.revision(conn))
    .severity(heard.severity)
    .evidence(
        "line",
        heard.at,
        format!("{} bytes: {text}", heard.first.bytes),
    )
    .supersedes(heard.number);
    desk.report(draft)
}

fn severity(kind: NoiseKind) -> Option<Severity> {
    match kind {
        NoiseKind::Text | NoiseKind::InvalidJson => Some(Severity::Warning),
        NoiseKind::Blank => Some(Severity::Info),
        NoiseKind::InvalidUtf8
        | NoiseKind::ContentLength
        | NoiseKind::Oversized
        | NoiseKind::Unterminated => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::verdict::Settings;
    use crate::verdict::script::{hear, judged};

    #[test]
    fn a_server_prints() {
        let script = "0 hello 2025-06-18\n1 noise s text hello\n2 noise s text more\n3 end";
        assert_eq!(judged(script), " | stdout-noise confirmed warning");
        let heard = hear(script, Settings::default());
        assert!(heard.findings[1].message.ends_with("(one of 2 such lines)"));
        let blank = "0 hello 2025-06-18\n1 noise s blank \n2 end";
        assert_eq!(judged(blank), " | stdout-noise confirmed info");
        let json = "0 hello 2025-06-18\n1 noise s invalid-json [INFO] on\n2 end";
        assert_eq!(judged(json), " | stdout-noise confirmed warning");
    }

    #[test]
    fn what_is_another_rules() {
        for noise in [
            "s oversized x",
            "s content-length Content-Length: 3",
            "c text x",
            "c blank ",
        ] {
            let verdict = judged(&format!("0 hello 2025-06-18\n1 noise {noise}\n2 end"));
            assert!(!verdict.contains("stdout-noise"), "{noise}: {verdict}");
        }
    }

    #[test]
    fn what_is_printed_is_escaped() {
        let heard = hear("1 noise s text \u{1b}[31mred\n2 end", Settings::default());
        assert!(!heard.findings[0].evidence[0].detail.contains('\u{1b}'));
    }
}
