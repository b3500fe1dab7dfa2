//! A command that is observed from its first instruction to its end, and beyond.
//!
//! The command must not notice: it has our terminal, standard streams and process group, and gets
//! the signals that we get. The backend is loaded before it is started, so that what cannot be
//! captured is not run in vain.

use std::ffi::OsString;
use std::io;
use std::time::Duration;

use nix::sys::signal::{Signal, raise};
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep_until};

use super::backend::Ready;
use super::capture::CaptureArgs;
use super::live::{Finished, Live, seen};
use super::signals::{self, Received, SignalStream, Signals};
use super::{Exit, Failure, OutputArgs, Outputs, say};
use crate::capture::ptrace::ChildChanges;
use crate::capture::spawn::{Child, ChildChange, Owner, Paused};
use crate::capture::{Fate, Pid, proc};
use crate::record;
use crate::verdict;

/// A command to observe.
pub(super) struct Command {
    /// The program and its arguments.
    pub(super) words: Vec<OsString>,
    /// As whom it runs.
    pub(super) owner: Owner,
    /// How long to go on after its end.
    pub(super) linger: Duration,
    /// How to capture.
    pub(super) capture: CaptureArgs,
    /// How to judge.
    pub(super) settings: verdict::Settings,
}

/// A command that has been observed to its end.
pub(super) struct Ended {
    /// How the command ended.
    pub(super) fate: Fate,
    /// What was seen of it.
    pub(super) finished: Finished,
    /// Whether somebody wanted the observation to end.
    pub(super) told: bool,
}

impl Command {
    /// Gets everything ready, so that the command can be observed from its first instruction.
    ///
    /// # Errors
    ///
    /// Where nothing can be captured here.
    pub(super) fn load(self, output: &OutputArgs) -> Result<Loaded, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| system("make a runtime", &error))?;
        // Before any thread is made, which would get the signals instead.
        let signals = Signals::hold(&signals::OF_A_COMMAND)
            .map_err(|error| system("hold signals back", &error))?;
        let ready = self.capture.load(output)?;
        Ok(Loaded {
            command: self,
            runtime,
            signals,
            ready,
        })
    }
}

/// A command that can be started, and what observes it then.
pub(super) struct Loaded {
    command: Command,
    runtime: Runtime,
    signals: Signals,
    ready: Ready,
}

impl Loaded {
    /// Starts the command, and observes it to its end.
    ///
    /// # Errors
    ///
    /// Where the command cannot be started; nothing has run then.
    pub(super) fn observe(self, mut outputs: Outputs) -> Result<Ended, Failure> {
        let Self {
            command,
            runtime,
            signals,
            mut ready,
        } = self;
        let (program, arguments) = command.words.split_first().ok_or_else(no_command)?;
        let inherited = signals.inherited().clone();
        let streams = outputs
            .streams()
            .map_err(|error| system("make a pipe", &error))?;
        let paused = Paused::spawn(
            program.clone(),
            arguments,
            &command.owner,
            inherited,
            streams,
        )?;
        let changes = ready.watch_child(paused.pid())?;
        let words = command
            .words
            .iter()
            .map(|word| word.to_string_lossy().into_owned());
        let scope = record::Scope::Run {
            command: words.collect(),
        };
        let header = ready.header(scope, command.settings);
        let session = command.capture.session();
        let mut live = Live::begin(ready.start()?, outputs, header, session);
        announce(&mut live, paused.pid());
        let child = paused.release()?;
        runtime.block_on(async {
            let mut signals = signals
                .listen()
                .map_err(|error| system("await signals", &error))?;
            // The tracer tells of the child's end, and nobody else may ask for it.
            signals
                .await_children(changes.is_none())
                .map_err(|error| system("await signals", &error))?;
            Watched {
                child,
                changes,
                live,
                signals,
                linger: command.linger,
                told: false,
            }
            .observe()
            .await
        })
    }
}

/// The kernel does not report the child's birth: it was not in the scope then.
fn announce(live: &mut Live, pid: Pid) {
    let start = proc::process(pid).map(|process| process.start);
    let event = seen(live.clock().now(), pid, Pid(std::process::id()), start);
    live.handle_events(vec![event]);
}

fn system(operation: &str, error: &io::Error) -> Failure {
    Failure::new(
        Exit::ObserverFailed,
        format_args!("cannot {operation}: {error}"),
    )
}

fn no_command() -> Failure {
    Failure::new(Exit::ObserverFailed, "no command is given")
}

/// A running command, and the observation of it.
struct Watched {
    child: Child,
    changes: Option<ChildChanges>,
    live: Live,
    signals: SignalStream,
    linger: Duration,
    /// Whether somebody wanted us to end.
    told: bool,
}

impl Watched {
    async fn observe(mut self) -> Result<Ended, Failure> {
        let fate = self.until_it_ends().await?;
        self.until_all_is_over().await?;
        let left = self.left_running();
        let told = self.told;
        let finished = self.live.finish().await.shown(told);
        if !left.is_empty() {
            say(format_args!(
                "no longer watched, and running still: {}",
                left.join(", ")
            ));
        }
        Ok(Ended {
            fate,
            finished,
            told,
        })
    }

    /// The command runs on where the backend fails: it must not notice.
    async fn until_it_ends(&mut self) -> Result<Fate, Failure> {
        let mut capturing = true;
        loop {
            tokio::select! {
                biased;
                received = self.signals.next() => {
                    let received = received.map_err(|error| system("await signals", &error))?;
                    if let Some(fate) = self.handle_signal(received)? {
                        return Ok(fate);
                    }
                }
                change = next_change(&mut self.changes) => {
                    if let Some(fate) = self.handle_traced(change)? {
                        return Ok(fate);
                    }
                }
                step = self.live.step(), if capturing => {
                    capturing = step.is_ok();
                    // Whoever leaves the live view cannot end the command in another way.
                    if !self.told && self.live.is_left() {
                        self.told = true;
                        self.child.signal(Signal::SIGTERM);
                    }
                }
            }
        }
    }

    /// What the command has started may still owe something, or may be a daemon that never ends.
    async fn until_all_is_over(&mut self) -> Result<(), Failure> {
        let end = Instant::now() + self.linger;
        while !self.live.alive().is_empty() {
            tokio::select! {
                biased;
                received = self.signals.next() => {
                    let received = received.map_err(|error| system("await signals", &error))?;
                    if signals::ENDING.contains(&received.signal) {
                        self.told = true;
                        return Ok(());
                    }
                }
                step = self.live.step() => if step.is_err() {
                    return Ok(());
                },
                () = sleep_until(end) => return Ok(()),
            }
        }
        Ok(())
    }

    /// Does with a signal what must be done for the command not to notice us.
    fn handle_signal(&mut self, received: Received) -> Result<Option<Fate>, Failure> {
        if received.signal == Signal::SIGCHLD {
            let change = self
                .child
                .poll()
                .map_err(|error| system("wait for the command", &error))?;
            return Ok(self.handle_change(change));
        } else if received
            .sender
            .is_some_and(|sender| !self.live.alive().contains(&sender))
        {
            self.told |= signals::ENDING.contains(&received.signal);
            // What the terminal sends, or the command to its group, it has got itself.
            self.child.signal(received.signal);
        }
        Ok(None)
    }

    /// What the tracer tells of the command; `None` where it has ended early. Then the command is
    /// an ordinary child again.
    fn handle_traced(&mut self, change: Option<ChildChange>) -> Result<Option<Fate>, Failure> {
        if let Some(change) = change {
            return Ok(self.handle_change(change));
        }
        self.changes = None;
        self.signals
            .await_children(true)
            .map_err(|error| system("await signals", &error))?;
        Ok(None)
    }

    fn handle_change(&self, change: ChildChange) -> Option<Fate> {
        match change {
            ChildChange::Ended(fate) => return Some(fate),
            ChildChange::Stopped => self.stop_as_well(),
            ChildChange::None => {}
        }
        None
    }

    /// The shell waits for us, and must learn that its job was stopped. When it resumes us, we
    /// resume the command.
    fn stop_as_well(&self) {
        if in_foreground() && raise(Signal::SIGSTOP).is_ok() {
            self.child.signal(Signal::SIGCONT);
        }
    }

    /// What is left, as far as it is not about to end.
    fn left_running(&self) -> Vec<String> {
        let name = |&pid: &Pid| {
            let process = proc::process(pid).filter(|process| !process.argv.is_empty())?;
            let name = process.exe.as_deref().unwrap_or(process.argv[0].as_str());
            let name = name.rsplit('/').next().unwrap_or(name).escape_debug();
            Some(format!("{name}[{pid}]"))
        };
        self.live.alive().iter().filter_map(name).collect()
    }
}

/// The next change that the tracer tells of; never, where there is none.
async fn next_change(changes: &mut Option<ChildChanges>) -> Option<ChildChange> {
    match changes {
        Some(changes) => changes.next().await,
        None => std::future::pending().await,
    }
}

/// Whether a shell with job control has put us into the foreground of a terminal.
fn in_foreground() -> bool {
    let terminal = std::fs::File::open("/dev/tty");
    let foreground = terminal
        .ok()
        .and_then(|terminal| nix::unistd::tcgetpgrp(terminal).ok());
    foreground == Some(nix::unistd::getpgrp())
}
