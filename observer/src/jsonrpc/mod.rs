//! One frame of text becomes requests, notifications and responses (JSON-RPC 2.0, MCP envelope).
//!
//! Owns the envelope: ids as they were written, methods, and where params, result and error lie
//! in the frame's text. Must not know what a method means; that is `session`'s and `verdict`'s.
//! Whatever the bytes are, the answer is data: a [`Frame`], or a [`Fault`] that says why not.
//!
//! Nothing here builds a tree of values. A payload is checked once, byte by byte and without
//! recursion, and then named by where it lies; [`member`], [`path`] and [`members`] read single
//! fields out of it the same way, and a [`Cursor`] goes through all of it.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod cursor;
mod fault;
mod id;
mod message;
mod raw;
mod scan;

pub use cursor::{Cursor, Inside};
pub use fault::Fault;
pub use id::Id;
pub use message::{Frame, Kind, Message, Outcome};
pub use raw::{Elements, Members, as_i64, as_str, elements, member, members, path};
