//! Systems other than Linux, where nothing can be watched from outside yet: what stands in place
//! of the subcommands that would, and says what works instead.
//!
//! The only part of the command line that those systems have to themselves. A backend of theirs
//! (Mach, on macOS) belongs into `capture`, beside the probe; its subcommands take over from here.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use super::{Exit, Failure, Job, OutputArgs, SettingsArgs, relay};

/// What works here.
const INSTEAD: &str = "put observer relay before a server's command in the host's configuration \
                       (observer relay --help), and see all relays together with observer watch \
                       --relay";

fn refused(what: &str, exit: Exit) -> Failure {
    let system = std::env::consts::OS;
    let message = format!("{what} needs a backend, and there is none for {system} yet");
    Failure::new(exit, message).with_remedy(INSTEAD)
}

/// Start a command, and watch it (on Linux only; see relay)
#[derive(Debug, clap::Args)]
pub(super) struct Run {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _command: Vec<OsString>,
}

impl Run {
    #[expect(clippy::unused_self, reason = "as every subcommand has it")]
    pub(super) fn execute(self) -> Result<Exit, Failure> {
        Err(refused("run", Exit::ObserverFailed))
    }
}

/// Watch hosts or servers that run already (on Linux only; see relay)
#[derive(Debug, clap::Args)]
pub(super) struct Attach {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _targets: Vec<OsString>,
}

impl Attach {
    #[expect(clippy::unused_self, reason = "as every subcommand has it")]
    pub(super) fn execute(self) -> Result<Exit, Failure> {
        Err(refused("attach", Exit::CannotCapture))
    }
}

/// Watch a built-in host abandon a call, for real (on Linux only)
#[derive(Debug, clap::Args)]
pub(super) struct Demo {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _options: Vec<OsString>,
}

impl Demo {
    #[expect(clippy::unused_self, reason = "as every subcommand has it")]
    pub(super) fn execute(self) -> Result<Exit, Failure> {
        Err(refused("demo", Exit::CannotCapture))
    }
}

/// Show together what the relays send that were started with --to
#[derive(Debug, clap::Args)]
pub(super) struct Watch {
    /// The socket on which to listen for them
    ///
    /// Without SOCKET it is `/tmp/observer-UID/relay.sock`. Needs no privileges.
    #[arg(long, value_name = "SOCKET", num_args = 0..=1)]
    relay: Option<Option<PathBuf>>,
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Watch {
    pub(super) fn execute(self) -> Result<Exit, Failure> {
        let socket = self
            .relay
            .ok_or_else(|| refused("watch without --relay", Exit::CannotCapture))?;
        relay::watch(socket, self.output.open(Job::Live)?, &self.settings)
    }
}

/// Say what works here, what does not, and why
#[derive(Debug, clap::Args)]
pub(super) struct Doctor {}

/// What macOS lets a program see of others, and why that is so.
const REPORT: &str = "\
ok     relay          passes on and records what one server and its host say; needs no rights
ok     replay         all that is done with an audit log works as it does on Linux
limit  run, attach    there is no eBPF here, and no backend of another kind yet
limit  integrity      system integrity protection keeps DTrace and debuggers out of the system's
                      own programs (/bin, /usr/bin), for root too: a host that is started by
                      /bin/sh or /usr/bin/env could not be followed from there on
limit  hardening      programs with the hardened runtime, as nearly all that are signed and
                      notarised, let no debugger in unless they carry the entitlement
                      com.apple.security.get-task-allow; for root too
limit  reading        the relay cannot tell how far a reader has got: whether a server had read a
                      request when its host gave it up stays open
";

impl Doctor {
    pub(super) fn execute(&self) -> Result<Exit, Failure> {
        // Where nobody reads it, the exit code still tells.
        let _ = write!(
            std::io::stdout(),
            "{REPORT}\nobserver cannot watch from outside here; {INSTEAD}\n"
        );
        Ok(Exit::CannotCapture)
    }
}
