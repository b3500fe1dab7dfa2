//! Starts the command that `run` observes: the backend must know it before it executes its
//! program, and it must not be able to tell that it is observed.
//!
//! Owns the child between fork and exec. It inherits the terminal, the three standard streams,
//! process group, session, signal mask and ignored signals as we got them (save where the live
//! view has the terminal: [`Streams`]); its user and environment are those of [`Identity`]. Must
//! not touch `no_new_privs`, or the child's limits.

mod user;

use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};

use nix::sys::signal::{SigSet, SigmaskHow, Signal, pthread_sigmask};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};

pub use user::Identity;

use super::event::{Fate, Pid};

/// Why a command could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The user database could not be read.
    #[error("cannot look up user {user}")]
    User {
        /// The user.
        user: String,
        /// Why.
        #[source]
        source: nix::Error,
    },
    /// There is no such user.
    #[error("no user {0}")]
    NoUser(String),
    /// Called through sudo, for nobody knows whom.
    #[error("cannot tell from SUDO_UID and SUDO_GID who called sudo")]
    Caller,
    /// No process, pipe or thread could be made.
    #[error("cannot start a process")]
    Fork(#[source] io::Error),
    /// The child could not become the user.
    #[error("cannot become user {user}")]
    Switch {
        /// The user.
        user: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// There is no such program.
    #[error("{program}: no such command")]
    NotFound {
        /// As it was given.
        program: String,
    },
    /// The program cannot be executed.
    #[error("{program}: cannot be executed")]
    Exec {
        /// As it was given.
        program: String,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Where the standard streams of a command lead.
#[derive(Debug)]
pub enum Streams {
    /// Where ours do.
    Ours,
    /// There is nothing to read, what it prints goes in here, and the terminal is not its own.
    Printed(PipeWriter),
}

/// As whom a command runs.
#[derive(Clone, Debug)]
pub enum Owner {
    /// As we do.
    Same,
    /// As the user who called sudo, in the environment in which sudo was called.
    Caller(Identity),
    /// As another user.
    Other(Identity),
}

impl Owner {
    fn identity(&self) -> Option<&Identity> {
        match self {
            Self::Same => None,
            Self::Caller(identity) | Self::Other(identity) => Some(identity),
        }
    }
}

/// What the signals were when we were started, for the command to get them so.
#[derive(Clone, Debug)]
pub struct InheritedSignals {
    mask: SigSet,
    ignored: Vec<Signal>,
}

impl InheritedSignals {
    /// Reads the mask and the ignored ones of `signals`, before anything changes them.
    pub fn read(signals: &[Signal]) -> Self {
        let mask = SigSet::thread_get_mask().unwrap_or_else(|_| SigSet::empty());
        let ignored = signals
            .iter()
            .copied()
            .filter(|&signal| is_ignored(signal))
            .collect();
        Self { mask, ignored }
    }

    /// Whether a signal was ignored.
    pub fn ignores(&self, signal: Signal) -> bool {
        self.ignored.contains(&signal)
    }

    /// System calls only.
    fn restore(&self) -> nix::Result<()> {
        for &signal in &self.ignored {
            // SAFETY: ignoring a signal installs no handler.
            unsafe { nix::sys::signal::signal(signal, nix::sys::signal::SigHandler::SigIgn) }?;
        }
        pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&self.mask), None)
    }
}

fn is_ignored(signal: Signal) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: with a null new action, sigaction(2) only writes the old one, to valid memory.
    let result =
        unsafe { libc::sigaction(signal as libc::c_int, std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: it was written where the call succeeded.
    result == 0 && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}

/// A child that waits for [`release`](Self::release) before it executes its program. When it is
/// dropped instead, the child ends.
#[derive(Debug)]
pub struct Paused {
    pid: Pid,
    program: String,
    go: PipeWriter,
    spawning: JoinHandle<io::Result<()>>,
}

impl Paused {
    /// Forks a child for `program` and its `arguments`. It is what it will be in all but its
    /// program.
    ///
    /// # Errors
    ///
    /// Where no child can be made, or it cannot become the user.
    pub fn spawn(
        program: OsString,
        arguments: &[OsString],
        owner: &Owner,
        signals: InheritedSignals,
        streams: Streams,
    ) -> Result<Self, SpawnError> {
        let (mut ready, mut report) = io::pipe().map_err(SpawnError::Fork)?;
        let (mut wait, go) = io::pipe().map_err(SpawnError::Fork)?;
        let our_end = go.as_raw_fd();
        let name = program.to_string_lossy().into_owned();
        let mut command = Command::new(program);
        command.args(arguments);
        match owner {
            Owner::Same => {}
            Owner::Caller(identity) => drop(command.env_clear().envs(user::of_caller(identity))),
            Owner::Other(identity) => drop(command.env_clear().envs(user::of_user(identity))),
        }
        let detached = matches!(streams, Streams::Printed(_));
        if let Streams::Printed(writer) = streams {
            let other = writer.try_clone().map_err(SpawnError::Fork)?;
            command.stdin(Stdio::null()).stdout(other).stderr(writer);
        }
        let identity = owner.identity().cloned();
        let prepare = move || {
            if detached {
                nix::unistd::setsid()?;
            }
            if let Some(identity) = &identity {
                identity.assume()?;
            }
            signals.restore()?;
            report.write_all(&std::process::id().to_ne_bytes())?;
            // With its own copy open, the child would never see that ours is closed.
            // SAFETY: `go` is open in the parent until `spawn` has returned, and so here.
            drop(unsafe { OwnedFd::from_raw_fd(our_end) });
            wait_for_release(&mut wait)
        };
        // SAFETY: the closure runs in a forked child of a process with threads. It makes system
        // calls and closes a descriptor; it allocates nothing and takes no lock.
        unsafe { command.pre_exec(prepare) };
        // The call returns when the child has executed its program, so another thread makes it.
        let spawning = thread::Builder::new()
            .name("spawn".into())
            .spawn(move || command.spawn().map(drop))
            .map_err(SpawnError::Fork)?;
        match read_pid(&mut ready) {
            Some(pid) => Ok(Self {
                pid,
                program: name,
                go,
                spawning,
            }),
            None => Err(failed_early(spawning, owner)),
        }
    }

    /// The child.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Lets the child execute its program.
    ///
    /// # Errors
    ///
    /// Where the program is not there, or cannot be executed.
    pub fn release(mut self) -> Result<Child, SpawnError> {
        let program = self.program;
        // A child that was killed meanwhile does not read; `wait` then tells.
        self.go.write_all(b"g").ok();
        match join(self.spawning) {
            Ok(()) => Ok(Child { pid: self.pid }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(SpawnError::NotFound { program })
            }
            Err(source) => Err(SpawnError::Exec { program, source }),
        }
    }
}

fn wait_for_release(wait: &mut PipeReader) -> io::Result<()> {
    match wait.read(&mut [0]) {
        Ok(1) => Ok(()),
        Ok(_) => Err(io::Error::from_raw_os_error(libc::ECANCELED)),
        Err(error) => Err(error),
    }
}

/// The pid that the child reports; `None` where it failed before.
fn read_pid(ready: &mut PipeReader) -> Option<Pid> {
    let mut bytes = [0; 4];
    ready.read_exact(&mut bytes).ok()?;
    Some(Pid(u32::from_ne_bytes(bytes)))
}

fn failed_early(spawning: JoinHandle<io::Result<()>>, owner: &Owner) -> SpawnError {
    let source = join(spawning)
        .err()
        .unwrap_or_else(|| io::Error::other("the process ended before it had begun"));
    match owner.identity() {
        Some(identity) => SpawnError::Switch {
            user: identity.name(),
            source,
        },
        None => SpawnError::Fork(source),
    }
}

fn join(spawning: JoinHandle<io::Result<()>>) -> io::Result<()> {
    spawning
        .join()
        .unwrap_or_else(|_| Err(io::Error::other("the thread that starts it panicked")))
}

/// The command, running.
#[derive(Debug)]
pub struct Child {
    pid: Pid,
}

/// What has become of a [`Child`] since it was last asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildChange {
    /// Nothing new.
    None,
    /// A signal (Ctrl-Z) stopped it.
    Stopped,
    /// It has ended.
    Ended(Fate),
}

impl Child {
    /// The process.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Asks, without waiting.
    ///
    /// # Errors
    ///
    /// Where the kernel knows no such child: it was waited for already.
    pub fn poll(&self) -> io::Result<ChildChange> {
        let flags = WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED;
        Ok(match waitpid(self.raw(), Some(flags))? {
            WaitStatus::Exited(_, code) => ChildChange::Ended(Fate::Code(code)),
            WaitStatus::Signaled(_, signal, _) => ChildChange::Ended(Fate::Signal(signal as i32)),
            WaitStatus::Stopped(..) => ChildChange::Stopped,
            _ => ChildChange::None,
        })
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    ///
    /// As [`poll`](Self::poll).
    pub fn wait(&self) -> io::Result<Fate> {
        loop {
            match waitpid(self.raw(), None) {
                Ok(WaitStatus::Exited(_, code)) => return Ok(Fate::Code(code)),
                Ok(WaitStatus::Signaled(_, signal, _)) => return Ok(Fate::Signal(signal as i32)),
                Ok(_) | Err(nix::Error::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Sends it a signal. One that has ended gets none.
    pub fn signal(&self, signal: Signal) {
        nix::sys::signal::kill(self.raw(), signal).ok();
    }

    fn raw(&self) -> nix::unistd::Pid {
        nix::unistd::Pid::from_raw(self.pid.0.cast_signed())
    }
}

#[cfg(test)]
mod tests;
