//! The command line: one file a subcommand, arguments and thin glue.
//!
//! Here errors get their remedies, and ends their exit codes. A subcommand is a
//! `clap::Args` with an `execute` that returns an [`Exit`] or a [`Failure`].

#[cfg(target_os = "linux")]
mod attach;
#[cfg(target_os = "linux")]
mod backend;
#[cfg(target_os = "linux")]
mod capture;
mod check;
#[cfg(target_os = "linux")]
mod command;
#[cfg(target_os = "linux")]
mod demo;
mod diff;
#[cfg(target_os = "linux")]
mod doctor;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
mod exit;
mod explain;
mod failure;
mod gate;
mod input;
mod judge;
#[cfg(target_os = "linux")]
mod live;
mod log;
mod output;
mod payload;
mod policy;
mod progress;
pub mod relay;
#[cfg(target_os = "linux")]
mod remedy;
mod replay;
mod report;
mod rules;
#[cfg(target_os = "linux")]
mod run;
mod settings;
#[cfg(target_os = "linux")]
mod signals;
mod size;
mod terminal;
mod verify;
mod view;
#[cfg(target_os = "linux")]
mod watch;

use std::ffi::OsString;
use std::io::Write;

use clap::error::{ContextKind, ContextValue};
use clap::{Parser, Subcommand};

#[cfg(target_os = "linux")]
use self::{attach::Attach, demo::Demo, doctor::Doctor, run::Run, watch::Watch};
#[cfg(not(target_os = "linux"))]
use elsewhere::{Attach, Demo, Doctor, Run, Watch};
pub use exit::Exit;
pub use failure::Failure;
pub use gate::GateArgs;
pub use log::{LogError, LogFile};
pub use output::{ColorChoice, Job, OutputArgs, Outputs};
pub use payload::PayloadArgs;
pub use settings::SettingsArgs;

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
Exit codes: 0 nothing that --fail-on or --policy deny, 1 findings that they do, 2 wrong usage or
unreadable input, 3 evidence missing that --strict or --policy ask for, 4 nothing can be captured here.
`run` and `relay` have their command's own status, and 125, 126, 127 as env has.";

#[derive(Debug, Subcommand)]
enum Command {
    Run(Run),
    Attach(Attach),
    Watch(Watch),
    Relay(relay::Relay),
    Replay(replay::Replay),
    Check(check::Check),
    Verify(verify::Verify),
    Diff(diff::Diff),
    Report(report::Report),
    Policy(policy::Policy),
    Rules(rules::Rules),
    Explain(explain::Explain),
    Doctor(Doctor),
    Demo(Demo),
    #[cfg(target_os = "linux")]
    #[command(hide = true, name = demo::part::NAME)]
    DemoPart(demo::part::Part),
}

impl Cli {
    /// Parses the arguments, the program's name first.
    ///
    /// # Errors
    /// What is to be printed instead (the help, the version, what is wrong), and the exit code.
    pub fn parse_args(args: &[OsString]) -> Result<Self, (clap::Error, Exit)> {
        Self::try_parse_from(args).map_err(|mut error| {
            if is_bare_relay(args) && error.use_stderr() {
                let tip = "the server's command comes after `--`: observer relay -- COMMAND...";
                error.insert(
                    ContextKind::Suggested,
                    ContextValue::StyledStrs(vec![tip.into()]),
                );
            }
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
            Command::Run(run) => run.execute(),
            Command::Attach(attach) => attach.execute(),
            Command::Watch(watch) => watch.execute(),
            Command::Relay(relay) => relay.execute(),
            Command::Demo(demo) => demo.execute(),
            Command::Doctor(doctor) => doctor.execute(),
            #[cfg(target_os = "linux")]
            Command::DemoPart(part) => part.execute(),
            Command::Replay(replay) => replay.execute(),
            Command::Check(check) => check.execute(),
            Command::Verify(verify) => verify.execute(),
            Command::Diff(diff) => diff.execute(),
            Command::Report(report) => report.execute(),
            Command::Policy(policy) => policy.execute(),
            Command::Rules(rules) => rules.execute(),
            Command::Explain(explain) => explain.execute(),
        }
    }
}

/// Whether the arguments ask for `run` or `relay`, whose exit codes are a command's.
pub fn is_run(args: &[OsString]) -> bool {
    args.get(1)
        .is_some_and(|command| command == "run" || command == "relay")
}

/// Whether a server's command is not set off from the relay's own words.
fn is_bare_relay(args: &[OsString]) -> bool {
    args.get(1).is_some_and(|command| command == "relay") && args.iter().all(|word| word != "--")
}

/// Says something on stderr, on a line of its own. A closed stderr is no reason to end.
pub fn say(message: impl std::fmt::Display) {
    // A line in the middle of the live view would help nobody; it is printed when that is over.
    if crate::tui::postpone(format!("observer: {message}")) {
        return;
    }
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
    fn a_relay_without_dashes_is_told_where_its_command_goes() {
        let said = |args: &[&str]| {
            let args: Vec<_> = args.iter().map(OsString::from).collect();
            let error = Cli::parse_args(&args).err().map(|(error, _)| error);
            error.map(|error| error.to_string()).unwrap_or_default()
        };
        let tip = "the server's command comes after `--`";
        for args in [&["python3", "server.py"][..], &["server"], &[]] {
            let text = said(&[&["observer", "relay"], args].concat());
            assert!(text.contains(tip), "{text}");
        }
        assert!(!said(&["observer", "relay", "--no-such", "--", "x"]).contains(tip));
        assert!(!said(&["observer", "relay", "--help"]).contains(tip));
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
        assert_eq!(
            exit(&["observer", "relay", "server", "word"]),
            Some(Exit::ObserverFailed)
        );
        assert_eq!(exit(&["observer", "--version"]), Some(Exit::Clean));
        assert_eq!(exit(&["observer", "replay", "--help"]), Some(Exit::Clean));
        assert_eq!(exit(&["observer", "replay", "audit.jsonl"]), None);
    }
}
