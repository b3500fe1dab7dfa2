//! The ptrace backend against real programs: what it sees of them, and that they do not notice.
//!
//! Needs Linux and no privileges. As root, everything runs once more as the user `nobody`.
//! `OBSERVER_TEST_RUNS` says how often the long tests repeat themselves (10).
#![cfg(target_os = "linux")]

mod observe;
mod roles;

mod transfers;
