//! One frame of text becomes requests, notifications and responses (JSON-RPC 2.0, MCP envelope).
//!
//! Owns the envelope: ids as they were written, methods, and where params, result and error lie
//! in the frame's text. Must not know what a method means; that is `session`'s and `verdict`'s.
//! Whatever the bytes are, the answer is data: a [`Frame`], or a [`Fault`] that says why not.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod id;
mod message;

pub use id::Id;
pub use message::{Fault, Frame, Kind, Message, Outcome};
