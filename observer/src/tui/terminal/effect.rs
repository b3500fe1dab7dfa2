//! What the view wants done outside: the clipboard, and a log that is saved.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crossterm::clipboard::CopyToClipboard;
use crossterm::execute;

use super::log::Log;
use crate::tui::message::SavedLine;

/// More than this is not put into a clipboard: terminals drop it.
const CLIPBOARD: usize = 1 << 20;

/// Puts a text into the clipboard of whoever sits at the terminal: OSC 52.
pub(super) fn copy(text: &str) -> io::Result<()> {
    if text.len() > CLIPBOARD {
        return Err(io::Error::other("the message is too long for a clipboard"));
    }
    execute!(io::stdout(), CopyToClipboard::to_clipboard_from(text))
}

/// Writes a log that nobody else may read, and that was not there.
pub(super) fn save(path: &Path, lines: &[SavedLine], log: &mut Log) -> io::Result<()> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    let mut file = io::BufWriter::new(file);
    for line in lines {
        match line {
            SavedLine::Text(line) => file.write_all(line)?,
            SavedLine::InLog(place) => file.write_all(&log.line(*place)?)?,
        }
    }
    file.flush()
}
