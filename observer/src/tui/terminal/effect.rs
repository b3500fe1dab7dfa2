//! What the view wants done outside: the clipboard, and the logs that are read and written.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crossterm::clipboard::CopyToClipboard;
use crossterm::execute;

use crate::record::parse_line;
use crate::session::Event;
use crate::tui::message::SavedLine;
use crate::tui::model::LogPlace;

/// More than this is not put into a clipboard: terminals drop it.
const CLIPBOARD: usize = 1 << 20;

/// Puts a text into the clipboard of whoever sits at the terminal: OSC 52.
pub(super) fn copy(text: &str) -> io::Result<()> {
    if text.len() > CLIPBOARD {
        return Err(io::Error::other("the message is too long for a clipboard"));
    }
    execute!(io::stdout(), CopyToClipboard::to_clipboard_from(text))
}

pub(super) fn fetch(log: Option<&Path>, place: LogPlace) -> Result<Event, String> {
    let line = read_at(log, place).map_err(|error| format!("cannot read the log: {error}"))?;
    let record = parse_line(line.trim_ascii_end());
    let observed = record
        .ok()
        .flatten()
        .and_then(crate::record::Record::into_observed);
    observed
        .map(|observed| observed.event)
        .ok_or_else(|| "the log has changed".into())
}

fn read_at(log: Option<&Path>, place: LogPlace) -> io::Result<Vec<u8>> {
    let path = log.ok_or_else(|| io::Error::other("there is none"))?;
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(place.offset))?;
    let mut line = Vec::new();
    file.take(place.bytes).read_to_end(&mut line)?;
    Ok(line)
}

/// Writes a log that nobody else may read, and that was not there.
pub(super) fn save(path: &Path, lines: &[SavedLine], log: Option<&Path>) -> io::Result<()> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    let mut file = io::BufWriter::new(file);
    for line in lines {
        match line {
            SavedLine::Text(line) => file.write_all(line)?,
            SavedLine::InLog(place) => file.write_all(&read_at(log, *place)?)?,
        }
    }
    file.flush()
}
