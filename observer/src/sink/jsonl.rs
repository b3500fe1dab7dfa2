//! The audit log: one record a line.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{Outlet, WriteError};
use crate::pipeline::Output;
use crate::record::{Chain, Header, Record};

/// Lines of a running observation wait so long for their seal, at most.
const UNSEALED: Duration = Duration::from_secs(1);

/// Writes an audit log, and seals it.
pub struct Jsonl {
    outlet: Outlet,
    chain: Chain,
    /// When the last seal was due by the clock; `None` where none ever is.
    sealed: Option<Instant>,
    /// The size at which a file is full.
    full: Option<u64>,
    header: Option<Header>,
    /// How much of the file is written, and where the last record's line lies in it.
    written: u64,
    last: Range<u64>,
    /// The first file, and how many there are.
    first: PathBuf,
    parts: u32,
}

impl Jsonl {
    /// A log of what happens now: what the observer has written stays sealed where it is killed.
    pub fn live(outlet: Outlet) -> Self {
        Self {
            sealed: Some(Instant::now()),
            ..Self::made(outlet)
        }
    }

    /// A log that is made from another: the same from the same, down to the byte.
    pub fn made(outlet: Outlet) -> Self {
        Self {
            first: outlet.path().into(),
            outlet,
            chain: Chain::new(),
            sealed: None,
            full: None,
            header: None,
            written: 0,
            last: 0..0,
            parts: 1,
        }
    }

    /// This log, which goes on in another file whenever one has reached `full` bytes: that of
    /// `audit.jsonl` in `audit.2.jsonl`.
    #[must_use]
    pub fn rotating(self, full: Option<u64>) -> Self {
        Self { full, ..self }
    }

    /// Writes the first line, at once: a log is a log from its beginning.
    ///
    /// # Errors
    /// As [`Outlet::flush`].
    pub fn begin(&mut self, header: Header) -> Result<(), WriteError> {
        if self.full.is_some() {
            self.header = Some(header.clone());
        }
        self.append(&Record::Header(Box::new(header)))?;
        self.outlet.flush()
    }

    /// Takes what came out of the pipeline.
    ///
    /// # Errors
    /// As [`Outlet::append`].
    pub fn handle_output(&mut self, output: &Output) -> Result<(), WriteError> {
        match output {
            Output::Observed(observed) => self.append(&Record::from(observed)),
            Output::Derived(derived) => self.append(&Record::from(derived)),
            Output::GiveUp(_) | Output::Forget(_) => Ok(()),
        }
    }

    /// In which part the line of the last record is, where it begins in that part's text, and how
    /// long it is.
    pub fn last_line(&self) -> (u32, u64, u64) {
        let Range { start, end } = self.last;
        (self.parts, start, end - start)
    }

    /// See [`Outlet::flush_due`].
    ///
    /// # Errors
    /// As [`Outlet::flush`].
    pub fn flush_due(&mut self, now: Instant) -> Result<(), WriteError> {
        self.seal_due(now)?;
        self.outlet.flush_due(now)
    }

    /// See [`Outlet::flush`].
    ///
    /// # Errors
    /// As [`Outlet::flush`].
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.seal_due(Instant::now())?;
        self.outlet.flush()
    }

    fn append(&mut self, record: &Record) -> Result<(), WriteError> {
        let rotated = match self.full {
            Some(full) if self.outlet.size() >= full => self.rotate(),
            _ => Ok(()),
        };
        self.write(record).and(rotated)
    }

    /// Goes on in the next file. Where it cannot be created, this one is kept, however it grows.
    fn rotate(&mut self) -> Result<(), WriteError> {
        let Some(header) = &self.header else {
            return Ok(());
        };
        let path = log_part(&self.first, self.parts + 1);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let next = match Outlet::create_part(&path) {
            Ok(outlet) => outlet,
            Err(error) => {
                self.full = None;
                return Err(error);
            }
        };
        let (chain, mut begun) = (&mut self.chain, None);
        let ended = self.outlet.append(|out| {
            begun = Some(chain.rotate(header, &name, out));
        });
        ended.and_then(|()| self.outlet.flush())?;
        let Some(header) = begun else {
            // The log has failed before.
            return Ok(());
        };
        self.parts += 1;
        self.written = 0;
        self.outlet = next;
        self.write(&Record::Header(Box::new(header)))
    }

    fn write(&mut self, record: &Record) -> Result<(), WriteError> {
        self.outlet.append(|out| {
            let start = out.len();
            let line = self.chain.write_line(record, out);
            self.last = self.written..self.written + line as u64;
            self.written += (out.len() - start) as u64;
        })
    }

    fn seal_due(&mut self, now: Instant) -> Result<(), WriteError> {
        let due = |sealed| now.saturating_duration_since(sealed) >= UNSEALED;
        if !self.chain.is_open() || !self.sealed.is_some_and(due) {
            return Ok(());
        }
        self.sealed = Some(now);
        self.outlet.append(|out| {
            let start = out.len();
            self.chain.write_seal(out);
            self.written += (out.len() - start) as u64;
        })
    }
}

/// The name of a log's part: `audit.2.jsonl` of `audit.jsonl`, `audit.2.jsonl.zst` of
/// `audit.jsonl.zst`. The first part is `first` itself.
pub fn log_part(first: &Path, number: u32) -> PathBuf {
    if number == 1 {
        return first.into();
    }
    let name = first.file_name().unwrap_or_default().to_string_lossy();
    let (name, zst) = match name.strip_suffix(".zst") {
        Some(name) => (name, ".zst"),
        None => (&*name, ""),
    };
    let (stem, ending) = match name.rfind('.') {
        Some(dot) if dot > 0 => name.split_at(dot),
        _ => (name, ""),
    };
    first.with_file_name(format!("{stem}.{number}{ending}{zst}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_named_after_the_first() {
        for (first, second) in [
            ("audit.jsonl", "audit.2.jsonl"),
            ("a/b.c/audit.jsonl.zst", "a/b.c/audit.2.jsonl.zst"),
            ("audit", "audit.2"),
            (".audit", ".audit.2"),
            ("audit.zst", "audit.2.zst"),
        ] {
            assert_eq!(log_part(Path::new(first), 2), Path::new(second));
            assert_eq!(log_part(Path::new(first), 1), Path::new(first));
        }
    }
}
