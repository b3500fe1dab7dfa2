//! `cargo xtask`: what the repository does to itself. One file a verb.
fn main() {}
