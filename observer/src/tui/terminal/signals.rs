//! Signals that would end us with the terminal in disorder: noted, and obeyed when it is in order.

use std::sync::atomic::{AtomicI32, Ordering};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, raise, sigaction};

/// The signal that wants us to end; 0 for none.
static HEARD: AtomicI32 = AtomicI32::new(0);

const ENDING: [Signal; 3] = [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT];

extern "C" fn note(signal: i32) {
    HEARD.store(signal, Ordering::SeqCst);
}

/// Takes note of signals that would end us with the terminal in disorder. Where an observation
/// holds them back for itself, they never come here.
pub(super) fn hear() {
    let action = SigAction::new(SigHandler::Handler(note), SaFlags::empty(), SigSet::empty());
    for signal in ENDING {
        // SAFETY: the handler only stores to an atomic.
        let _ = unsafe { sigaction(signal, &action) };
    }
}

pub(super) fn heard() -> Option<Signal> {
    Signal::try_from(HEARD.load(Ordering::SeqCst)).ok()
}

/// Ends by the signal, as if it had not been heard.
pub(super) fn end_by(signal: Signal) {
    let action = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: the default action runs no code of ours.
    let _ = unsafe { sigaction(signal, &action) };
    let mut set = SigSet::empty();
    set.add(signal);
    let _ = set.thread_unblock();
    let _ = raise(signal);
}
