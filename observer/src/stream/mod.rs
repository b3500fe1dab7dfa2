//! The bytes of one direction become lines: frames at newlines, over chunks with offsets.
//!
//! Owns reassembly, gaps and resynchronisation, and the limit on a frame's size. Must not look
//! into a line; that is `jsonrpc`'s.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]
