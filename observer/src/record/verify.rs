//! Whether a log is as it was written.

use std::ops::RangeInclusive;

use thiserror::Error;

use super::chain::{Digest, Seal};
use super::{Header, ParseError, Reader, Record, Seals, parse_line};

/// A file of a log, looked over to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Its complete lines.
    pub lines: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The last seal, where there is one; all before it is as it was written.
    pub seal: Option<Seal>,
    /// The last line that a seal covers, that of the seal itself; 0 where there is none.
    pub sealed: u64,
    /// Which part of a log it is: 1, 2, ...
    pub part: u32,
    /// The last seal of the part before it.
    pub previous: Option<Digest>,
    /// How it ends.
    pub end: End,
}

/// How a file ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// With the log's summary, sealed.
    Summary,
    /// With a seal that names the file in which the log goes on.
    Next(String),
    /// After a line, and the log should go on.
    Line,
    /// In the middle of a line.
    Midst {
        /// Which line: 1, 2, ...
        line: u64,
        /// Where it begins.
        offset: u64,
    },
}

/// A file is not as it was written.
#[derive(Debug, Error)]
pub enum Altered {
    /// A seal does not fit what stands before it.
    #[error(
        "{} (from byte {offset} to byte {end}) are not as they were written{}",
        spoken(lines),
        difference(*moved)
    )]
    Lines {
        /// The lines since the last good seal, the broken one's own included.
        lines: RangeInclusive<u64>,
        /// Where the first of them begins.
        offset: u64,
        /// Where the last of them ends.
        end: u64,
        /// How many bytes more than there were.
        moved: i128,
    },
    /// A line that no seal covers is none of the observer's.
    #[error("line {line} (at byte {offset}) is no record: {reason}")]
    Record {
        /// Which line: 1, 2, ...
        line: u64,
        /// Where it begins.
        offset: u64,
        /// What is wrong.
        reason: ParseError,
    },
    /// Something follows the end.
    #[error("line {line} (at byte {offset}) follows the end of the log")]
    AfterEnd {
        /// Which line: 1, 2, ...
        line: u64,
        /// Where it begins.
        offset: u64,
    },
}

fn spoken(lines: &RangeInclusive<u64>) -> String {
    let (first, last) = (lines.start(), lines.end());
    match first == last {
        true => format!("line {first}"),
        false => format!("lines {first} to {last}"),
    }
}

fn difference(bytes: i128) -> String {
    match bytes {
        0 => String::new(),
        more @ 1.. => format!(": {more} bytes are too many"),
        less => format!(": {} bytes are missing", -less),
    }
}

/// Why a file cannot be verified.
#[derive(Debug, Error)]
pub enum VerifyError {
    /// It is no log.
    #[error(transparent)]
    Read(#[from] super::ReadError),
    /// It was altered.
    #[error(transparent)]
    Altered(#[from] Altered),
}

/// Looks a file over, line by line. Has no file: the caller brings the lines.
#[derive(Debug, Default)]
pub struct Verifier {
    seals: Seals,
    part: Option<super::Part>,
    open: Open,
}

/// Lines that no seal covers so far. They are looked at where it turns out that none does.
#[derive(Debug, Default)]
struct Open {
    text: Vec<u8>,
    /// How many lines, and bytes, come before the text.
    lines: u64,
    bytes: u64,
    /// The first line that is no record.
    damage: Option<Altered>,
}

/// More text than this is looked at, and not kept.
const KEPT: usize = 4 << 20;

impl Verifier {
    /// A verifier that expects the header next.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next line, with its newline.
    ///
    /// # Errors
    /// Where the file is no log, or not as it was written. Nothing can be said of what follows.
    pub fn handle_line(&mut self, line: &[u8]) -> Result<(), VerifyError> {
        if self.seals.lines() == 0 {
            self.begin(line.strip_suffix(b"\n").unwrap_or(line))?;
        }
        match self.seals.handle_line(line) {
            Ok(true) => self.open.clear(self.seals.lines(), self.seals.bytes()),
            Ok(false) => self.open.add_line(line),
            // What is broken by itself tells more than the seal behind it.
            Err(altered) => return Err(self.open.damage().unwrap_or(altered).into()),
        }
        Ok(())
    }

    /// Says that there are no more lines, and what follows the last newline.
    ///
    /// # Errors
    /// As [`Self::handle_line`].
    pub fn finish(mut self, rest: &[u8]) -> Result<Verified, VerifyError> {
        let seals = &self.seals;
        if seals.lines() == 0 {
            let mut reader = Reader::new();
            if rest.is_empty() {
                reader.finish()?;
            }
            // It may be the beginning of a header.
            reader.handle_tail(rest)?;
        }
        if let Some(damage) = self.open.damage() {
            return Err(damage.into());
        }
        if seals.end().is_some() && !rest.is_empty() {
            return Err(seals.after_end().into());
        }
        let end = match (rest, seals.end()) {
            ([], Some(end)) => end.clone(),
            ([], None) => End::Line,
            _ => End::Midst {
                line: seals.lines() + 1,
                offset: seals.bytes(),
            },
        };
        Ok(Verified {
            lines: seals.lines(),
            bytes: seals.bytes(),
            seal: seals.last(),
            sealed: seals.sealed(),
            part: self.part.map_or(1, |part| part.number),
            previous: self.part.map(|part| part.previous),
            end,
        })
    }

    fn begin(&mut self, text: &[u8]) -> Result<(), VerifyError> {
        if let Some(Record::Header(header)) = Reader::new().handle_line(text)? {
            let Header { part, .. } = *header;
            self.part = part;
        }
        Ok(())
    }
}

impl Open {
    fn add_line(&mut self, line: &[u8]) {
        if self.text.len() + line.len() > KEPT {
            self.look();
        }
        self.text.extend_from_slice(line);
    }

    /// The first line that is no record.
    fn damage(&mut self) -> Option<Altered> {
        self.look();
        self.damage.take()
    }

    fn look(&mut self) {
        for line in self.text.split_inclusive(|byte| *byte == b'\n') {
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            if self.damage.is_none()
                && let Err(reason) = parse_line(text)
            {
                self.damage = Some(Altered::Record {
                    line: self.lines + 1,
                    offset: self.bytes,
                    reason,
                });
            }
            self.lines += 1;
            self.bytes += line.len() as u64;
        }
        self.text.clear();
    }

    fn clear(&mut self, lines: u64, bytes: u64) {
        self.text.clear();
        self.damage = None;
        (self.lines, self.bytes) = (lines, bytes);
    }
}
