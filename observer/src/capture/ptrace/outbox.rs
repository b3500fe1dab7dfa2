//! Captured events on their way to the pipeline, in batches.
//!
//! Never lossy: when the channel is full, the tracer waits, and so do the tracees that stop.

use tokio::sync::mpsc::Sender;

use crate::capture::event::{CaptureEvent, Captured, Timestamp};

/// A batch is sent when it has so many events, or so many bytes of content.
const EVENTS: usize = 256;
const BYTES: usize = 1 << 20;

/// See the module.
#[derive(Debug)]
pub(super) struct Outbox {
    to: Sender<Vec<Captured>>,
    batch: Vec<Captured>,
    bytes: usize,
}

impl Outbox {
    pub(super) fn new(to: Sender<Vec<Captured>>) -> Self {
        Self {
            to,
            batch: Vec::new(),
            bytes: 0,
        }
    }

    pub(super) fn push(&mut self, at: Timestamp, event: CaptureEvent) {
        if let CaptureEvent::Chunk { bytes, .. } = &event {
            self.bytes += bytes.len();
        }
        self.batch.push(Captured { at, event });
        if self.batch.len() >= EVENTS || self.bytes >= BYTES {
            self.flush();
        }
    }

    /// Sends what there is.
    pub(super) fn flush(&mut self) {
        if !self.batch.is_empty() {
            self.bytes = 0;
            // It fails when nobody listens any more; `is_closed` then tells.
            self.to.blocking_send(std::mem::take(&mut self.batch)).ok();
        }
    }

    /// Whether nobody listens any more.
    pub(super) fn is_closed(&self) -> bool {
        self.to.is_closed()
    }
}
