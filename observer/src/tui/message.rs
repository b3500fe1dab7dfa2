//! What can happen to the view, and what it wants done in turn.

use std::path::PathBuf;

use ratatui::crossterm::event::{KeyEvent, MouseEvent};

use super::model::LogPlace;
use crate::capture::Timestamp;
use crate::pipeline::Output;
use crate::record::Header;
use crate::session::{Event, Observed};

/// What happened.
#[derive(Debug)]
pub(crate) enum Message {
    /// A key was pressed.
    Key(KeyEvent),
    /// The mouse did something.
    Mouse(MouseEvent),
    /// Text was pasted.
    Paste(String),
    /// The terminal has so many columns and lines.
    Resize(u16, u16),
    /// It is so late now.
    Tick(Timestamp),
    /// The pipeline said something.
    Arrived(Vec<Arrival>),
    /// So many messages were left out, because the view could not keep up.
    Skipped(u64),
    /// Where the log that is read breaks off.
    Cut(String),
    /// What the observed command printed.
    Printed(Vec<u8>),
    /// There will be no more; why, where something went wrong.
    Ended(Option<String>),
    /// There is time to go on with what was left half done.
    Idle,
    /// A text was read back from the log.
    Fetched(u32, Result<Event, String>),
    /// Something that was to be done is done, or failed.
    Note(String),
}

/// An output of the pipeline, and where a log holds it.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// The output.
    pub output: Output,
    /// Its place in the log that is read or written.
    pub place: Option<LogPlace>,
}

/// What is to be done outside.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    /// Leave.
    Quit,
    /// Stop until the shell resumes us.
    Suspend,
    /// Draw everything anew.
    Redraw,
    /// Put this into the clipboard.
    Copy(String),
    /// Read a frame's text back from the log.
    Fetch(u32, LogPlace),
    /// Write a new log.
    Save(PathBuf, Box<Saved>),
}

/// A log that is to be written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Saved {
    pub(crate) header: Header,
    pub(crate) events: Vec<SavedEvent>,
    /// When the observation ended.
    pub(crate) end: Timestamp,
    /// How many frames are missing because they have left memory.
    pub(crate) lost: usize,
    /// Whether nothing is missing, as far as the view knows.
    pub(crate) complete: bool,
}

/// What was observed, in a log that is to be written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SavedEvent {
    /// It is in memory.
    Here(Box<Observed>),
    /// The log that is read or written has it.
    InLog(Timestamp, LogPlace),
}
