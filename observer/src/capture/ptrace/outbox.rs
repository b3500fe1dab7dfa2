//! Captured events on their way to the pipeline, in batches.
//!
//! Never lossy. While nobody listens yet, and while the channel is full, events gather here: a
//! tracer that waits holds up the tracees, and one of them may be the terminal that our own
//! output goes to. Only beyond [`SLACK`] does it wait.

use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;

use crate::capture::event::{CaptureEvent, Captured, Timestamp};

/// A batch is sent when it has so many events, or so many bytes of content.
const BATCH: Size = Size {
    events: 256,
    bytes: 1 << 20,
};

/// How much may gather.
const SLACK: Size = Size {
    events: 1 << 18,
    bytes: 64 << 20,
};

/// How much there is.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    events: usize,
    bytes: usize,
}

impl Size {
    fn reaches(self, limit: Self) -> bool {
        self.events >= limit.events || self.bytes >= limit.bytes
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    to: Option<Sender<Vec<Captured>>>,
    batch: Vec<Captured>,
    size: Size,
}

impl Outbox {
    /// Whom everything goes to: what has gathered, and what will come.
    pub(super) fn deliver_to(&mut self, to: Sender<Vec<Captured>>) {
        self.to = Some(to);
    }

    pub(super) fn push(&mut self, at: Timestamp, event: CaptureEvent) {
        self.size.events += 1;
        if let CaptureEvent::Chunk { bytes, .. } = &event {
            self.size.bytes += bytes.len();
        }
        self.batch.push(Captured { at, event });
        if self.size.reaches(SLACK) {
            self.drain();
        } else if self.size.reaches(BATCH) {
            self.flush();
        }
    }

    /// Sends what there is, unless the channel is full. Whether nothing is left.
    pub(super) fn flush(&mut self) -> bool {
        let Some(to) = &self.to else { return true };
        if !self.batch.is_empty() {
            match to.try_send(std::mem::take(&mut self.batch)) {
                Err(TrySendError::Full(batch)) => {
                    self.batch = batch;
                    return false;
                }
                // Where nobody listens any more, `is_closed` tells.
                Ok(()) | Err(TrySendError::Closed(_)) => self.size = Size::default(),
            }
        }
        true
    }

    /// Sends what there is, and waits until that can be done.
    pub(super) fn drain(&mut self) {
        let Some(to) = &self.to else { return };
        if !self.batch.is_empty() {
            self.size = Size::default();
            // It fails when nobody listens any more; `is_closed` then tells.
            to.blocking_send(std::mem::take(&mut self.batch)).ok();
        }
    }

    /// Whether nobody listens any more.
    pub(super) fn is_closed(&self) -> bool {
        self.to.as_ref().is_some_and(Sender::is_closed)
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::channel;

    use super::*;
    use crate::capture::event::Loss;

    fn push(outbox: &mut Outbox) {
        outbox.push(Timestamp::ZERO, CaptureEvent::Loss(Loss::default()));
    }

    #[test]
    fn what_came_before_there_was_a_listener_is_delivered() {
        let mut outbox = Outbox::default();
        push(&mut outbox);
        assert!(outbox.flush() && !outbox.is_closed());
        let (sender, mut receiver) = channel(1);
        outbox.deliver_to(sender);
        push(&mut outbox);
        assert!(outbox.flush());
        assert_eq!(receiver.try_recv().unwrap().len(), 2);
        drop(receiver);
        assert!(outbox.is_closed());
    }

    #[test]
    fn a_full_channel_holds_up_nobody_and_loses_nothing() {
        let mut outbox = Outbox::default();
        let (sender, mut receiver) = channel(1);
        outbox.deliver_to(sender);
        let all = 10 * BATCH.events;
        for _ in 0..all {
            push(&mut outbox);
        }
        assert!(!outbox.flush());
        let first = receiver.try_recv().unwrap().len();
        assert!(outbox.flush());
        assert_eq!(first + receiver.try_recv().unwrap().len(), all);
    }
}
