//! What a backend sees of the stdio of observed processes, and the backends that see it.
//!
//! Owns the contract between a backend and the pure layers: [`CaptureEvent`], delivered in
//! batches over a bounded channel. A backend must never interpret the bytes it carries, and never
//! lose one without saying so: every chunk has its offset, every loss is a gap.

mod clock;
#[cfg(target_os = "linux")]
pub mod ebpf;
mod event;
mod keys;
#[cfg(target_os = "linux")]
pub mod proc;
#[cfg(target_os = "linux")]
pub mod ptrace;
pub mod relay;
#[cfg(target_os = "linux")]
mod sock_diag;
#[cfg(target_os = "linux")]
pub mod spawn;

pub use clock::Clock;
pub use event::{
    CaptureEvent, Captured, End, Fate, GapReason, InterruptKind, Joined, Loss, Pid, ProcessChange,
    ProcessEvent, StreamId, StreamKind, Timestamp,
};
pub use keys::{ESCAPE_WAIT, KeyParser};
