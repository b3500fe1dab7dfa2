//! The lines of a file, or of stdin, in bounded memory; what is compressed is decompressed.

use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::LogError;
use crate::sink::ZSTD;

/// So much is read at once.
const BLOCK: usize = 256 << 10;

/// A longer line is damage: no frame comes near it.
pub(super) const LONGEST_LINE: u64 = 1 << 30;

/// An open file, read line by line.
pub(super) struct Input {
    path: PathBuf,
    reader: BufReader<Box<dyn Read + Send>>,
    line: Vec<u8>,
    lines: u64,
    /// Position after the line that was read last.
    offset: u64,
    /// Whether it can be opened again.
    file: bool,
    compressed: bool,
    /// How many bytes a file had when it was opened.
    size: Option<u64>,
}

impl Input {
    /// Opens a file; `-` is stdin.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn open(path: &Path) -> Result<Self, LogError> {
        let mut size = None;
        let (path, mut source): (PathBuf, Box<dyn Read + Send>) = match path.as_os_str() == "-" {
            true => ("stdin".into(), Box::new(io::stdin())),
            false => match File::open(path) {
                Ok(file) => {
                    let known = file.metadata().ok().filter(Metadata::is_file);
                    size = known.map(|known| known.len());
                    (path.into(), Box::new(file))
                }
                Err(error) => return Err(failed("open", path, error)),
            },
        };
        let mut opening = Vec::new();
        let read = source
            .by_ref()
            .take(ZSTD.len() as u64)
            .read_to_end(&mut opening);
        read.map_err(|error| failed("read", &path, error))?;
        let compressed = opening == ZSTD;
        let mut source: Box<dyn Read + Send> = Box::new(Cursor::new(opening).chain(source));
        if compressed {
            let decoder = zstd::Decoder::new(source);
            let decoder = decoder.map_err(|error| failed("decompress", &path, error))?;
            source = Box::new(UpToTheCut(decoder));
        }
        Ok(Self {
            path,
            reader: BufReader::with_capacity(BLOCK, source),
            line: Vec::new(),
            lines: 0,
            offset: 0,
            file: size.is_some(),
            compressed,
            size: size.filter(|_| !compressed),
        })
    }

    /// The name that messages give it.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The next line with its newline; what follows the last newline without one; nothing at the
    /// end.
    ///
    /// # Errors
    /// What the system says, and where a line has no end.
    pub(super) fn next_line(&mut self) -> Result<&[u8], LogError> {
        self.line.clear();
        // A message of many megabytes must not keep its room for good.
        self.line.shrink_to(BLOCK);
        self.lines += 1;
        let read = self
            .reader
            .by_ref()
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut self.line);
        let read = read.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData if self.compressed => LogError::Compressed {
                path: self.path.clone(),
                line: self.lines,
            },
            _ => failed("read", &self.path, error),
        })?;
        self.offset += read as u64;
        if read as u64 == LONGEST_LINE && !self.line.ends_with(b"\n") {
            return Err(LogError::Endless {
                path: self.path.clone(),
                line: self.lines,
            });
        }
        Ok(&self.line)
    }

    /// Where the last line lies in the text of the file; `None` in what is none.
    pub(super) fn place(&self) -> Option<Range<u64>> {
        let start = self.offset - self.line.len() as u64;
        self.file.then_some(start..self.offset)
    }

    /// The number of the last line: 1, 2, ...
    pub(super) const fn line(&self) -> u64 {
        self.lines
    }

    /// How many whole lines have been read.
    pub(super) const fn lines(&self) -> u64 {
        // The last look found the end.
        self.lines.saturating_sub(1)
    }

    /// How many bytes there are to read, as it was opened; `None` where that is not known: in a
    /// pipe, or compressed.
    pub(super) const fn size(&self) -> Option<u64> {
        self.size
    }

    /// How many bytes have been read.
    pub(super) const fn position(&self) -> u64 {
        self.offset
    }

    /// Whether the next line may have to be waited for.
    pub(super) fn is_drained(&self) -> bool {
        self.reader.buffer().is_empty()
    }
}

/// A compressed file that was cut is read up to there, as one that is not compressed.
struct UpToTheCut<R>(R);

impl<R: Read> Read for UpToTheCut<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
            // What the system says has a number; what has none, the decoder says.
            Err(error) if error.raw_os_error().is_none() => Err(io::ErrorKind::InvalidData.into()),
            read => read,
        }
    }
}

fn failed(operation: &'static str, path: &Path, source: io::Error) -> LogError {
    LogError::Io {
        operation,
        path: path.into(),
        source,
    }
}
