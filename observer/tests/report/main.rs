//! `observer report` as a user meets it: what each format says, that programs which are not ours
//! can read it, files and exit codes.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, in its helpers too"
)]

mod lab;
mod readers;
mod snapshots;
mod usage;
