//! What the pages show is what the program prints: every `console` block is run.
//!
//! After a change: `TRYCMD=overwrite cargo test -p observer --test docs`, then read the diff.

#[test]
fn the_pages_show_what_the_program_prints() {
    // The pages speak to somebody in the repository's folder. No other test runs in this process.
    std::env::set_current_dir("..").expect("the repository's folder");
    trycmd::TestCases::new()
        .case("README.md")
        .case("docs/commands.md");
}
