//! The command line: one file a subcommand, arguments and thin glue.
//!
//! Here errors get their remedies, and ends their exit codes. A subcommand is a
//! `clap::Args` with an `execute` that returns an [`Exit`] or a [`Failure`].

mod exit;
mod fail_on;
mod failure;
mod log;
mod output;
mod replay;
mod settings;

use std::ffi::OsString;
use std::io::Write;

use clap::{Parser, Subcommand};

pub use exit::Exit;
pub use fail_on::FailOn;
pub use failure::Failure;
pub use log::{LogError, LogFile};
pub use output::{ColorChoice, Job, OutputArgs, Outputs};
pub use settings::{SettingsArgs, parse_duration};

/// Watch MCP over stdio from outside, and name the tool calls that a host abandoned
///
/// Observer looks at the pipes between MCP hosts (Codex, Claude Code, Gemini CLI, ...) and the
/// servers that they start. It changes nothing in either, and needs no word from them.
#[derive(Debug, Parser)]
#[command(name = "observer", version, max_term_width = 100, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 nothing at or above --fail-on, 1 findings, 2 wrong usage or unreadable input,
3 with --strict: evidence incomplete, 4 nothing can be captured here.
`run` has its command's own status, and 125, 126, 127 as env has.";

#[derive(Debug, Subcommand)]
enum Command {
    Replay(replay::Replay),
}

impl Cli {
    /// Parses the arguments, the program's name first.
    ///
    /// # Errors
    /// What is to be printed instead (the help, the version, what is wrong), and the exit code.
    pub fn parse_args(args: &[OsString]) -> Result<Self, (clap::Error, Exit)> {
        Self::try_parse_from(args).map_err(|error| {
            let exit = match error.use_stderr() {
                false => Exit::Clean,
                true if is_run(args) => Exit::ObserverFailed,
                true => Exit::Failed,
            };
            (error, exit)
        })
    }

    /// Does what was asked.
    ///
    /// # Errors
    /// What went wrong on our side, with its exit code.
    pub fn execute(self) -> Result<Exit, Failure> {
        match self.command {
            Command::Replay(replay) => replay.execute(),
        }
    }
}

/// Whether the arguments ask for `run`, whose exit codes differ.
pub fn is_run(args: &[OsString]) -> bool {
    args.get(1).is_some_and(|command| command == "run")
}

/// Says something on stderr, on a line of its own. A closed stderr is no reason to end.
pub fn say(message: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "observer: {message}");
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_are_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn usage_errors_have_the_contracts_codes() {
        let exit = |args: &[&str]| {
            let args: Vec<_> = args.iter().map(OsString::from).collect();
            Cli::parse_args(&args).err().map(|(_, exit)| exit)
        };
        assert_eq!(exit(&["observer"]), Some(Exit::Failed));
        assert_eq!(exit(&["observer", "replay"]), Some(Exit::Failed));
        assert_eq!(
            exit(&["observer", "run", "--no-such-option"]),
            Some(Exit::ObserverFailed)
        );
        assert_eq!(exit(&["observer", "--version"]), Some(Exit::Clean));
        assert_eq!(exit(&["observer", "replay", "--help"]), Some(Exit::Clean));
        assert_eq!(exit(&["observer", "replay", "audit.jsonl"]), None);
    }
}
