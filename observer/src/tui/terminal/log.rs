//! The log that is read or written: single lines of it, read back.
//!
//! Knows its parts, and that a part may be compressed. What is compressed has no places to jump
//! to: it is read from its beginning, or on from where the last line was.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::record::{Record, parse_line};
use crate::session::Event;
use crate::sink::{ZSTD, log_part};
use crate::tui::model::LogPlace;

/// See the module.
pub(super) struct Log {
    /// The file of its first part; `None` where there is no log.
    first: Option<PathBuf>,
    open: Option<Open>,
}

/// A part that is open.
struct Open {
    part: u32,
    /// How much of its text is behind us.
    offset: u64,
    source: Source,
}

enum Source {
    Plain(File),
    Compressed(zstd::Decoder<'static, BufReader<File>>),
}

impl Log {
    pub(super) fn new(first: Option<&Path>) -> Self {
        Self {
            first: first.map(Path::to_path_buf),
            open: None,
        }
    }

    /// The event that a line tells of.
    pub(super) fn event(&mut self, place: LogPlace) -> Result<Event, String> {
        let line = self.line(place);
        let line = line.map_err(|error| format!("cannot read the log: {error}"))?;
        let record = parse_line(line.trim_ascii_end()).ok().flatten();
        let observed = record.and_then(Record::into_observed);
        observed
            .map(|observed| observed.event)
            .ok_or_else(|| "the log has changed".into())
    }

    /// A line, with its newline.
    pub(super) fn line(&mut self, place: LogPlace) -> io::Result<Vec<u8>> {
        // One that fails is not used again.
        let mut open = match self.open.take() {
            Some(open) if open.part == place.part && open.offset <= place.offset => open,
            _ => self.open(place.part)?,
        };
        let line = open.line(place)?;
        self.open = Some(open);
        Ok(line)
    }

    fn open(&self, part: u32) -> io::Result<Open> {
        let first = self.first.as_ref();
        let path = log_part(
            first.ok_or_else(|| io::Error::other("there is none"))?,
            part,
        );
        // Opening a pipe would wait for somebody to write there.
        if !path.metadata()?.is_file() {
            return Err(io::Error::other("it is no file that can be read again"));
        }
        let mut file = File::open(path)?;
        let mut opening = Vec::new();
        file.by_ref()
            .take(ZSTD.len() as u64)
            .read_to_end(&mut opening)?;
        file.rewind()?;
        let source = match opening == ZSTD {
            true => Source::Compressed(zstd::Decoder::new(file)?),
            false => Source::Plain(file),
        };
        Ok(Open {
            part,
            offset: 0,
            source,
        })
    }
}

impl Open {
    fn line(&mut self, place: LogPlace) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        match &mut self.source {
            Source::Plain(file) => {
                file.seek(SeekFrom::Start(place.offset))?;
                file.take(place.bytes).read_to_end(&mut line)?;
            }
            Source::Compressed(decoder) => {
                let before = place.offset - self.offset;
                io::copy(&mut decoder.by_ref().take(before), &mut io::sink())?;
                decoder.take(place.bytes).read_to_end(&mut line)?;
            }
        }
        self.offset = place.offset + place.bytes;
        Ok(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Header;
    use crate::sink::{Jsonl, Outlet};
    use crate::tui::tests::{header, log, message, outputs_of};

    /// A log of many messages in files of this name, and the places of its lines.
    fn written(path: &Path, rotate: Option<u64>) -> (Jsonl, Vec<(LogPlace, Event)>) {
        let mut jsonl = Jsonl::live(Outlet::create(path).expect("created")).rotating(rotate);
        let header: Header = header();
        jsonl.begin(header).expect("written");
        let records: Vec<String> = (0..200)
            .map(|id| {
                let json = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#);
                message(f64::from(id), "client", &json)
            })
            .collect();
        let records: Vec<&str> = records.iter().map(String::as_str).collect();
        let mut places = Vec::new();
        for output in outputs_of(&log(&records)) {
            jsonl.handle_output(&output).expect("written");
            if let crate::pipeline::Output::Observed(observed) = output {
                let (part, offset, bytes) = jsonl.last_line();
                let place = LogPlace {
                    part,
                    offset,
                    bytes,
                };
                places.push((place, observed.event));
            }
        }
        jsonl.flush().expect("written");
        (jsonl, places)
    }

    #[test]
    fn lines_are_read_back_from_parts_and_compressed_files_in_any_order() {
        for (name, rotate) in [
            ("audit.jsonl", None),
            ("audit.jsonl", Some(4 << 10)),
            ("audit.jsonl.zst", None),
            ("audit.jsonl.zst", Some(1 << 10)),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join(name);
            // It is read while it is written.
            let (_jsonl, places) = written(&path, rotate);
            let parts = places.last().map_or(0, |(place, _)| place.part);
            assert_eq!(parts > 1, rotate.is_some(), "{name}");
            let mut log = Log::new(Some(&path));
            for (place, event) in places.iter().chain(places.iter().rev()) {
                let read = log.event(*place).expect("an event");
                assert_eq!(format!("{read:?}"), format!("{event:?}"), "{name}");
            }
        }
    }

    #[test]
    fn what_is_not_there_is_said() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = LogPlace {
            part: 1,
            offset: 0,
            bytes: 9,
        };
        let read = |path: Option<&Path>| Log::new(path).event(place).expect_err("none");
        assert_eq!(read(None), "cannot read the log: there is none");
        let folder = folder.path();
        assert!(read(Some(folder)).contains("no file that can be read again"));
        assert!(read(Some(&folder.join("gone"))).contains("No such file"));
        std::fs::write(folder.join("other"), "{}\n").expect("written");
        assert_eq!(read(Some(&folder.join("other"))), "the log has changed");
    }
}
