//! Which streams make a connection, who is client and who is server, and what each said.
//!
//! Turns [`CaptureEvent`](crate::capture::CaptureEvent)s into [`Observed`] events: messages, noise
//! and gaps that belong to a numbered connection. Owns the processes' table, the pairing of
//! streams, and the giving up on streams that are no MCP. Must not judge: whether a call was
//! abandoned is `verdict`'s.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod event;

pub use event::{
    ConnId, ConnectionChange, Event, Noise, NoiseKind, Observed, Party, Side, Transport,
};
