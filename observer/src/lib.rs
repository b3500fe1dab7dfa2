//! `observer` watches the stdio between MCP hosts and MCP servers from outside both.
//!
//! Data goes one way, and each layer knows only those before it:
//!
//! ```text
//! capture ─▶ stream ─▶ jsonrpc ─▶ session ─▶ verdict ─▶ record ─▶ sink
//! ```
//!
//! Everything from [`stream`] to [`record`] is pure: no clock, no file, no thread; time comes in
//! with each event. [`pipeline`] joins the pure layers, [`cli`] joins them to the world. The live
//! view, [`tui`], stands beside the sinks: it takes what they take.

pub mod capture;
pub mod cli;
pub mod jsonrpc;
pub mod pipeline;
pub mod record;
pub mod session;
pub mod sink;
pub mod stream;
pub mod tui;
pub mod verdict;
