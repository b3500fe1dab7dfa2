//! The backends against real programs: that all see the same, and that nobody notices them.
//!
//! What is asked of ptrace needs Linux and no privileges: as root, the programs run as the user
//! `nobody`. Where the kernel lets BPF in, eBPF is held to the same. `OBSERVER_TEST_RUNS` says how
//! often the tests of chance repeat themselves; the issue that asked for them wanted 100.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, in what it shares too"
)]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::multiple_unsafe_ops_per_block,
    reason = "the roles are tables of raw system calls"
)]

mod attached;
mod conversation;
mod differential;
mod killed;
mod moving;
mod observe;
mod programs;
mod roles;
mod stage;
mod transfers;
mod unseen;
mod workout;
