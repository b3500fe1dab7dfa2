//! Whether the seals of a file hold, as its lines go by.

use super::chain::{Held, Seal, read_seal, seal_in};
use super::verify::{Altered, End};
use super::{ChainRecord, Record, parse_line};

/// Holds a file's seals to the lines before them. Needs each line once, and keeps none.
#[derive(Debug, Default)]
pub struct Seals {
    held: Held,
    last: LastSeal,
    end: Option<End>,
}

/// The last seal that held, and where its line ends.
#[derive(Debug, Default)]
struct LastSeal {
    seal: Option<Seal>,
    lines: u64,
    bytes: u64,
}

impl Seals {
    /// The seals of a file of which no line was seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next line, with its newline. Whether it has a seal, which then holds.
    ///
    /// # Errors
    /// Where the file is not as it was written. Nothing can be said of what follows.
    pub fn handle_line(&mut self, line: &[u8]) -> Result<bool, Altered> {
        if self.end.is_some() {
            return Err(self.after_end());
        }
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let Some(place) = seal_in(text) else {
            self.held.add_line(line);
            return Ok(false);
        };
        let (own, rest) = line.split_at(place.start);
        self.held.add(own);
        let found = self.held.seal();
        let said = read_seal(&text[place]);
        self.held.add_line(rest);
        self.judge_seal(said, found)?;
        self.end = end(text);
        Ok(true)
    }

    /// The last seal, where there is one; all before it is as it was written.
    pub const fn last(&self) -> Option<Seal> {
        self.last.seal
    }

    /// The last line that a seal covers, that of the seal itself; 0 where there is none.
    pub const fn sealed(&self) -> u64 {
        self.last.lines
    }

    /// How many lines have been taken.
    pub const fn lines(&self) -> u64 {
        self.held.lines
    }

    /// How many bytes these lines have.
    pub const fn bytes(&self) -> u64 {
        self.held.bytes
    }

    /// The sealed end of the file, where it has been reached.
    pub(super) const fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// Something follows the end.
    pub(super) const fn after_end(&self) -> Altered {
        Altered::AfterEnd {
            line: self.held.lines + 1,
            offset: self.held.bytes,
        }
    }

    fn judge_seal(&mut self, said: Option<Seal>, found: Seal) -> Result<(), Altered> {
        if said == Some(found) {
            self.last = LastSeal {
                seal: said,
                lines: self.held.lines,
                bytes: self.held.bytes,
            };
            return Ok(());
        }
        Err(Altered::Lines {
            lines: self.last.lines + 1..=self.held.lines,
            offset: self.last.bytes,
            end: self.held.bytes,
            moved: said.map_or(0, |said| i128::from(found.bytes) - i128::from(said.bytes)),
        })
    }
}

/// The end that a sealed line is.
fn end(text: &[u8]) -> Option<End> {
    match parse_line(text) {
        Ok(Some(Record::Summary(_))) => Some(End::Summary),
        Ok(Some(Record::Chain(ChainRecord {
            next: Some(next), ..
        }))) => Some(End::Next(next)),
        _ => None,
    }
}
