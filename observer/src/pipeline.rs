//! The pure layers in a row: a captured event goes in, records come out.
//!
//! Owns nothing but the order: session, then verdict, then record. No clock, no I/O.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]
