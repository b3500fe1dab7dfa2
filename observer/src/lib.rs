//! `observer` watches the stdio between MCP hosts and MCP servers from outside both.
//!
//! Data goes one way, and each layer knows only those before it:
//!
//! ```text
//! capture ─▶ stream ─▶ jsonrpc ─▶ session ─▶ verdict ─▶ record ─▶ sink
//! ```
//!
//! Everything from [`stream`] to [`record`] is pure: no clock, no file, no thread; time comes in
//! with each event. [`pipeline`] joins the pure layers; behind it [`policy`] judges by a team's own
//! rules and [`report`] makes documents, equally pure. [`wording`] is how all of them speak to
//! people, [`cli`] joins them to the world, and the live view, [`tui`], stands beside the sinks: it
//! takes what they take.

pub mod capture;
pub mod cli;
pub mod jsonrpc;
pub mod pipeline;
pub mod policy;
pub mod record;
pub mod report;
pub mod session;
pub mod sink;
pub mod stream;
pub mod tui;
pub mod verdict;
pub mod wording;
