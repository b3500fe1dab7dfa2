//! Wakes the tracing thread while it waits for its tracees.
//!
//! `waitid(2)` waits for nothing else, and only a signal ends it early. One that comes just
//! before it begins ends nothing, so the bell rings until it is heard. The signal is SIGURG, which
//! means nothing to anybody who did not ask for it.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use super::Command;

const SIGNAL: Signal = Signal::SIGURG;

/// How long a bell waits to be heard before it rings again.
const PATIENCE: Duration = Duration::from_millis(1);

/// What the ringing thread is told.
#[derive(Debug)]
pub(super) enum Ring {
    /// Hand this on at once.
    Command(Command),
    /// Ring at this moment.
    At(Instant),
    /// Nobody is there to be woken any more.
    Off,
}

/// The end of the bell that the tracing thread holds.
#[derive(Debug)]
pub(super) struct Bell {
    commands: Receiver<Command>,
    /// How many of them were taken.
    taken: Arc<AtomicU64>,
    ringer: Sender<Ring>,
}

impl Bell {
    /// Hangs a bell that wakes the calling thread. Returns the way to ring it.
    ///
    /// # Errors
    ///
    /// Where no thread can be started, or no signal handler be installed.
    pub(super) fn hang() -> io::Result<(Self, Sender<Ring>)> {
        extern "C" fn nothing(_: libc::c_int) {}
        // Without SA_RESTART: the call that it interrupts must return.
        let action = SigAction::new(
            SigHandler::Handler(nothing),
            SaFlags::empty(),
            SigSet::empty(),
        );
        // SAFETY: the handler does nothing, so it can break nothing.
        unsafe { sigaction(SIGNAL, &action) }?;
        SigSet::from(SIGNAL).thread_unblock()?;
        let (ringer, rings) = channel();
        let (to_thread, commands) = channel();
        let taken = Arc::new(AtomicU64::new(0));
        let rope = Rope {
            thread: nix::unistd::gettid().as_raw(),
            to_thread,
            sent: 0,
            taken: Arc::downgrade(&taken),
        };
        thread::Builder::new()
            .name("ptrace-bell".into())
            .spawn(move || rope.ring(&rings))?;
        Ok((
            Self {
                commands,
                taken,
                ringer: ringer.clone(),
            },
            ringer,
        ))
    }

    /// A command, if there is one.
    pub(super) fn command(&self) -> Option<Command> {
        let command = self.commands.try_recv().ok()?;
        self.taken.fetch_add(1, Ordering::Release);
        Some(command)
    }

    /// A command, as soon as there is one; `None` where nobody can give one any more.
    pub(super) fn await_command(&self) -> Option<Command> {
        let command = self.commands.recv().ok()?;
        self.taken.fetch_add(1, Ordering::Release);
        Some(command)
    }

    /// Has it ring after a while, with [`Command::Wake`]; what was asked for before no longer
    /// counts.
    pub(super) fn ring_after(&self, wait: Duration) {
        self.ringer.send(Ring::At(Instant::now() + wait)).ok();
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        self.ringer.send(Ring::Off).ok();
    }
}

/// The end of the bell that rings it.
struct Rope {
    thread: i32,
    to_thread: Sender<Command>,
    sent: u64,
    /// Gone with the bell.
    taken: Weak<AtomicU64>,
}

impl Rope {
    fn ring(mut self, rings: &Receiver<Ring>) {
        let mut moment: Option<Instant> = None;
        loop {
            let ring = match moment {
                Some(at) => rings.recv_timeout(at.saturating_duration_since(Instant::now())),
                None => rings.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match ring {
                Ok(Ring::At(at)) => moment = Some(at),
                Ok(Ring::Command(command)) => self.hand_on(command),
                Err(RecvTimeoutError::Timeout) => {
                    moment = None;
                    self.hand_on(Command::Wake);
                }
                Ok(Ring::Off) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn hand_on(&mut self, command: Command) {
        // It fails when the bell is gone; then nobody has to be woken either.
        self.to_thread.send(command).ok();
        self.sent += 1;
        while self
            .taken
            .upgrade()
            .is_some_and(|taken| taken.load(Ordering::Acquire) < self.sent)
        {
            let process = std::process::id().cast_signed();
            // SAFETY: three numbers, no memory. A thread that has ended is no thread of ours.
            unsafe { libc::syscall(libc::SYS_tgkill, process, self.thread, SIGNAL as i32) };
            thread::sleep(PATIENCE);
        }
    }
}
