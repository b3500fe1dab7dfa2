//! Tells a signal to the process group from one to the front alone.
//!
//! The kernel gives both the same `siginfo`. The witness is one more process in the group, with
//! those signals blocked for good: one that is pending there went to the group, and so reached the
//! server by itself. Linux signals the youngest process of a group first, so that the witness has
//! its copy before the front has its own; elsewhere the front asks a second time.

use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, dup2_stderr, dup2_stdin, dup2_stdout, fork};

use super::server::close;
use super::signals::PASSED_ON;

/// A witness that does not answer in this time is stopped or gone.
const PATIENCE: Duration = Duration::from_millis(500);

/// The front's line to the witness.
#[derive(Debug)]
pub(super) struct Witness {
    pid: Pid,
    line: UnixStream,
    asked: u8,
}

impl Witness {
    /// Starts the witness, in which the descriptors `inherited` are closed. To be called with the
    /// signals blocked, while this process has one thread.
    pub(super) fn start(inherited: &[RawFd]) -> io::Result<Self> {
        let (line, other) = UnixStream::pair()?;
        // SAFETY: this process has one thread (asked of the caller), so the child may go on.
        match unsafe { fork() }? {
            ForkResult::Parent { child: pid } => {
                line.set_read_timeout(Some(PATIENCE))?;
                Ok(Self {
                    pid,
                    line,
                    asked: 0,
                })
            }
            ForkResult::Child => {
                drop(line);
                close(inherited);
                testify(other)
            }
        }
    }

    /// Which signals went to the whole group since this was last asked.
    pub(super) fn ask(&mut self) -> SigSet {
        self.asked = self.asked.wrapping_add(1);
        if self.line.write_all(&[self.asked]).is_err() {
            return SigSet::empty();
        }
        let mut answer = [0; 1 + PASSED_ON.len()];
        while self.line.read_exact(&mut answer).is_ok() {
            let [asked, seen @ ..] = answer;
            // Answers to questions that were given up may come first.
            if asked == self.asked {
                let seen = PASSED_ON.into_iter().zip(seen);
                return seen
                    .filter(|(_, seen)| *seen == 1)
                    .map(|(s, _)| s)
                    .collect();
            }
        }
        SigSet::empty()
    }
}

impl Witness {
    /// Ends the witness, and leaves nothing of it. For the front, its parent.
    pub(super) fn end(&self) {
        let _ = kill(self.pid, Signal::SIGKILL);
        let _ = waitpid(self.pid, None);
    }
}

/// The witness' whole life: it answers, and ends with the front.
fn testify(mut line: UnixStream) -> ! {
    let _ = let_go_of_stdio();
    let mut question = [0];
    while line.read_exact(&mut question).is_ok() {
        let mut answer = [0; 1 + PASSED_ON.len()];
        answer[0] = question[0];
        for (seen, signal) in answer[1..].iter_mut().zip(PASSED_ON) {
            *seen = u8::from(take_pending(signal));
        }
        if line.write_all(&answer).is_err() {
            break;
        }
    }
    // SAFETY: ends the process; nothing of it needs to be tidied up.
    unsafe { libc::_exit(0) }
}

/// The host's pipes must not stay open because of this process.
pub(super) fn let_go_of_stdio() -> nix::Result<()> {
    let nowhere = nowhere()?;
    dup2_stdin(&nowhere)?;
    dup2_stdout(&nowhere)?;
    dup2_stderr(&nowhere)
}

/// What a descriptor points to that has been let go of.
pub(super) fn nowhere() -> nix::Result<OwnedFd> {
    use nix::fcntl::{OFlag, open};
    open(
        "/dev/null",
        OFlag::O_RDWR | OFlag::O_CLOEXEC,
        nix::sys::stat::Mode::empty(),
    )
}

/// Whether the signal, which is blocked, is pending; it is not afterwards.
fn take_pending(signal: Signal) -> bool {
    let mut pending = MaybeUninit::uninit();
    // SAFETY: the pointer is valid for the call, which writes a set there.
    if unsafe { libc::sigpending(pending.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: the call above succeeded, so the set is initialised.
    let pending = unsafe { pending.assume_init() };
    // SAFETY: it is the kernel's own, so it has the system's signals alone.
    let pending = unsafe { SigSet::from_sigset_t_unchecked(pending) };
    let mut only = SigSet::empty();
    only.add(signal);
    pending.contains(signal) && only.wait().is_ok()
}
