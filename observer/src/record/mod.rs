//! The audit log's types, version 1: what is written, line by line, and read back.
//!
//! Owns the names and shapes of the public contract (`docs/audit-log.md`). Must not conclude
//! anything, nor touch a file.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]
