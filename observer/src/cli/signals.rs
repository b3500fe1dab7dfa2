//! The signals that we get, with who sent them.
//!
//! Owns their delivery while something is observed: as data, through a descriptor, so that none
//! ends us before the log is written. A signal that was ignored when we were started stays so.

use std::io;

use nix::sys::signal::{SigHandler, SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd, siginfo};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::capture::Pid;
use crate::capture::spawn::InheritedSignals;

/// Signals that end an observation.
pub(super) const ENDING: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// Signals that concern a command that we have started.
pub(super) const OF_A_COMMAND: [Signal; 8] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGTSTP,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGCHLD,
];

/// A signal, and where it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Received {
    /// Which.
    pub(super) signal: Signal,
    /// Who sent it; `None` for the kernel, as for a key of the terminal.
    pub(super) sender: Option<Pid>,
}

/// Signals that wait to be asked for.
#[derive(Debug)]
pub(super) struct Signals {
    fd: SignalFd,
    set: SigSet,
    inherited: InheritedSignals,
}

impl Signals {
    /// Holds `signals` back from now on: in this thread, and in those that it starts.
    ///
    /// # Errors
    ///
    /// What the system says to it.
    pub(super) fn hold(signals: &[Signal]) -> io::Result<Self> {
        let inherited = InheritedSignals::read(signals);
        let mut set = SigSet::empty();
        for &signal in signals {
            if signal == Signal::SIGCHLD {
                // Where it is ignored, the kernel keeps no status of a child for us.
                // SAFETY: the default action installs no handler.
                unsafe { nix::sys::signal::signal(signal, SigHandler::SigDfl) }?;
            } else if inherited.ignores(signal) {
                continue;
            }
            set.add(signal);
        }
        set.thread_block()?;
        let fd = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        Ok(Self { fd, set, inherited })
    }

    /// What the signals were before.
    pub(super) fn inherited(&self) -> &InheritedSignals {
        &self.inherited
    }

    /// Makes them awaitable. To be called within a runtime.
    ///
    /// # Errors
    ///
    /// What the system says to it.
    pub(super) fn listen(self) -> io::Result<SignalStream> {
        // SAFETY: the descriptor is the value's own, which keeps it open and never changes it.
        let registered = unsafe { AsyncFd::register_with_interest(self.fd, Interest::READABLE) };
        Ok(SignalStream {
            fd: registered?,
            set: self.set,
        })
    }
}

/// Signals as they come.
#[derive(Debug)]
pub(super) struct SignalStream {
    fd: AsyncFd<SignalFd>,
    set: SigSet,
}

impl SignalStream {
    /// Whether SIGCHLD is among the signals, where it was held back. What came meanwhile comes
    /// then.
    ///
    /// # Errors
    ///
    /// What the system says to it.
    pub(super) fn await_children(&mut self, wanted: bool) -> io::Result<()> {
        let mut set = self.set;
        if !wanted {
            set.remove(Signal::SIGCHLD);
        }
        Ok(self.fd.get_mut().set_mask(&set)?)
    }

    /// The next signal. Nothing is lost where the future is dropped.
    pub(super) async fn next(&mut self) -> io::Result<Received> {
        loop {
            let mut ready = self.fd.readable().await?;
            match ready.get_inner().read_signal()? {
                Some(info) => {
                    if let Some(received) = received(&info) {
                        return Ok(received);
                    }
                }
                None => ready.clear_ready(),
            }
        }
    }
}

fn received(info: &siginfo) -> Option<Received> {
    let signal = Signal::try_from(i32::try_from(info.ssi_signo).ok()?).ok()?;
    // What a process sends has a code of 0 (kill) or below (tgkill, sigqueue).
    let sender = (info.ssi_code <= 0).then_some(Pid(info.ssi_pid));
    Some(Received { signal, sender })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_comes_with_its_sender() {
        // Its mask is this thread's alone, and so must the signal be.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let signals = Signals::hold(&[Signal::SIGUSR1, Signal::SIGUSR2]).unwrap();
        nix::sys::signal::raise(Signal::SIGUSR2).unwrap();
        let received = runtime.block_on(async { signals.listen().unwrap().next().await.unwrap() });
        let sender = Some(Pid(std::process::id()));
        assert_eq!(
            received,
            Received {
                signal: Signal::SIGUSR2,
                sender
            }
        );
    }
}
