//! How far a large log has been read: one line on a terminal, gone when it is done.

use std::io::{self, IsTerminal, Write};

use super::LogFile;
use crate::wording::{observed, size};

/// A smaller log is read before anybody looks.
const LARGE: u64 = 64 << 20;

/// The line is drawn anew after so many bytes.
const STEP: u64 = 8 << 20;

/// A file's name is cut to this many characters.
const NAME: usize = 40;

/// Where the line is taken away.
const CLEAR: &str = "\r\x1b[K";

/// The line, where there is one.
pub(super) struct Progress<W: Write = io::Stderr> {
    line: Option<Line<W>>,
}

struct Line<W> {
    name: String,
    /// How much there is to read.
    total: u64,
    /// When to draw it again.
    next: u64,
    terminal: W,
}

impl Progress {
    /// A line for a large log, if stderr is a terminal.
    pub(super) fn over(log: &LogFile) -> Self {
        let total = log.size().filter(|size| *size >= LARGE);
        let line = total
            .filter(|_| io::stderr().is_terminal())
            .map(|total| Line {
                name: observed(&log.path().display().to_string(), NAME),
                total,
                next: 0,
                terminal: io::stderr(),
            });
        Self { line }
    }
}

impl<W: Write> Progress<W> {
    /// Says how many bytes have been read.
    pub(super) fn note(&mut self, read: u64) {
        let Some(line) = self.line.as_mut().filter(|line| read >= line.next) else {
            return;
        };
        line.next = read + STEP;
        let percent = read.saturating_mul(100) / line.total.max(read);
        let (name, total) = (&line.name, size(line.total));
        // A terminal that is gone is no reason to end.
        let _ = write!(line.terminal, "{CLEAR}{name}: {percent} % of {total}");
        let _ = line.terminal.flush();
    }
}

impl<W: Write> Drop for Progress<W> {
    fn drop(&mut self) {
        if let Some(line) = &mut self.line {
            let _ = write!(line.terminal, "{CLEAR}");
            let _ = line.terminal.flush();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_drawn_now_and_then_and_taken_away() {
        let mut drawn = Vec::new();
        let mut progress = Progress {
            line: Some(Line {
                name: "a.jsonl".into(),
                total: 100 << 20,
                next: 0,
                terminal: &mut drawn,
            }),
        };
        for read in [0, 1, STEP - 1, 50 << 20, 120 << 20] {
            progress.note(read);
        }
        drop(progress);
        let text = String::from_utf8(drawn).expect("UTF-8");
        let lines: Vec<_> = text.split(CLEAR).collect();
        assert_eq!(
            lines,
            [
                "",
                "a.jsonl: 0 % of 104.9 MB",
                "a.jsonl: 50 % of 104.9 MB",
                "a.jsonl: 100 % of 104.9 MB",
                ""
            ]
        );
    }
}
