//! Where records go: the audit log, the human lines. Each a pure render and a thin writer.
//!
//! A sink takes a [`pipeline::Output`](crate::pipeline::Output) and must not change what is
//! observed: when its file fails it says so once, and is silent from then on.

mod create;
mod jsonl;
mod lines;
mod outlet;

pub use create::{Existing, open_to_write};
pub use jsonl::{Jsonl, log_part};
pub use lines::{Color, Detail, Lines};
pub use outlet::{Outlet, WriteError, ZSTD};
