//! What the view wants done outside: the clipboard, and a log that is saved.

use std::io;
use std::path::Path;

use crossterm::clipboard::CopyToClipboard;
use crossterm::execute;

use super::log::Log;
use crate::pipeline::Pipeline;
use crate::session::{self, Observed};
use crate::sink::{Jsonl, Outlet};
use crate::tui::message::{Saved, SavedEvent};

/// More than this is not put into a clipboard: terminals drop it.
const CLIPBOARD: usize = 1 << 20;

/// Puts a text into the clipboard of whoever sits at the terminal: OSC 52.
pub(super) fn copy(text: &str) -> io::Result<()> {
    if text.len() > CLIPBOARD {
        return Err(io::Error::other("the message is too long for a clipboard"));
    }
    execute!(io::stdout(), CopyToClipboard::to_clipboard_from(text))
}

/// Writes a log that nobody else may read, and that was not there: what was observed, judged anew,
/// and sealed.
pub(super) fn save(path: &Path, saved: Saved, log: &mut Log) -> Result<(), String> {
    let told = |error: crate::sink::WriteError| error.to_string();
    let mut jsonl = Jsonl::made(Outlet::create_new(path).map_err(told)?);
    let settings = saved.header.settings.clone().unwrap_or_default();
    let mut pipeline = Pipeline::new(session::Settings::default(), settings);
    jsonl.begin(saved.header).map_err(told)?;
    for event in saved.events {
        pipeline.handle_observed(match event {
            SavedEvent::Here(observed) => *observed,
            SavedEvent::InLog(at, place) => Observed {
                at,
                event: log
                    .event(place)
                    .map_err(|error| format!("cannot write {}: {error}", path.display()))?,
            },
        });
        write(&mut pipeline, &mut jsonl).map_err(told)?;
    }
    if !saved.complete {
        pipeline.note_cut();
    }
    pipeline.finish(saved.end);
    write(&mut pipeline, &mut jsonl).map_err(told)?;
    jsonl.flush().map_err(told)
}

fn write(pipeline: &mut Pipeline, jsonl: &mut Jsonl) -> Result<(), crate::sink::WriteError> {
    while let Some(output) = pipeline.poll_output() {
        jsonl.handle_output(&output)?;
    }
    Ok(())
}
