//! What a backend sees of the stdio of observed processes, and the backends that see it.
//!
//! Owns the contract between a backend and the pure layers: [`CaptureEvent`], delivered in
//! batches over a bounded channel. A backend must never interpret the bytes it carries, and never
//! lose one without saying so: every chunk has its offset, every loss is a gap.

mod clock;
mod event;
pub mod relay;

pub use clock::Clock;
pub use event::{
    CaptureEvent, Captured, End, Fate, GapReason, InterruptKind, Joined, Loss, Pid, ProcessChange,
    ProcessEvent, StreamId, StreamKind, Timestamp,
};
