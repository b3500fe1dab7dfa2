//! The probe against the running kernel: real programs, real pipes, sockets, terminals.
//!
//! Needs root (or `CAP_BPF` and `CAP_PERFMON`) and a kernel that lets BPF in. Elsewhere each test says
//! `skipped: reason` on stderr and passes; with `OBSERVER_REQUIRE_KERNEL=1` it fails instead, so
//! that a CI run cannot skip them unnoticed.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "clippy.toml lifts them in tests, and this is what tests are made of"
)]
#![expect(
    clippy::cast_possible_truncation,
    clippy::multiple_unsafe_ops_per_block,
    reason = "the children are tables of raw system calls"
)]

mod child;
mod content;
mod evidence;
mod loss;
mod processes;
mod streams;
mod watch;
