//! The signals that the front passes on, and how it learns of them.
//!
//! They are held back until all processes of the relay stand, so that none is lost and none is
//! passed on twice. A handler writes each into a pipe, which every Unix has, unlike `signalfd`.

use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd};
use std::sync::atomic::{AtomicI32, Ordering};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{
    SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, sigaction, sigprocmask,
};

use crate::capture::clock::monotonic;

/// What a host, a shell or a terminal sends to a program that it started. SIGTTIN and SIGTTOU are
/// left alone: the terminal sends them to the whole group.
pub(super) const PASSED_ON: [Signal; 10] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGALRM,
    Signal::SIGWINCH,
    Signal::SIGTSTP,
    Signal::SIGCONT,
];

/// A signal that the front got, and who sent it, where a process did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    pub(super) signal: Signal,
    pub(super) sender: Option<u32>,
    /// When, on the machine's clock.
    pub(super) at: u64,
}

/// All of [`PASSED_ON`].
pub(super) fn passed_on() -> SigSet {
    PASSED_ON.into_iter().collect()
}

/// Blocks them, and the news of children. Gives what was blocked before: the server's mask.
pub(super) fn hold_back() -> nix::Result<SigSet> {
    let mut held = passed_on();
    held.add(Signal::SIGCHLD);
    let mut before = SigSet::empty();
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&held), Some(&mut before))?;
    Ok(before)
}

/// The signals as they arrive.
#[derive(Debug)]
pub(super) struct Arrivals(PipeReader);

/// Where the handler writes to. It is never closed: the front needs it to its end.
static HANDLER_END: AtomicI32 = AtomicI32::new(-1);

/// One signal in the pipe: its number, the sender's pid, and the time.
const ENTRY: usize = 16;

impl Arrivals {
    /// Begins to take the signals that [`hold_back`] held.
    pub(super) fn begin() -> io::Result<Self> {
        let (reader, writer): (PipeReader, PipeWriter) = io::pipe()?;
        // A handler must not wait; and the front takes what is there, no more.
        for end in [reader.as_fd(), writer.as_fd()] {
            fcntl(end, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        }
        HANDLER_END.store(writer.into_raw_fd(), Ordering::Release);
        let action = SigAction::new(
            SigHandler::SigAction(on_signal),
            SaFlags::SA_RESTART,
            SigSet::all(),
        );
        let mut taken = passed_on();
        taken.add(Signal::SIGCHLD);
        for signal in &taken {
            // SAFETY: the handler calls `clock_gettime` and `write`, and keeps `errno`.
            unsafe { sigaction(signal, &action) }?;
        }
        taken.thread_unblock()?;
        Ok(Self(reader))
    }

    /// All that have arrived since the last time.
    pub(super) fn take(&mut self) -> Vec<Arrival> {
        let mut arrivals = Vec::new();
        let mut entries = [0; ENTRY * 64];
        while let Ok(size @ 1..) = self.0.read(&mut entries) {
            // Entries are written whole, and the pipe is read in multiples of their size.
            arrivals.extend(entries[..size].chunks_exact(ENTRY).filter_map(decode));
        }
        arrivals
    }
}

impl AsFd for Arrivals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn decode(entry: &[u8]) -> Option<Arrival> {
    let (number, rest) = entry.split_first_chunk()?;
    let (sender, time) = rest.split_first_chunk()?;
    let sender = u32::from_ne_bytes(*sender);
    Some(Arrival {
        signal: Signal::try_from(i32::from_ne_bytes(*number)).ok()?,
        sender: (sender != 0).then_some(sender),
        at: u64::from_ne_bytes(time.try_into().ok()?),
    })
}

extern "C" fn on_signal(number: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    let errno = nix::errno::Errno::last();
    // SAFETY: the kernel passes a valid siginfo, which nobody else has.
    let info = unsafe { &*info };
    // SAFETY: with signals of this kind it holds a pid, zero where no process sent the signal.
    let sender = unsafe { info.si_pid() };
    let mut entry = [0; ENTRY];
    entry[..4].copy_from_slice(&number.to_ne_bytes());
    entry[4..8].copy_from_slice(&sender.to_ne_bytes());
    entry[8..].copy_from_slice(&monotonic().to_ne_bytes());
    // SAFETY: `entry` is valid for its length; `write` is allowed in a handler. A full pipe means
    // that 4,000 signals wait to be taken: one more tells nothing new.
    unsafe {
        libc::write(
            HANDLER_END.load(Ordering::Acquire).as_raw_fd(),
            entry.as_ptr().cast(),
            ENTRY,
        )
    };
    errno.set();
}
