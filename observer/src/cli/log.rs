//! An audit log in a file, or on stdin: read line by line, in bounded memory.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::input::{Input, LONGEST_LINE};
use super::{Exit, Failure};
use crate::record::{Altered, Digest, Header, Part, ReadError, Reader, Record, Seals, Tail};
use crate::sink::log_part;
use crate::tui::LogPlace;

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
    /// What is compressed in it does not come out.
    #[error("cannot read {}: it is damaged: it cannot be decompressed beyond line {}", .path.display(), .line - 1)]
    Compressed {
        /// Which file.
        path: PathBuf,
        /// The line in which the damage shows: 1, 2, ...
        line: u64,
    },
    /// A line has no end.
    #[error("cannot read {}: line {line} is damaged: it is longer than {LONGEST_LINE} bytes", .path.display())]
    Endless {
        /// Which file.
        path: PathBuf,
        /// Which line: 1, 2, ...
        line: u64,
    },
    /// A log begins with its first part.
    #[error("cannot read {}: it is part {part} of a log", .path.display())]
    NotFirst {
        /// Which file.
        path: PathBuf,
        /// Which part it is.
        part: u32,
    },
    /// A seal does not hold.
    #[error("{} was altered: {source}; what stands there now was judged", .path.display())]
    Altered {
        /// Which file.
        path: PathBuf,
        /// Where.
        source: Altered,
    },
    /// The file that a log should go on in holds something else.
    #[error("cannot read {}: it is not the part that follows", .path.display())]
    OtherPart {
        /// Which file.
        path: PathBuf,
    },
}

/// The observer of a log that none wrote: records from elsewhere.
const FOREIGN: [&str; 2] = ["", "0"];

/// An open log, in all its parts.
pub struct LogFile {
    /// The file that was opened.
    first: PathBuf,
    input: Input,
    reader: Reader,
    /// The seals of the file that is read, for as long as they hold.
    seals: Option<Seals>,
    /// Whether a seal was met.
    sealed: bool,
    /// Whether the end was, and no seal.
    unsealed: bool,
    altered: Option<LogError>,
    /// Where the log goes on, and the seal that says so.
    next: Option<(String, Digest)>,
    part: u32,
    /// The files after the first.
    parts: Vec<PathBuf>,
    cut: Option<Cut>,
    /// Whether the records come from elsewhere: such a log needs neither summary nor seals.
    foreign: bool,
    /// Whether the summary was met.
    concluded: bool,
}

/// Where a log breaks off.
enum Cut {
    Line(u64),
    After(u64),
    Part(PathBuf),
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line} is cut"),
            Self::After(line) => write!(f, "it breaks off after line {line}"),
            Self::Part(path) => write!(f, "it goes on in {}, which is not there", path.display()),
        }
    }
}

impl LogFile {
    /// Opens a log and reads its header; `-` is stdin.
    ///
    /// # Errors
    /// Where it cannot be opened, is no log, or not the first part of one.
    pub fn open(path: &Path) -> Result<(Self, Header), LogError> {
        let mut log = Self {
            first: path.into(),
            input: Input::open(path)?,
            reader: Reader::new(),
            seals: Some(Seals::new()),
            sealed: false,
            unsealed: false,
            altered: None,
            next: None,
            part: 1,
            parts: Vec::new(),
            cut: None,
            foreign: false,
            concluded: false,
        };
        let header = log.header()?;
        log.foreign = FOREIGN.contains(&&*header.observer);
        match header.part {
            Some(part) => Err(LogError::NotFirst {
                path: path.into(),
                part: part.number,
            }),
            None => Ok((log, header)),
        }
    }

    /// The next record; `None` at the end. The header of a later part is passed over.
    ///
    /// # Errors
    /// Where the log cannot be read on. The records before stay good.
    pub fn next_record(&mut self) -> Result<Option<Record>, LogError> {
        loop {
            if let Some(record) = self.record_of_part()? {
                if let Record::Chain(record) = &record {
                    self.next = record
                        .next
                        .clone()
                        .zip(record.chain.map(|seal| seal.sha256));
                }
                if let Record::Summary(summary) = &record {
                    // Where there are seals, a summary without one is not the observer's.
                    self.concluded |= !self.sealed || summary.chain.is_some();
                }
                return Ok(Some(record));
            }
            match self.next.take() {
                Some((name, sha256)) if self.cut.is_none() => {
                    if !self.go_on(&name, sha256)? {
                        return Ok(None);
                    }
                }
                _ => {
                    self.note_end();
                    return Ok(None);
                }
            }
        }
    }

    /// The files that the log went on in, so far.
    pub fn parts(&self) -> &[PathBuf] {
        &self.parts
    }

    fn record_of_part(&mut self) -> Result<Option<Record>, LogError> {
        loop {
            let line = self.input.next_line()?;
            let sealed = match &mut self.seals {
                Some(seals) if !line.is_empty() => seals.handle_line(line),
                _ => Ok(false),
            };
            let record = match line {
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
                        self.cut = Some(Cut::Line(line));
                        return Ok(None);
                    }
                    Err(error) => Err(error),
                },
            };
            let record = record.map_err(|source| self.content(source))?;
            self.note_seal(sealed);
            if let Some(record) = record {
                return Ok(Some(record));
            }
        }
    }

    /// A log that the observer wrote ends with its summary, and has seals.
    fn note_end(&mut self) {
        if self.foreign || self.cut.is_some() {
            return;
        }
        if !self.concluded {
            self.cut = Some(Cut::After(self.input.lines()));
        }
        self.unsealed = !self.sealed;
    }

    /// Nothing can be said of the seals that follow one that does not hold.
    fn note_seal(&mut self, sealed: Result<bool, Altered>) {
        self.sealed |= !matches!(sealed, Ok(false));
        let Err(source) = sealed else { return };
        self.seals = None;
        let path = self.input.path().into();
        self.altered
            .get_or_insert(LogError::Altered { path, source });
    }

    fn header(&mut self) -> Result<Header, LogError> {
        match self.record_of_part()? {
            Some(Record::Header(header)) => Ok(*header),
            // The reader gives nothing else before the header.
            _ => Err(self.content(ReadError::Empty)),
        }
    }

    /// Opens the next part; false where it is not there.
    fn go_on(&mut self, name: &str, sha256: Digest) -> Result<bool, LogError> {
        let Some(path) = sibling(self.input.path(), name) else {
            self.cut = Some(Cut::Part(name.into()));
            return Ok(false);
        };
        self.input = match Input::open(&path) {
            Ok(input) => input,
            Err(LogError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                self.cut = Some(Cut::Part(path));
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        self.reader = Reader::new();
        self.seals = Some(Seals::new());
        let header = self.header()?;
        self.part += 1;
        let expected = Part {
            number: self.part,
            previous: sha256,
        };
        if header.part != Some(expected) {
            return Err(LogError::OtherPart { path });
        }
        self.parts.push(path);
        Ok(true)
    }

    /// Where it breaks off, in a few words. Known at the end.
    pub fn cut(&self) -> Option<String> {
        self.cut.as_ref().map(ToString::to_string)
    }

    /// What of it is missing, in a few words. Known at the end.
    pub fn shortfall(&self) -> Option<String> {
        match &self.cut {
            Some(cut) => Some(format!("{cut}; the rest is judged")),
            None if self.unsealed => {
                Some("it is not sealed: whether it was altered cannot be told".into())
            }
            None => None,
        }
    }

    /// Where it is not as it was written. Known at the end; told once.
    pub fn take_altered(&mut self) -> Option<LogError> {
        self.altered.take()
    }

    /// Where the last record lies; `None` where it cannot be read again: what is read is no file,
    /// or a part has another name than the observer gives it.
    pub fn place(&self) -> Option<LogPlace> {
        let place = self.input.place()?;
        let usual = log_part(&self.first, self.part) == self.input.path();
        usual.then_some(LogPlace {
            part: self.part,
            offset: place.start,
            bytes: place.end - place.start,
        })
    }

    /// In which line of the file that was opened the last record stands: 1, 2, ...; `None` where
    /// another part holds it.
    pub fn line(&self) -> Option<u64> {
        (self.part == 1).then(|| self.input.line())
    }

    /// What the file that is read is called.
    pub fn path(&self) -> &Path {
        self.input.path()
    }

    /// How many bytes it had when it was opened; `None` for what has no known size.
    pub const fn size(&self) -> Option<u64> {
        self.input.size()
    }

    /// How many of its bytes have been read.
    pub const fn position(&self) -> u64 {
        self.input.position()
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

/// The file called `name` beside `path`; `None` where the name leads anywhere else.
pub(super) fn sibling(path: &Path, name: &str) -> Option<PathBuf> {
    let plain = Path::new(name).file_name().is_some_and(|own| own == name);
    plain.then(|| path.with_file_name(name))
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
            LogError::Altered { source, path } => match source {
                Altered::Lines { lines, .. } => {
                    failure.with_remedy(cut_before(*lines.start(), path))
                }
                Altered::Record { line, .. } | Altered::AfterEnd { line, .. } => {
                    failure.with_remedy(cut_before(*line, path))
                }
            },
            LogError::Compressed { line, path } | LogError::Endless { line, path } => {
                failure.with_remedy(cut_before(*line, path))
            }
            LogError::NotFirst { .. } => {
                failure.with_remedy("give the first part, which leads to the others")
            }
            LogError::OtherPart { .. } => {
                failure.with_remedy("give the parts of one log in a folder of their own")
            }
        }
    }
}

/// What can be done where a log is good up to a line.
fn cut_before(line: u64, path: &Path) -> String {
    let good = line - 1;
    let compressed = path.extension().is_some_and(|ending| ending == "zst");
    let path = path.display();
    match (good, compressed) {
        (0, _) => "give another copy of it".into(),
        (_, false) => format!("what comes before it is good: head -n {good} {path}"),
        (_, true) => format!("what comes before it is good: zstdcat {path} | head -n {good}"),
    }
}
