//! `observer attach`: observes processes that run already, and all that they start.

use std::collections::BTreeSet;

use clap::builder::NonEmptyStringValueParser;

use super::backend::Ready;
use super::capture::CaptureArgs;
use super::live::{Finished, Live};
use super::signals::{self, Signals};
use super::{Exit, Failure, Job, OutputArgs, Outputs, SettingsArgs, say};
use crate::capture::proc::{self, Process, Snapshot};
use crate::capture::{Captured, Pid};
use crate::record::Scope;
use crate::session;
use crate::verdict;

/// How often the processes are looked up again, at most, until no new one is found.
const ROUNDS: usize = 8;

/// Watch hosts or servers that run already
///
/// Takes in what they have started, and whoever holds the other end of their stdio: a server
/// brings its host, a host its servers. Ends with Ctrl-C, or when all of them have ended. What
/// was said before cannot be known: each stream starts with a gap.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  sudo observer attach codex
  sudo observer attach --log audit.jsonl 4242 gemini")]
pub(super) struct Attach {
    /// Process ids, or names: of programs, or of scripts that node, python, ... run
    #[arg(value_name = "PID|NAME", required = true, value_parser = NonEmptyStringValueParser::new())]
    targets: Vec<String>,
    #[command(flatten)]
    capture: CaptureArgs,
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Attach {
    pub(super) fn execute(self) -> Result<Exit, Failure> {
        let roots = find(&self.targets, &Snapshot::take()?)?;
        let (runtime, signals) = prepare()?;
        let (ready, snapshot, scope) = self.join(&roots)?;
        let outputs = self.output.open(Job::Live)?;
        let events = snapshot.events(&scope, ready.clock().now());
        if !self.output.is_quiet() {
            say(format_args!(
                "watching {}; Ctrl-C ends",
                names(&snapshot, &scope)
            ));
        }
        let settings = self.settings.apply(verdict::Settings::default());
        let header = ready.header(
            Scope::Attach {
                pids: scope.into_iter().collect(),
            },
            settings,
        );
        let live = begin(ready, outputs, header, self.capture.session(), events)?;
        let finished = runtime.block_on(until_told_to_end(live, signals, End::WithProcesses))?;
        conclude(finished, self.output.verbosity())
    }

    /// Watches first and looks then, until nobody is found who is not watched: whoever is started
    /// meanwhile is started by one that is.
    fn join(&self, roots: &BTreeSet<Pid>) -> Result<(Ready, Snapshot, BTreeSet<Pid>), Failure> {
        let mut ready = self.capture.load(&self.output)?;
        let mut snapshot = Snapshot::take()?;
        let (mut scope, mut refused) = (BTreeSet::new(), BTreeSet::new());
        for _ in 0..ROUNDS {
            let found = snapshot.scope(if scope.is_empty() { roots } else { &scope });
            let known: BTreeSet<Pid> = scope.union(&refused).copied().collect();
            let new: Vec<Pid> = found.difference(&known).copied().collect();
            if new.is_empty() {
                break;
            }
            for pid in new {
                match ready.watch_pid(pid) {
                    Ok(()) => drop(scope.insert(pid)),
                    Err(failure) if roots.contains(&pid) => return Err(failure),
                    Err(failure) => {
                        refused.insert(pid);
                        self.tell_refused(&snapshot, pid, &failure);
                    }
                }
            }
            snapshot = Snapshot::take()?;
        }
        Ok((ready, snapshot, scope))
    }

    /// One that was found beside those that were asked for cannot be watched: what it does goes
    /// by unseen.
    fn tell_refused(&self, snapshot: &Snapshot, pid: Pid, failure: &Failure) {
        let ended = proc::process(pid).is_none();
        if !ended && !self.output.is_quiet() {
            let name = names(snapshot, &BTreeSet::from([pid]));
            say(format_args!("not watching {name}: {failure}"));
        }
    }
}

/// The processes that the user means.
fn find(targets: &[String], snapshot: &Snapshot) -> Result<BTreeSet<Pid>, Failure> {
    let mut roots = BTreeSet::new();
    for target in targets {
        let found = match target.parse() {
            Ok(pid) => snapshot
                .process(Pid(pid))
                .map(|_| Pid(pid))
                .into_iter()
                .collect(),
            Err(_) => snapshot.named(target),
        };
        if found.is_empty() {
            let what = if target.parse::<u32>().is_ok() {
                "with pid"
            } else {
                "called"
            };
            let target = target.escape_debug();
            return Err(
                Failure::new(Exit::Failed, format_args!("no process {what} {target}"))
                    .with_remedy("ps -eo pid,args lists what runs"),
            );
        }
        roots.extend(found);
    }
    Ok(roots)
}

/// `codex[4242] and 3 more processes`.
fn names(snapshot: &Snapshot, scope: &BTreeSet<Pid>) -> String {
    let name = |pid: &Pid| {
        let name = snapshot
            .process(*pid)
            .map_or("?", Process::name)
            .escape_debug();
        format!("{name}[{pid}]")
    };
    let shown: Vec<String> = scope.iter().take(4).map(name).collect();
    match scope.len() - shown.len() {
        0 => shown.join(", "),
        1 => format!("{} and another process", shown.join(", ")),
        more => format!("{} and {more} more processes", shown.join(", ")),
    }
}

/// When an observation ends of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// When no process of the scope is left.
    WithProcesses,
    /// Never.
    Never,
}

/// A runtime, and the signals that end an observation, before any thread is made.
pub(super) fn prepare() -> Result<(tokio::runtime::Runtime, Signals), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let signals = Signals::hold(&signals::ENDING);
    let failed = |error| Failure::new(Exit::Failed, format_args!("cannot await signals: {error}"));
    Ok((runtime.map_err(failed)?, signals.map_err(failed)?))
}

/// Begins an observation with what is known already.
pub(super) fn begin(
    mut ready: Ready,
    outputs: Outputs,
    header: crate::record::Header,
    session: session::Settings,
    known: Vec<Captured>,
) -> Result<Live, Failure> {
    ready.note_joined(&known);
    let mut live = Live::begin(ready.start()?, outputs, header, session);
    live.handle_events(known);
    Ok(live)
}

/// Observes until a signal comes, or the end.
pub(super) async fn until_told_to_end(
    mut live: Live,
    signals: Signals,
    end: End,
) -> Result<Finished, Failure> {
    let failed = |error| Failure::new(Exit::Failed, format_args!("cannot await signals: {error}"));
    let mut signals = signals.listen().map_err(failed)?;
    let mut told = false;
    while end == End::Never || !live.alive().is_empty() {
        tokio::select! {
            biased;
            received = signals.next() => {
                received.map_err(failed)?;
                told = true;
                break;
            }
            step = live.step() => if step.is_err() || live.is_left() {
                break;
            },
        }
    }
    Ok(live.finish().await.shown(told))
}

/// The exit code of an observation that was not `run`'s.
pub(super) fn conclude(finished: Finished, verbosity: u8) -> Result<Exit, Failure> {
    if finished.captured.is_ok() {
        finished.report(verbosity);
    }
    let exit = finished.outputs.exit();
    finished.captured.map(|_| exit)
}
