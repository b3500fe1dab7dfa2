//! `observer watch`: the whole machine, whoever speaks MCP over stdio.

use std::path::PathBuf;

use super::attach::{End, begin, conclude, prepare, until_told_to_end};
use super::capture::{CaptureArgs, header};
use super::{Exit, Failure, Job, OutputArgs, SettingsArgs, relay, say};
use crate::capture::ebpf;
use crate::capture::proc::Snapshot;
use crate::record::Scope;
use crate::session::Visibility;
use crate::verdict;

/// Watch the whole machine: every process that speaks MCP over its stdio
///
/// Finds hosts and servers by what they say, also those that run already. Ends with Ctrl-C.
/// Every system call of the machine passes the probe, which costs each of them some hundred
/// nanoseconds meanwhile; attach and run cost the same, and look at fewer processes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  sudo observer watch
  sudo observer watch --quiet --log audit.jsonl
  observer watch --relay")]
pub(super) struct Watch {
    /// Watch no process, but show together what the relays send that were started with --to
    ///
    /// Without SOCKET it is `$XDG_RUNTIME_DIR/observer/relay.sock`. Needs no privileges.
    #[arg(long, value_name = "SOCKET", num_args = 0..=1)]
    #[arg(conflicts_with_all = ["ring_size", "max_frame"])]
    relay: Option<Option<PathBuf>>,
    #[command(flatten)]
    capture: CaptureArgs,
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Watch {
    pub(super) fn execute(self) -> Result<Exit, Failure> {
        match self.relay {
            Some(socket) => relay::watch(socket, self.output.open(Job::Live)?, &self.settings),
            None => self.watch_machine(),
        }
    }

    fn watch_machine(self) -> Result<Exit, Failure> {
        let (runtime, signals) = prepare()?;
        let probe = self
            .capture
            .load(ebpf::Scope::Machine, self.output.verbosity())?;
        let outputs = self.output.open(Job::Live)?;
        let snapshot = Snapshot::take()?;
        let events = snapshot.events(&snapshot.pids(), probe.clock().now());
        if !self.output.is_quiet() {
            say("watching the whole machine for MCP over stdio; Ctrl-C ends");
        }
        let mut session = self.capture.session();
        session.processes = Visibility::Connected;
        let settings = self.settings.apply(verdict::Settings::default());
        let live = begin(
            probe,
            outputs,
            header(Scope::Watch, settings),
            session,
            events,
        )?;
        let finished = runtime.block_on(until_told_to_end(live, signals, End::Never))?;
        conclude(finished, self.output.verbosity())
    }
}
