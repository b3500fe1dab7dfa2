//! What is told to people: what processes and the sides of a connection are called, how times and
//! sizes are written, and how observed text is made harmless.
//!
//! Shared by everything that prints. Must not conclude anything.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod duration;
mod glob;
mod parties;
mod program;
mod text;

pub use duration::parse_duration;

pub(crate) use glob::Glob;
pub(crate) use parties::{Known, Parties, Sides};
pub(crate) use program::Names;
pub(crate) use text::{count, observed, size, span, time};
