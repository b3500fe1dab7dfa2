//! `observer doctor`: what works here, what does not, and what to do about it.
//!
//! The last word has the kernel: the probe is loaded, and has to see a message go through a pipe;
//! then a tracer has to.

mod surroundings;

use std::collections::BTreeSet;
use std::io::Write;
use std::time::{Duration, Instant};

use super::backend::Ready;
use super::capture::{self, CaptureArgs, Choice};
use super::demo::part;
use super::run::owner;
use super::{Exit, Failure, remedy};
use crate::capture::CaptureEvent;
use crate::capture::ebpf::{Options, Probe, ProbeError, Scope};
use crate::capture::proc::Snapshot;
use crate::capture::spawn::{ChildChange, InheritedSignals, Owner, Paused, Streams};

/// How long the probe may take to report what a process did.
const PATIENCE: Duration = Duration::from_secs(5);

/// Say what works here, what does not, and what to do about it
///
/// Looks at the kernel and at this process's rights, loads the probe for real, and lets it watch
/// a message that goes through a pipe; then the same with ptrace. Changes nothing. Exits with 0
/// where observer can watch (with --backend: by that one), and with 4 where it cannot.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  sudo observer doctor")]
pub(super) struct Doctor {
    /// Show what the kernel's verifier says, too
    #[arg(long, short)]
    verbose: bool,
    #[command(flatten)]
    capture: CaptureArgs,
}

impl Doctor {
    pub(super) fn execute(&self) -> Result<Exit, Failure> {
        let mut checks = surroundings::checks();
        checks.push(processes());
        checks.push(command_owner());
        let probe = self.probe(&mut checks);
        let ptrace = ptrace();
        let works = Works {
            ebpf: probe,
            ptrace: ptrace.state != State::Bad,
        };
        checks.push(ptrace);
        if works.serve(self.capture.backend) {
            checks.iter_mut().for_each(Check::soften);
        }
        let mut text = render(&checks);
        text.push('\n');
        text.push_str(works.conclusion(self.capture.backend));
        text.push('\n');
        // Where nobody reads it, the exit code still tells.
        let _ = std::io::stdout().write_all(text.as_bytes());
        Ok(match works.serve(self.capture.backend) {
            true => Exit::Clean,
            false => Exit::CannotCapture,
        })
    }

    /// Loads the probe, and has it see a message. Whether it did.
    fn probe(&self, checks: &mut Vec<Check>) -> bool {
        let mut options = Options::new(Scope::Pids(Vec::new()));
        options.ring_bytes = self.capture.ring_bytes();
        let began = Instant::now();
        let probe = match Probe::load(&options) {
            Ok(probe) => probe,
            Err(error) => {
                checks.push(self.refused(&error));
                return false;
            }
        };
        let took = began.elapsed().as_secs_f64();
        checks.push(loaded(&probe, took));
        let capture = pipe("capture", Ready::probe(probe));
        let works = capture.state == State::Good;
        checks.push(capture);
        works
    }

    fn refused(&self, error: &ProbeError) -> Check {
        let mut check = Check::bad("probe", remedy::with_causes(error), remedy::of_probe(error));
        if let ProbeError::Rejected { log, .. } = error
            && self.verbose
        {
            check.text.push('\n');
            check.text.push_str(log.trim());
        }
        check
    }
}

/// How the probe fares in this kernel; it took so many seconds.
fn loaded(probe: &Probe, took: f64) -> Check {
    let hooks = probe.hooks().len();
    let loads = format!("loads, and attaches to {hooks} tracepoints, in {took:.2} s");
    let Some(reason) = probe.skipped_because() else {
        return Check::good("probe", loads);
    };
    let reason = remedy::with_causes(reason);
    let text = format!("{loads}; but this kernel may skip system calls ({reason})");
    Check::limit("probe", text, Some(remedy::of_skipped_calls()))
}

/// Which backends can watch.
#[derive(Clone, Copy, Debug)]
struct Works {
    ebpf: bool,
    ptrace: bool,
}

impl Works {
    fn serve(self, choice: Choice) -> bool {
        match choice {
            Choice::Auto => self.ebpf || self.ptrace,
            Choice::Ebpf => self.ebpf,
            Choice::Ptrace => self.ptrace,
        }
    }

    fn conclusion(self, choice: Choice) -> &'static str {
        match (self.serve(choice), self.ebpf && choice != Choice::Ptrace) {
            (true, true) => "observer can watch here",
            (true, false) => {
                "observer can watch here with ptrace: what you run, and your own processes. Only \
                 the whole machine needs eBPF, and what is marked `limit` above"
            }
            (false, _) => "observer cannot watch here",
        }
    }
}

/// How one thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// As it should be.
    Good,
    /// It limits something.
    Limit,
    /// It makes capturing impossible.
    Bad,
}

/// One line of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Check {
    topic: &'static str,
    state: State,
    text: String,
    remedy: Option<String>,
}

impl Check {
    fn good(topic: &'static str, text: impl Into<String>) -> Self {
        Self {
            topic,
            state: State::Good,
            text: text.into(),
            remedy: None,
        }
    }

    fn limit(topic: &'static str, text: impl Into<String>, remedy: Option<String>) -> Self {
        Self {
            topic,
            state: State::Limit,
            text: text.into(),
            remedy,
        }
    }

    fn bad(topic: &'static str, text: impl Into<String>, remedy: Option<String>) -> Self {
        Self {
            topic,
            state: State::Bad,
            text: text.into(),
            remedy,
        }
    }

    /// What makes one backend impossible limits an observer that has the other.
    fn soften(&mut self) {
        if self.state == State::Bad {
            self.state = State::Limit;
        }
    }

    fn render(&self, remedy: Option<&str>) -> String {
        let state = match self.state {
            State::Good => "ok",
            State::Limit => "limit",
            State::Bad => "FAIL",
        };
        let line = format!("{state:<6} {:<14} {}\n", self.topic, self.text);
        match remedy {
            Some(remedy) => format!("{line}{:<21} remedy: {remedy}\n", ""),
            None => line,
        }
    }
}

/// All lines, each remedy where it is needed first.
fn render(checks: &[Check]) -> String {
    let mut told = BTreeSet::new();
    let line = |check: &Check| {
        let remedy = check.remedy.as_deref();
        check.render(remedy.filter(|remedy| told.insert(remedy.to_string())))
    };
    checks.iter().map(line).collect()
}

/// What `attach` and `watch` see of the processes that run already.
fn processes() -> Check {
    const TOPIC: &str = "processes";
    let snapshot = match Snapshot::take() {
        Ok(snapshot) => snapshot,
        Err(error) => {
            let text = remedy::with_causes(&error);
            return Check::limit(TOPIC, format!("{text}: no attach, no watch"), None);
        }
    };
    let all = snapshot.pids();
    let hidden = all.iter().filter(|&&pid| {
        snapshot
            .process(pid)
            .is_some_and(|process| process.descriptors.is_none())
    });
    match (all.len(), hidden.count()) {
        (all, 0) => Check::good(
            TOPIC,
            format!("{all} run; the pipes and sockets of all are known"),
        ),
        (all, hidden) => Check::limit(
            TOPIC,
            format!("{all} run; the pipes and sockets of {hidden} may not be looked at"),
            Some(remedy::permission()),
        ),
    }
}

/// As whom `run` starts a command.
fn command_owner() -> Check {
    const TOPIC: &str = "run";
    match owner(None) {
        Ok(Owner::Caller(identity) | Owner::Other(identity)) => Check::good(
            TOPIC,
            format!("starts commands as {}, who called sudo", identity.name()),
        ),
        Ok(Owner::Same) => {
            let user = nix::unistd::geteuid();
            Check::good(
                TOPIC,
                format!("starts commands as the user that it has itself (uid {user})"),
            )
        }
        Err(failure) => Check::limit(TOPIC, failure.to_string(), None),
    }
}

/// Whether a child can be traced; what Yama says of other processes.
fn ptrace() -> Check {
    const TOPIC: &str = "ptrace";
    let seen = match capture::trace() {
        Ok(ready) => pipe(TOPIC, ready),
        Err(failure) => Check::bad(TOPIC, failure.to_string(), None),
    };
    match seen.state {
        State::Good => surroundings::ptrace(&seen.text),
        State::Limit | State::Bad => seen,
    }
}

/// Lets a backend see a process that writes into a pipe.
fn pipe(topic: &'static str, ready: Ready) -> Check {
    match see_ping(ready) {
        Ok(true) => Check::good(topic, "a message that went through a pipe came out whole"),
        Ok(false) => Check::bad(
            topic,
            "a message that went through a pipe was not seen",
            Some("please report it, with this output".into()),
        ),
        Err(failure) => Check::bad(topic, failure.to_string(), None),
    }
}

fn see_ping(mut ready: Ready) -> Result<bool, Failure> {
    let failed = |error: std::io::Error| Failure::new(Exit::CannotCapture, error);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(failed)?;
    let words = [part::NAME.into(), "ping".into()];
    let paused = Paused::spawn(
        part::PROGRAM.into(),
        &words,
        &Owner::Same,
        InheritedSignals::read(&[]),
        Streams::Ours,
    )?;
    let changes = ready.watch_child(paused.pid())?;
    let mut capture = ready.start()?;
    let child = paused.release()?;
    let seen = runtime.block_on(async {
        tokio::time::timeout(PATIENCE, async {
            while let Some(events) = capture.next().await {
                if events.iter().any(|captured| is_ping(&captured.event)) {
                    return true;
                }
            }
            false
        })
        .await
    });
    match changes {
        Some(mut changes) => {
            while let Some(change) = changes.wait() {
                if matches!(change, ChildChange::Ended(_)) {
                    break;
                }
            }
        }
        None => drop(child.wait().map_err(failed)?),
    }
    Ok(seen.unwrap_or(false))
}

fn is_ping(event: &CaptureEvent) -> bool {
    matches!(event, CaptureEvent::Chunk { bytes, .. } if bytes == part::PING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_one_backend_needs_is_no_failure_where_the_other_works() {
        let mut check = Check::bad("rights", "none", None);
        check.soften();
        assert_eq!(check.render(None), "limit  rights         none\n");
        let works = Works {
            ebpf: false,
            ptrace: true,
        };
        assert!(works.serve(Choice::Auto) && !works.serve(Choice::Ebpf));
    }

    #[test]
    fn a_remedy_stands_below_the_first_line_that_needs_it() {
        let checks = [
            Check::good("kernel", "6.1"),
            Check::bad("rights", "none", Some("sudo".into())),
            Check::limit("/proc", "closed", Some("sudo".into())),
        ];
        let expected = "\
ok     kernel         6.1
FAIL   rights         none
                      remedy: sudo
limit  /proc          closed
";
        assert_eq!(render(&checks), expected);
    }
}
