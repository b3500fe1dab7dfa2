//! The bytes of one direction become lines: frames at newlines, over chunks with offsets.
//!
//! Owns reassembly, gaps and resynchronisation, and the limit on a frame's size. Must not look
//! into a line; that is `jsonrpc`'s.
//!
//! What a [`Framer`] puts out tiles the stream: each byte position from the first to the last
//! newline lies in exactly one [`Piece`], whatever was lost, repeated or too long.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod framer;

pub use framer::{Framer, HEAD, Piece};
