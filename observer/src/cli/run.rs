//! `observer run`: starts a command, and observes it and all that it starts.

use std::ffi::OsString;
use std::time::Duration;

use super::capture::CaptureArgs;
use super::command::Command;
use super::{Exit, Failure, Job, OutputArgs, SettingsArgs};
use crate::capture::Fate;
use crate::capture::spawn::{Identity, Owner};
use crate::verdict;
use crate::wording::parse_duration;

/// Start a command, and watch it and all that it starts
///
/// Runs COMMAND as it would run without observer: same terminal, same signals, and its exit
/// status is passed on (128+n when signal n ended it). Under sudo it runs as the user who called
/// sudo, in the environment in which sudo was called. What is observed is printed to stderr.
///
/// Observer itself fails with 125, as where it is called wrongly; 126 means that the command cannot
/// be invoked, 127 that it is not found.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  sudo observer run -- codex exec \"summarise README.md\"
  sudo observer run --log audit.jsonl -- claude
  sudo observer run --fail-on abandoned-call --strict -- ./smoke-test.sh")]
pub(super) struct Run {
    /// The command and its arguments
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    command: Vec<OsString>,
    /// Run the command as this user, not as the one who called sudo
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// How long to go on after the command has ended, while something that it started still runs
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = parse_duration,
        default_value = "2s",
        allow_hyphen_values = true
    )]
    linger: Duration,
    #[command(flatten)]
    capture: CaptureArgs,
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Run {
    pub(super) fn execute(self) -> Result<Exit, Failure> {
        let command = Command {
            words: self.command,
            owner: owner(self.user.as_deref())?,
            linger: self.linger,
            capture: self.capture,
            settings: self.settings.apply(verdict::Settings::default()),
        };
        let of_run = |failure: Failure| match failure.exit() {
            Exit::NotFound | Exit::CannotInvoke => failure,
            _ => failure.with_exit(Exit::ObserverFailed),
        };
        let loaded = command.load(&self.output).map_err(of_run)?;
        let outputs = self.output.open(Job::Run)?;
        let ended = loaded.observe(outputs).map_err(of_run)?;
        ended.finished.report(self.output.verbosity());
        Ok(match ended.finished.captured {
            Ok(_) => ended.finished.outputs.exit_of(status(ended.fate)),
            Err(_) => Exit::ObserverFailed,
        })
    }
}

/// As whom the command runs: never as root where a user called sudo.
pub(super) fn owner(user: Option<&str>) -> Result<Owner, Failure> {
    Ok(match user {
        Some(name) => Owner::Other(Identity::named(name)?),
        None => Identity::caller()?.map_or(Owner::Same, Owner::Caller),
    })
}

fn status(fate: Fate) -> Exit {
    match fate {
        Fate::Code(code) => Exit::of_code(code),
        Fate::Signal(signal) => Exit::of_signal(signal),
    }
}
