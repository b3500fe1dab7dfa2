//! An audit log in a file, or on stdin: read line by line, in bounded memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::{Exit, Failure};
use crate::record::{Header, ReadError, Reader, Record, Tail};
use crate::tui::LogPlace;

/// So much is read at once.
const BLOCK: usize = 256 << 10;

/// A longer line is damage: no frame comes near it.
const LONGEST_LINE: u64 = 1 << 30;

/// A failure to read a log.
#[derive(Debug, Error)]
pub enum LogError {
    /// The system refuses.
    #[error("cannot {operation} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        operation: &'static str,
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What is in it is no log, or is damaged.
    #[error("cannot read {}: {source}", .path.display())]
    Content {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        source: ReadError,
    },
    /// A line has no end.
    #[error("cannot read {}: line {line} is damaged: it is longer than {LONGEST_LINE} bytes", .path.display())]
    Endless {
        /// Which file.
        path: PathBuf,
        /// Which line: 1, 2, ...
        line: u64,
    },
}

/// An open log.
pub struct LogFile {
    path: PathBuf,
    input: BufReader<Box<dyn Read>>,
    reader: Reader,
    line: Vec<u8>,
    lines: u64,
    /// Position after the line that was read last.
    offset: u64,
    cut: Option<u64>,
}

impl LogFile {
    /// Opens a log and reads its header; `-` is stdin.
    ///
    /// # Errors
    /// Where it cannot be opened, or is no log.
    pub fn open(path: &Path) -> Result<(Self, Header), LogError> {
        let (path, input): (PathBuf, Box<dyn Read>) = match path.as_os_str() == "-" {
            true => ("stdin".into(), Box::new(io::stdin())),
            false => match File::open(path) {
                Ok(file) => (path.into(), Box::new(file)),
                Err(source) => {
                    return Err(LogError::Io {
                        operation: "open",
                        path: path.into(),
                        source,
                    });
                }
            },
        };
        let mut log = Self {
            path,
            input: BufReader::with_capacity(BLOCK, input),
            reader: Reader::new(),
            line: Vec::new(),
            lines: 0,
            offset: 0,
            cut: None,
        };
        match log.next_record()? {
            Some(Record::Header(header)) => Ok((log, *header)),
            // The reader gives nothing else before the header.
            _ => Err(log.content(ReadError::Empty)),
        }
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// Where the log cannot be read on. The records before stay good.
    pub fn next_record(&mut self) -> Result<Option<Record>, LogError> {
        loop {
            self.read_line()?;
            let record = match self.line.as_slice() {
                [] => {
                    self.reader
                        .finish()
                        .map_err(|source| self.content(source))?;
                    return Ok(None);
                }
                [line @ .., b'\n'] => self.reader.handle_line(line),
                rest => match self.reader.handle_tail(rest) {
                    Ok(Tail::Record(record)) => Ok(record),
                    Ok(Tail::Cut { line }) => {
                        self.cut = Some(line);
                        return Ok(None);
                    }
                    Err(error) => Err(error),
                },
            };
            if let Some(record) = record.map_err(|source| self.content(source))? {
                return Ok(Some(record));
            }
        }
    }

    /// The line that was not written to its end, where there is one. Known at the end.
    pub const fn cut(&self) -> Option<u64> {
        self.cut
    }

    /// Where the last record lies in the file.
    pub fn place(&self) -> LogPlace {
        let bytes = self.line.len() as u64;
        LogPlace {
            offset: self.offset - bytes,
            bytes,
        }
    }

    /// Whether the next record may have to be waited for.
    pub fn is_drained(&self) -> bool {
        self.input.buffer().is_empty()
    }

    fn read_line(&mut self) -> Result<(), LogError> {
        self.line.clear();
        // A message of many megabytes must not keep its room for good.
        self.line.shrink_to(BLOCK);
        self.lines += 1;
        let read = self
            .input
            .by_ref()
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut self.line);
        let read = read.map_err(|source| LogError::Io {
            operation: "read",
            path: self.path.clone(),
            source,
        })?;
        self.offset += read as u64;
        if read as u64 == LONGEST_LINE && !self.line.ends_with(b"\n") {
            return Err(LogError::Endless {
                path: self.path.clone(),
                line: self.lines,
            });
        }
        Ok(())
    }

    fn content(&self, source: ReadError) -> LogError {
        LogError::Content {
            path: self.path.clone(),
            source,
        }
    }
}

impl From<LogError> for Failure {
    fn from(error: LogError) -> Self {
        let failure = Self::new(Exit::Failed, &error);
        match &error {
            LogError::Io { .. } => {
                failure.with_remedy("give a log that you may read, or - for stdin")
            }
            LogError::Content { source, path } => match source {
                ReadError::Empty | ReadError::NoHeader { .. } => {
                    failure.with_remedy("give a file that observer wrote with --log")
                }
                ReadError::NewerSchema { .. } => {
                    failure.with_remedy("read it with the observer that wrote it, or a newer one")
                }
                ReadError::Damaged { line, .. } | ReadError::SecondHeader { line } => {
                    failure.with_remedy(cut_before(*line, path))
                }
            },
            LogError::Endless { line, path } => failure.with_remedy(cut_before(*line, path)),
        }
    }
}

fn cut_before(line: u64, path: &Path) -> String {
    format!(
        "what comes before it is good: head -n {} {}",
        line - 1,
        path.display()
    )
}
