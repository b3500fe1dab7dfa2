//! A file, a pipe or a terminal that lines are written to.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use thiserror::Error;

use super::create::{Existing, open_to_write};

/// What a Zstandard frame begins with (RFC 8878, 3.1.1), and so a compressed log.
pub const ZSTD: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// A buffer this full is written at once.
const FULL: usize = 64 << 10;

/// A line waits at most this long, so that `tail -f` shows it within a second.
const PATIENCE: Duration = Duration::from_millis(200);

/// A failure to open or write.
#[derive(Debug, Error)]
#[error("cannot {operation} {}: {source}", .path.display())]
pub struct WriteError {
    /// What was tried.
    pub operation: &'static str,
    /// With which file; `stdout` and `stderr` for these two.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

impl WriteError {
    /// Whether the reader of a pipe has gone: not a fault where somebody had seen enough.
    pub fn is_closed_pipe(&self) -> bool {
        self.source.kind() == io::ErrorKind::BrokenPipe
    }
}

/// A buffered writer that fails once, and takes everything and writes nothing from then on.
pub struct Outlet {
    path: PathBuf,
    /// `None` once it has failed.
    writer: Option<Box<dyn Write + Send>>,
    /// The file behind the writer, where there is one.
    file: Option<File>,
    buffer: Vec<u8>,
    flushed: Instant,
}

impl Outlet {
    /// Creates the file, readable by its owner only, or empties the one that is there.
    ///
    /// Under sudo a new file belongs to the user who called it. What goes to a file named `.zst` is
    /// compressed; what has been flushed can be read, however the process ends.
    ///
    /// # Errors
    /// What the system says to opening it.
    pub fn create(path: &Path) -> Result<Self, WriteError> {
        Self::open(path, Existing::Emptied)
    }

    /// As [`Self::create`], where there is no such file.
    ///
    /// # Errors
    /// What the system says, also where there is one.
    pub fn create_new(path: &Path) -> Result<Self, WriteError> {
        Self::open(path, Existing::Refused)
    }

    /// As [`Self::create`], for a name that nobody gave: no link, pipe or device will do.
    ///
    /// # Errors
    /// What the system says, also to what lies there.
    pub fn create_part(path: &Path) -> Result<Self, WriteError> {
        Self::open(path, Existing::Replaced)
    }

    fn open(path: &Path, existing: Existing) -> Result<Self, WriteError> {
        let file = open_to_write(path, existing).map_err(|source| WriteError {
            operation: "create",
            path: path.into(),
            source,
        })?;
        Self::onto(path, file)
    }

    /// Onto a file that is open already; compressed where its name says so, as by [`Self::create`].
    ///
    /// # Errors
    /// What the system says.
    pub fn onto(path: &Path, file: File) -> Result<Self, WriteError> {
        let failed = |operation, source| WriteError {
            operation,
            path: path.into(),
            source,
        };
        let other = file.try_clone().map_err(|source| failed("open", source))?;
        let writer: Box<dyn Write + Send> = match is_compressed(path) {
            true => zstd::Encoder::new(file, zstd::DEFAULT_COMPRESSION_LEVEL)
                .map(|encoder| Box::new(encoder.auto_finish()) as _)
                .map_err(|source| failed("compress", source))?,
            false => Box::new(file),
        };
        let mut outlet = Self::new(path.into(), writer);
        outlet.file = Some(other);
        Ok(outlet)
    }

    /// The name that errors give it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file's size once all that waits is written; at most, where it is compressed. Zero where
    /// it is no file that grows.
    pub fn size(&self) -> u64 {
        let written = self.file.as_ref().and_then(|file| file.metadata().ok());
        written
            .filter(std::fs::Metadata::is_file)
            .map_or(0, |file| file.len() + self.buffer.len() as u64)
    }

    /// Standard output.
    pub fn stdout() -> Self {
        Self::new("stdout".into(), Box::new(io::stdout()))
    }

    /// Standard error.
    pub fn stderr() -> Self {
        Self::new("stderr".into(), Box::new(io::stderr()))
    }

    /// Any writer, under the name that errors give it.
    pub fn new(path: PathBuf, writer: Box<dyn Write + Send>) -> Self {
        Self {
            path,
            writer: Some(writer),
            file: None,
            buffer: Vec::new(),
            flushed: Instant::now(),
        }
    }

    /// Lets `write` append to what is to be written.
    ///
    /// # Errors
    /// Where a full buffer cannot be written; once only.
    pub fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), WriteError> {
        if self.writer.is_none() {
            return Ok(());
        }
        write(&mut self.buffer);
        if self.buffer.len() >= FULL {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// Writes what waits, where it has waited long enough.
    ///
    /// # Errors
    /// As [`Self::flush`].
    pub fn flush_due(&mut self, now: Instant) -> Result<(), WriteError> {
        if now.saturating_duration_since(self.flushed) < PATIENCE {
            return Ok(());
        }
        self.flush()
    }

    /// Writes what waits.
    ///
    /// # Errors
    /// What the system says to it; once only.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.flushed = Instant::now();
        let Some(writer) = &mut self.writer else {
            return Ok(());
        };
        let written = writer.write_all(&self.buffer).and_then(|()| writer.flush());
        self.buffer.clear();
        // A message of many megabytes must not keep its room for good.
        self.buffer.shrink_to(FULL * 2);
        written.map_err(|source| {
            self.writer = None;
            WriteError {
                operation: "write to",
                path: self.path.clone(),
                source,
            }
        })
    }
}

impl Drop for Outlet {
    /// What waits is not lost when a panic or an early return drops the outlet.
    fn drop(&mut self) {
        // Nobody is left to be told.
        let _ = self.flush();
    }
}

fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "zst")
}

#[cfg(test)]
mod tests {
    use std::io::pipe;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_new_file_is_its_owners_only_and_an_old_one_keeps_its_mode() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("audit.jsonl");
        let mode = || path.metadata().expect("metadata").permissions().mode() & 0o777;
        drop(Outlet::create(&path).expect("created"));
        assert_eq!(mode(), 0o600);
        std::fs::write(&path, "old").expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).expect("set");
        drop(Outlet::create(&path).expect("opened"));
        assert_eq!(
            (mode(), std::fs::read(&path).expect("read")),
            (0o640, vec![])
        );
    }

    #[test]
    fn what_waits_is_written_when_due_when_full_and_when_dropped() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let written = || file.path().metadata().expect("metadata").len();
        let mut outlet = Outlet::create(file.path()).expect("opened");
        outlet
            .append(|out| out.extend_from_slice(b"a\n"))
            .expect("taken");
        outlet.flush_due(outlet.flushed).expect("not due");
        assert_eq!(written(), 0);
        outlet
            .flush_due(outlet.flushed + PATIENCE)
            .expect("written");
        assert_eq!(written(), 2);
        outlet
            .append(|out| out.resize(out.len() + FULL, b'b'))
            .expect("written");
        assert_eq!(written(), 2 + FULL as u64);
        outlet.append(|out| out.push(b'c')).expect("taken");
        drop(outlet);
        assert_eq!(written(), 3 + FULL as u64);
    }

    #[test]
    fn a_failure_is_told_once() {
        let full = Path::new("/dev/full");
        let mut outlet = Outlet::create(full).expect("opened");
        outlet.append(|out| out.push(b'a')).expect("taken");
        let error = outlet.flush().expect_err("no space").to_string();
        assert_eq!(
            error,
            "cannot write to /dev/full: No space left on device (os error 28)"
        );
        outlet
            .append(|out| out.resize(2 * FULL, b'b'))
            .expect("passed over");
        outlet.flush().expect("passed over");
        assert!(outlet.buffer.is_empty());
    }

    #[test]
    fn a_closed_pipe_is_told_apart() {
        let (reader, writer) = pipe().expect("a pipe");
        drop(reader);
        let mut outlet = Outlet::new("stdout".into(), Box::new(writer));
        outlet.append(|out| out.push(b'a')).expect("taken");
        assert!(outlet.flush().expect_err("closed").is_closed_pipe());
    }

    #[test]
    fn a_path_that_cannot_be_is_named() {
        let error = Outlet::create(Path::new("/dev/null/audit.jsonl")).map(drop);
        let error = error.expect_err("no folder").to_string();
        assert_eq!(
            error,
            "cannot create /dev/null/audit.jsonl: Not a directory (os error 20)"
        );
    }
}
