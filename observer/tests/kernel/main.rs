//! The probe against the running kernel: real programs, real pipes, sockets, terminals.
//!
//! Needs root (or CAP_BPF and CAP_PERFMON) and a kernel that lets BPF in. Elsewhere each test says
//! `skipped: reason` on stderr and passes; with `OBSERVER_REQUIRE_KERNEL=1` it fails instead, so
//! that a CI run cannot skip them unnoticed.
#![cfg(target_os = "linux")]

mod child;
mod content;
mod evidence;
mod loss;
mod processes;
mod streams;
mod watch;
