//! What the pages show is what the program prints: every `console` block is run.
//!
//! After a change: `TRYCMD=overwrite cargo test -p observer --test commands`, then read the diff.

#[test]
fn the_pages_show_what_the_program_prints() {
    trycmd::TestCases::new().case("../README.md").case("../docs/commands.md");
}
