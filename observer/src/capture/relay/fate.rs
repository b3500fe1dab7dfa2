//! Ending as another process ended.

use std::process::exit;

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, raise, sigaction};

use crate::capture::Fate;

/// Ends this process as `fate` says: with the same status, or by the same signal.
pub(super) fn end_like(fate: Fate) -> ! {
    match fate {
        Fate::Code(code) => exit(code),
        Fate::Signal(number) => {
            if let Ok(signal) = Signal::try_from(number) {
                die_of(signal);
            }
            // A real-time signal, or one that would not kill: what a shell would say.
            exit(128 + number)
        }
    }
}

/// Lets `signal` do to this process what it does to one that has made no arrangements.
pub(super) fn die_of(signal: Signal) {
    // The server has left its own core, if it leaves one.
    let none = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the limit is valid for the call, which reads it.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) };
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: the default action replaces a handler; no handler is installed. For SIGKILL and
    // SIGSTOP it fails, and they need none.
    let _ = unsafe { sigaction(signal, &default) };
    let mut only = SigSet::empty();
    only.add(signal);
    let _ = only.thread_unblock();
    let _ = raise(signal);
}
