//! What the pages show is what the program prints: every `console` block is run.
//!
//! After a change: `TRYCMD=overwrite cargo test -p observer --test console`, then read the diff.

use clap::CommandFactory;
use observer::cli::Cli;

const COMMANDS: &str = include_str!("../../docs/commands.md");

#[test]
fn the_pages_show_what_the_program_prints() {
    // The pages speak to somebody in the repository's folder; the other test reads no file.
    std::env::set_current_dir("..").expect("the repository's folder");
    trycmd::TestCases::new()
        // What a user sees, not what a runner of tests would.
        .env("CI", "")
        .case("README.md")
        .case("docs/commands.md");
}

#[test]
fn every_command_has_its_section() {
    let shown: Vec<_> = COMMANDS
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .collect();
    let cli = Cli::command();
    let commands: Vec<_> = cli
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .map(clap::Command::get_name)
        .collect();
    assert_eq!(shown, commands);
}
