//! The `observer` binary.
fn main() {}
