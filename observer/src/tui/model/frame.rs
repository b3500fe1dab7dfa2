//! What went by, in order: messages, and what lies between them. A line each on the screen.

use crate::capture::{Pid, Timestamp};
use crate::session::{ConnId, Event, Side};

/// Something that was observed.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) at: Timestamp,
    pub(crate) place: Place,
    pub(crate) from: Option<Side>,
    pub(crate) kind: Kind,
    pub(crate) bytes: u64,
    /// What it is, in a few words; safe to print.
    pub(crate) label: Box<str>,
    /// The call that it belongs to.
    pub(crate) call: Option<u32>,
    /// Where a log holds it.
    pub(crate) origin: Option<LogPlace>,
    pub(crate) body: Body,
}

/// What it happened to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Connection(ConnId),
    Process(Pid),
    Everything,
}

/// What sort of thing it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Request,
    Notification,
    Answer,
    Error,
    Noise,
    Gap,
    Loss,
    Connection,
    Process,
    Interrupt,
    /// How far somebody has read, and what was sent to the network: kept, and not listed.
    Quiet,
}

/// Where the event itself is.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// In memory.
    Here(Box<Event>),
    /// Only in the log that is read or written.
    InLog(LogPlace),
    /// Nowhere any more.
    Gone,
}

/// Where a record lies in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPlace {
    /// Which of the log's parts it is in: 1, 2, ...
    pub part: u32,
    /// Position of its first byte there, in the text as it was before it was compressed.
    pub offset: u64,
    /// Its length, with its newline.
    pub bytes: u64,
}

impl Frame {
    /// Roughly how much memory it takes besides its text.
    pub(crate) fn weight(&self) -> usize {
        size_of::<Self>() + self.label.len() + 16
    }

    /// The message's own text, where it is in memory.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.body {
            Body::Here(event) => match &**event {
                Event::Message { frame, .. } => Some(frame.text()),
                _ => None,
            },
            Body::InLog(_) | Body::Gone => None,
        }
    }

    /// What its first message says: the raw text of its params, result or error.
    pub(crate) fn gist(&self) -> Option<&str> {
        let Body::Here(event) = &self.body else {
            return None;
        };
        let Event::Message { frame, .. } = &**event else {
            return None;
        };
        let message = frame.messages().first()?;
        frame
            .params(message)
            .or_else(|| frame.error(message))
            .or_else(|| frame.result(message))
    }

    pub(crate) const fn is_message(&self) -> bool {
        matches!(
            self.kind,
            Kind::Request | Kind::Notification | Kind::Answer | Kind::Error
        )
    }
}

impl Body {
    /// Roughly how much memory it takes.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Here(event) => {
                size_of::<Event>()
                    + match &**event {
                        Event::Message { frame, .. } => frame.text().len() + 256,
                        Event::Noise(noise) => noise.text.len(),
                        _ => 64,
                    }
            }
            Self::InLog(_) | Self::Gone => 0,
        }
    }
}
