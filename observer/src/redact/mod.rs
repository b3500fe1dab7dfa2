//! What of the observed world is not written down: payloads, and what looks like a secret.
//!
//! Stands between the session and the verdicts, so that nothing behind it (the log, the human
//! lines, a report) can show what was hidden, and a replay judges by what the live run judged by.
//! Pure: the key of the marks comes from outside. What is kept is kept as it was written, to the
//! byte; equal texts get equal marks, because the verdicts compare arguments.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod argv;
mod json;
mod mark;
mod name;
mod noise;
mod places;
mod secret;
mod skeleton;

#[cfg(test)]
mod tests;

use bytes::Bytes;

use crate::jsonrpc::Frame;
use crate::record::{Payload, Scope};
use crate::session::{Event, Observed};

pub use mark::Key;

/// What is hidden.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// How much of the messages is kept.
    pub payload: Payload,
    /// Members whose values are always hidden, in any spelling: `session_id` is `sessionId`.
    pub names: Vec<String>,
    /// Whether values that look like secrets are kept, and the values of names that secrets
    /// usually have.
    pub show_secrets: bool,
    /// Whether the marks of an earlier redaction may stand in what is observed.
    pub marked: bool,
}

/// Hides what a [`Plan`] says.
#[derive(Clone, Debug)]
pub struct Redactor {
    plan: Plan,
    key: Key,
}

impl Redactor {
    /// A redactor whose marks can be made with this key only.
    pub fn new(mut plan: Plan, key: Key) -> Self {
        for name in &mut plan.names {
            *name = name::plain(name);
        }
        Self { plan, key }
    }

    /// How much of the messages is kept.
    pub const fn payload(&self) -> Payload {
        self.plan.payload
    }

    /// Says what was redacted already: of that, no more than it kept can be kept.
    pub fn note_source(&mut self, payload: Payload) {
        self.plan.payload = self.plan.payload.max(payload);
        self.plan.marked |= payload != Payload::Full;
    }

    /// What may be written of an event.
    pub fn redact(&self, observed: Observed) -> Observed {
        let Observed { at, mut event } = observed;
        match &mut event {
            Event::Message { frame, .. } => {
                if let Some(redacted) = self.frame(frame) {
                    *frame = redacted;
                }
            }
            Event::Noise(noise) => {
                if let Some(text) = self.noise(&noise.text) {
                    noise.text = Bytes::from(text);
                }
            }
            Event::ProcessSeen { argv, .. } | Event::ProcessExec { argv, .. } => self.argv(argv),
            _ => {}
        }
        Observed { at, event }
    }

    /// What may be written of what is observed.
    pub fn scope(&self, mut scope: Scope) -> Scope {
        if let Scope::Run { command } = &mut scope {
            self.argv(command);
        }
        scope
    }

    /// `None` where nothing of the frame is hidden.
    fn frame(&self, frame: &Frame) -> Option<Frame> {
        let text = json::redact(self, frame.text())?;
        // What stands in the place of a value is a value: the frame's envelope is what it was.
        Frame::parse(Bytes::from(text)).ok()
    }
}
