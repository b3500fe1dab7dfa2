//! An audit log in a file, or on stdin: read line by line, in bounded memory.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::input::{Input, LONGEST_LINE};
use super::{Exit, Failure};
use crate::record::{Header, ReadError, Reader, Record, Tail};

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
    input: Input,
    reader: Reader,
    cut: Option<u64>,
}

impl LogFile {
    /// Opens a log and reads its header; `-` is stdin.
    ///
    /// # Errors
    /// Where it cannot be opened, or is no log.
    pub fn open(path: &Path) -> Result<(Self, Header), LogError> {
        let mut log = Self {
            input: Input::open(path)?,
            reader: Reader::new(),
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
            let record = match self.input.next_line()? {
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

    /// Whether the next record may have to be waited for.
    pub fn is_drained(&self) -> bool {
        self.input.is_drained()
    }

    fn content(&self, source: ReadError) -> LogError {
        LogError::Content {
            path: self.input.path().into(),
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
