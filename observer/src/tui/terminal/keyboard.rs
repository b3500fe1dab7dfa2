//! Waiting for keys, and noticing that the terminal they come from is gone.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::TerminalError;

/// Where keys come from.
pub(super) enum Keyboard {
    Stdin(io::Stdin),
    /// Stdin is something else: the log that is read, say.
    Terminal(File),
}

/// See [`Keyboard::wait`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waited {
    /// There may be a key.
    Perhaps,
    /// The terminal is gone. crossterm must not be asked any more: it would read nothing for ever.
    Gone,
}

impl Keyboard {
    pub(super) fn open() -> Result<Self, TerminalError> {
        let stdin = io::stdin();
        if stdin.is_terminal() {
            return Ok(Self::Stdin(stdin));
        }
        File::open("/dev/tty")
            .map(Self::Terminal)
            .map_err(TerminalError::read)
    }

    /// Waits for a key, no longer than `wait`.
    pub(super) fn wait(&self, wait: Duration) -> Waited {
        let terminal = match self {
            Self::Stdin(stdin) => stdin.as_fd(),
            Self::Terminal(file) => file.as_fd(),
        };
        let mut fds = [PollFd::new(terminal, PollFlags::POLLIN)];
        let timeout = PollTimeout::try_from(wait).unwrap_or(PollTimeout::ZERO);
        let gone = PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL;
        match poll(&mut fds, timeout) {
            Ok(_)
                if fds[0]
                    .revents()
                    .is_some_and(|events| events.intersects(gone)) =>
            {
                Waited::Gone
            }
            // A signal that interrupts the wait is looked after by the caller.
            Ok(_) | Err(_) => Waited::Perhaps,
        }
    }
}
