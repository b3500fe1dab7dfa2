//! What the view shows, as data: what was observed, which screen, which row, which filter.
//!
//! Owns all state of the view and changes none of it by itself: that is `update`'s. Has no clock
//! and no terminal; `now` and `size` are told.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod call;
mod connection;
mod details;
mod diff;
mod doc;
mod frame;
mod json;
mod ledger;
mod list;
mod observe;
mod prompt;
mod query;
mod reading;
mod save;
mod store;
mod wording;

pub(crate) use call::{Call, State};
pub(crate) use connection::Connection;
pub(crate) use doc::{Ink, Line, Reading};
pub use frame::LogPlace;
pub(crate) use frame::{Body, Frame, Kind, Place};
pub(crate) use ledger::{Found, Ledger};
pub(crate) use list::List;
pub(crate) use observe::{interrupt, title};
pub(crate) use prompt::{Prompt, Purpose};
pub use query::markdown as fields_markdown;
pub(crate) use query::{Facts, Query};
pub(crate) use reading::Subject;
pub(crate) use wording::{brief, severity_ink, state_ink};

use crate::capture::Timestamp;
use crate::record::Header;

/// A screen of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Screen {
    Connections,
    Calls,
    Findings,
    Frames,
    Timeline,
}

impl Screen {
    pub(crate) const ALL: [Self; 5] = [
        Self::Connections,
        Self::Calls,
        Self::Findings,
        Self::Frames,
        Self::Timeline,
    ];

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Connections => "Connections",
            Self::Calls => "Calls",
            Self::Findings => "Findings",
            Self::Frames => "Frames",
            Self::Timeline => "Timeline",
        }
    }
}

/// A column that the calls can be sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Column {
    #[default]
    Time,
    Took,
    State,
    Name,
    Size,
}

impl Column {
    pub(crate) const fn next(self) -> Self {
        match self {
            Self::Time => Self::Took,
            Self::Took => Self::State,
            Self::State => Self::Name,
            Self::Name => Self::Size,
            Self::Size => Self::Time,
        }
    }
}

/// Where what is shown comes from.
#[derive(Clone, Debug)]
pub struct Source {
    /// The log's first line.
    pub header: Header,
    /// What is read, in a few words: a file's name, or the command that is run.
    pub title: String,
    /// Whether it happens now.
    pub live: bool,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) source: Source,
    pub(crate) ledger: Ledger,
    pub(crate) now: Timestamp,
    /// Columns and lines of the terminal.
    pub(crate) size: (u16, u16),
    pub(crate) screen: Screen,
    pub(crate) connections: List,
    pub(crate) calls: List,
    pub(crate) findings: List,
    pub(crate) frames: List,
    pub(crate) sort: (Column, bool),
    /// The filter, as it was typed and as it was understood.
    pub(crate) filter: (String, Query),
    /// The only connection that is shown.
    pub(crate) only: Option<crate::session::ConnId>,
    pub(crate) prompt: Option<Prompt>,
    /// Pages that are open, the one that is seen last.
    pub(crate) pages: Vec<(Subject, Reading)>,
    /// The message that others are compared with.
    pub(crate) marked: Option<u32>,
    pub(crate) paused: bool,
    /// The part of time that the timeline shows; all of it where there is none.
    pub(crate) window: Option<(Timestamp, Timestamp)>,
    /// Messages in the last second, and in the one that runs.
    pub(crate) rate: Rate,
    /// What to tell the user until the next key.
    pub(crate) note: Option<String>,
    /// There will be no more; why, where something went wrong.
    pub(crate) ended: Option<Option<String>>,
    /// Whether the log that is read breaks off.
    pub(crate) cut: bool,
    /// What the observed command printed, where it prints into a pane.
    pub(crate) printed: Option<Printed>,
    /// Whether the user has pressed any key.
    pub(crate) touched: bool,
    /// Whether rows are left to be looked at.
    pub(crate) unfinished: bool,
    /// Whether the calls may not be in the order that is asked for.
    pub(crate) unsorted: bool,
    /// Whether what is on the screen is not what it should be.
    pub(crate) stale: bool,
}

/// How many messages a second come in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rate {
    since: Timestamp,
    seen: u64,
    pub(crate) per_second: u64,
}

/// The last lines that a command printed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Printed {
    pub(crate) lines: std::collections::VecDeque<String>,
    open: Vec<u8>,
}

/// So many printed lines are kept.
const PRINTED: usize = 1_000;

/// A printed line is cut to so many bytes.
const PRINTED_LINE: usize = 4 << 10;

impl Model {
    /// A view of what comes from `source`, that keeps to about `memory` bytes.
    pub(crate) fn new(source: Source, memory: usize) -> Self {
        let list = || {
            if source.live {
                List::following()
            } else {
                List::default()
            }
        };
        Self {
            ledger: Ledger::new(memory),
            now: Timestamp::ZERO,
            size: (80, 24),
            screen: Screen::Calls,
            connections: List::default(),
            calls: list(),
            findings: list(),
            frames: list(),
            sort: (Column::Time, false),
            filter: Default::default(),
            only: None,
            prompt: None,
            pages: Vec::new(),
            marked: None,
            paused: false,
            window: None,
            rate: Rate::default(),
            note: None,
            ended: None,
            cut: false,
            printed: None,
            touched: false,
            unfinished: false,
            unsorted: false,
            stale: true,
            source,
        }
    }

    /// The list of a screen.
    pub(crate) const fn list(&self, screen: Screen) -> &List {
        match screen {
            Screen::Connections => &self.connections,
            Screen::Calls | Screen::Timeline => &self.calls,
            Screen::Findings => &self.findings,
            Screen::Frames => &self.frames,
        }
    }

    pub(crate) const fn list_mut(&mut self, screen: Screen) -> &mut List {
        match screen {
            Screen::Connections => &mut self.connections,
            Screen::Calls | Screen::Timeline => &mut self.calls,
            Screen::Findings => &mut self.findings,
            Screen::Frames => &mut self.frames,
        }
    }

    /// The call that is looked at in the lists.
    pub(crate) fn current_call(&self) -> Option<(u32, &Call)> {
        let number = match self.screen {
            Screen::Connections => None,
            Screen::Calls | Screen::Timeline => self.calls.current(),
            Screen::Findings => self.current_finding().and_then(|(_, found)| found.call),
            Screen::Frames => self.current_frame().and_then(|(_, frame)| frame.call),
        }?;
        self.ledger.calls.get(number).map(|call| (number, call))
    }

    pub(crate) fn current_finding(&self) -> Option<(u32, &Found)> {
        let at = self.findings.current()?;
        self.ledger
            .findings
            .get(at as usize)
            .map(|found| (at, found))
    }

    pub(crate) fn current_frame(&self) -> Option<(u32, &Frame)> {
        let number = self.frames.current()?;
        self.ledger.frames.get(number).map(|frame| (number, frame))
    }

    pub(crate) fn current_connection(&self) -> Option<&Connection> {
        let row = self.connections.current()? as usize;
        self.ledger.connections.values().nth(row)
    }

    /// From when to when the timeline goes where nothing else is asked for.
    pub(crate) fn whole(&self) -> (Timestamp, Timestamp) {
        let start = self
            .ledger
            .calls
            .first()
            .map_or(Timestamp::ZERO, |call| call.sent);
        let end = self.now.max(self.ledger.newest);
        (start, end.max(start + std::time::Duration::from_millis(1)))
    }
}

impl Rate {
    /// Counts; whether what is shown has changed.
    pub(crate) fn tick(&mut self, now: Timestamp, messages: u64) -> bool {
        let passed = now.since(self.since).as_millis();
        if passed < 1_000 {
            return false;
        }
        let new = u128::from(messages.saturating_sub(self.seen));
        let per_second = u64::try_from(new * 1_000 / passed).unwrap_or(u64::MAX);
        let changed = per_second != self.per_second;
        *self = Self {
            since: now,
            seen: messages,
            per_second,
        };
        changed
    }
}

impl Printed {
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            match byte {
                b'\n' => self.end_line(),
                b'\r' => {}
                _ if self.open.len() < PRINTED_LINE => self.open.push(byte),
                _ => {}
            }
        }
    }

    /// The line that is not ended yet.
    pub(crate) fn open(&self) -> String {
        shown(&self.open)
    }

    fn end_line(&mut self) {
        self.lines.push_back(shown(&std::mem::take(&mut self.open)));
        if self.lines.len() > PRINTED {
            self.lines.pop_front();
        }
    }
}

/// Safe to print, without the colours that a program may have used.
fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        if char == '\u{1b}' && chars.peek() == Some(&'[') {
            // A control sequence ends with its first letter.
            chars
                .by_ref()
                .skip(1)
                .find(|char| ('@'..='~').contains(char));
        } else {
            out.push(char);
        }
    }
    crate::record::printable(&out)
}
