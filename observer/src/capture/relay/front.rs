//! The process that the host started, and takes for the server.
//!
//! Must end when the server ends, in the same way, but not before the host can read all that the
//! server wrote. Passes on the signals that did not reach the server by themselves. Has one thread
//! and touches no byte of the session.

use std::mem;
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::getppid;

use super::StartError;
use super::control::{Control, Report, Reports, Signalled, Word};
use super::fate::{die_of, end_like};
use super::server::Process;
use super::signals::{Arrival, Arrivals};
use super::witness::{Witness, let_go_of_stdio};
use crate::capture::{Fate, Pid};

/// So long may the passer finish the log while the host waits for the exit status.
const LOG_PATIENCE: Duration = Duration::from_secs(1);

/// So long after the host's death the server may take to end by itself.
const ORPHAN_PATIENCE: Duration = Duration::from_secs(1);

/// Between a signal to the front and the same signal to the rest of its group.
const GROUP_LAG: Duration = Duration::from_millis(1);

/// A signal that the witness has seen arrives here within this time, or was one with another.
const EARLY: Duration = Duration::from_secs(1);

/// So often are the witness and this process asked where signals keep coming.
const ROUNDS: usize = 8;

/// See the module.
#[derive(Debug)]
pub struct Front {
    server: Process,
    host: Pid,
    passer: nix::unistd::Pid,
    witness: Witness,
    arrivals: Arrivals,
    /// `None` once the passer is gone.
    reports: Option<Reports>,
    control: Control,
    state: State,
}

#[derive(Debug, Default)]
struct State {
    /// How the server ended.
    fate: Option<Fate>,
    passing: Passing,
    /// When to leave a server that has not ended, if its host is gone by then.
    orphan_check: Option<Instant>,
    /// Signals that the witness has seen and that have not arrived here, and until when they may.
    early: Option<(SigSet, Instant)>,
    /// Whether a SIGTSTP came, and nothing was done about it here.
    told_to_stop: bool,
    /// Whether the server has stopped.
    stopped: bool,
}

/// How far the passer is with what the server wrote.
#[derive(Clone, Copy, Debug, Default)]
enum Passing {
    #[default]
    Going,
    /// Done, and the log will be finished at this time or not be waited for.
    Done { leave: Instant },
    /// Done as far as the server goes; others write on, and the passer sees to them.
    HeldOpen,
}

impl Front {
    pub(super) fn new(
        server: Process,
        host: Pid,
        passer: nix::unistd::Pid,
        witness: Witness,
        reports: Reports,
        control: Control,
    ) -> Result<Self, StartError> {
        let _ = let_go_of_stdio();
        let arrivals = Arrivals::begin().map_err(StartError::system("handle signals"))?;
        Ok(Self {
            server,
            host,
            passer,
            witness,
            arrivals,
            reports: Some(reports),
            control,
            state: State::default(),
        })
    }

    /// Follows the server to its end, and ends like it.
    pub fn follow(mut self) -> ! {
        // A server that ended before the handler stood.
        self.look_at_server();
        loop {
            self.wait();
            self.handle_arrivals();
            self.look_at_host();
            if let Some(fate) = self.state.fate
                && self.may_end()
            {
                self.tidy_up();
                end_like(fate);
            }
        }
    }

    /// Leaves no process behind that nobody waits for: not everybody's init does.
    fn tidy_up(&self) {
        self.witness.end();
        if self.reports.is_none() {
            let _ = waitpid(self.passer, None);
        }
    }

    /// Until a signal, a report, or a time to do something.
    fn wait(&mut self) {
        let timeout = self.next_time().map_or(PollTimeout::NONE, |time| {
            let left = time.saturating_duration_since(Instant::now());
            // Rounded up: never too early, never busy.
            PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
        });
        let mut fds = vec![PollFd::new(self.arrivals.as_fd(), PollFlags::POLLIN)];
        fds.extend(
            self.reports
                .as_ref()
                .map(|reports| PollFd::new(reports.as_fd(), PollFlags::POLLIN)),
        );
        // EINTR: a signal, whose handler has written by now.
        let _ = poll(&mut fds, timeout);
        let reported = fds.get(1).and_then(PollFd::revents);
        if reported.is_some_and(|events| !events.is_empty()) {
            self.handle_report();
        }
    }

    fn next_time(&self) -> Option<Instant> {
        let leave = match self.state.passing {
            Passing::Done { leave } if self.state.fate.is_some() => Some(leave),
            _ => None,
        };
        leave.into_iter().chain(self.state.orphan_check).min()
    }

    fn handle_report(&mut self) {
        let now = Instant::now();
        match self.reports.as_mut().and_then(Reports::next) {
            Some(Report::HostClosed) => {
                self.state.orphan_check = Some(now + ORPHAN_PATIENCE);
            }
            Some(Report::Passed) => {
                self.state.passing = Passing::Done {
                    leave: now + LOG_PATIENCE,
                };
            }
            Some(Report::HeldOpen) => self.state.passing = Passing::HeldOpen,
            None => self.reports = None,
        }
    }

    /// Whether the host can have everything that the server wrote, and the log had its time.
    fn may_end(&self) -> bool {
        self.reports.is_none()
            || match self.state.passing {
                Passing::Going => false,
                Passing::Done { leave } => Instant::now() >= leave,
                Passing::HeldOpen => true,
            }
    }

    fn handle_arrivals(&mut self) {
        let mut arrivals = self.arrivals.take();
        if arrivals.is_empty() {
            return;
        }
        let is_news = |arrival: &Arrival| arrival.signal == Signal::SIGCHLD;
        if !arrivals.iter().all(is_news) {
            let to_group = self.sent_to_group(&mut arrivals);
            for &arrival in arrivals.iter().filter(|arrival| !is_news(arrival)) {
                self.handle_signal(arrival, to_group.contains(arrival.signal));
            }
        }
        self.look_at_server();
        if self.state.stopped && mem::take(&mut self.state.told_to_stop) {
            // As if this were the server: a shell that waits for it sees that it has stopped.
            let _ = raise(Signal::SIGSTOP);
        }
    }

    /// Which of them went to the whole group. What arrives meanwhile is added.
    ///
    /// The witness and this process get their copies of a signal one after the other, and others
    /// may come in between. So both are asked until nothing new has come; what the witness has
    /// seen and has not arrived here even then is remembered.
    fn sent_to_group(&mut self, arrivals: &mut Vec<Arrival>) -> SigSet {
        let known = |to_group: &SigSet, arrivals: &[Arrival]| {
            arrivals
                .iter()
                .all(|arrival| to_group.contains(arrival.signal))
        };
        let mut to_group = self.take_early();
        for round in 0..ROUNDS {
            to_group.extend(&self.witness.ask());
            let settled = round > 0 || known(&to_group, arrivals);
            thread::sleep(GROUP_LAG);
            let more = self.arrivals.take();
            let quiet = known(&to_group, &more);
            arrivals.extend(more);
            if settled && quiet {
                break;
            }
        }
        let mut early = to_group;
        for arrival in &*arrivals {
            early.remove(arrival.signal);
        }
        self.state.early = Some((early, Instant::now() + EARLY));
        // Of these two the kernel lets the later one take away the earlier one that is pending.
        let pair = [Signal::SIGTSTP, Signal::SIGCONT];
        if pair.iter().any(|signal| to_group.contains(*signal)) {
            to_group.extend(pair);
        }
        to_group
    }

    fn take_early(&mut self) -> SigSet {
        let early = self.state.early.take();
        early
            .filter(|(_, until)| Instant::now() < *until)
            .map_or_else(SigSet::empty, |(early, _)| early)
    }

    fn handle_signal(&mut self, Arrival { signal, sender, at }: Arrival, to_group: bool) {
        self.control.tell(Word::Signal(Signalled {
            number: signal as i32,
            sender,
            to_group,
            at,
        }));
        match signal {
            Signal::SIGTSTP => self.state.told_to_stop = true,
            Signal::SIGCONT => self.state.told_to_stop = false,
            _ => {}
        }
        let harmless = matches!(signal, Signal::SIGCONT | Signal::SIGTSTP | Signal::SIGWINCH);
        match self.state.fate {
            None if to_group => {}
            None => {
                let _ = kill(self.server.pid, signal);
            }
            // The host waits no more for the rest of the output.
            Some(_) if !harmless => {
                self.tidy_up();
                die_of(signal);
            }
            Some(_) => {}
        }
    }

    /// Asks the kernel what the server did.
    fn look_at_server(&mut self) {
        let flags = WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED | WaitPidFlag::WCONTINUED;
        while self.state.fate.is_none() {
            match waitpid(self.server.pid, Some(flags)) {
                Ok(WaitStatus::Exited(_, code)) => self.ended(Fate::Code(code)),
                Ok(WaitStatus::Signaled(_, signal, _)) => self.ended(Fate::Signal(signal as i32)),
                Ok(WaitStatus::Stopped(..)) => self.state.stopped = true,
                Ok(WaitStatus::Continued(_)) => self.state.stopped = false,
                _ => return,
            }
        }
    }

    fn ended(&mut self, fate: Fate) {
        self.state.fate = Some(fate);
        self.control.tell(Word::Ended(fate));
        if let Passing::Done { leave } = &mut self.state.passing {
            *leave = Instant::now() + LOG_PATIENCE;
        }
    }

    /// A server may watch for its parent's death, so the parent must not outlive the host: where
    /// the host is gone, nobody waits for this process.
    fn look_at_host(&mut self) {
        if self.state.fate.is_some()
            || self
                .state
                .orphan_check
                .is_none_or(|time| Instant::now() < time)
        {
            return;
        }
        self.state.orphan_check = None;
        if getppid().as_raw().cast_unsigned() != self.host.0 {
            self.control.tell(Word::Leave);
            std::process::exit(0);
        }
    }
}
