//! Stops as values: a thread that stands still is resumed exactly once, with its signal.
//!
//! A [`Stop`] is what its thread needs in order to go on, and it goes on when the value is
//! dropped, by whichever way that comes. Only what makes sense in a kind of stop can be asked of
//! it, and a signal cannot be held back: nothing can.

use std::marker::PhantomData;

use nix::Result;

use super::info::SyscallInfo;
use super::report::{Cause, Change, Event};
use super::sys::{self, Report, Tid, Wait, Whose};
use crate::capture::event::Fate;

/// The right to trace, which belongs to the thread that makes it: the kernel accepts requests
/// from the tracing thread only.
#[derive(Debug)]
pub(super) struct Ptrace {
    here: PhantomData<*const ()>,
}

/// What a tracee reports.
#[derive(Debug)]
pub(super) enum Reported {
    /// It has ended, and was taken off the kernel's table.
    Ended(Tid, Fate),
    /// At the entry or exit of a system call.
    Syscall(Stop<AtSyscall>),
    /// Before the delivery of a signal.
    Signal(Stop<AtSignal>),
    /// Its process was stopped.
    Group(Stop<InGroup>),
    /// It did something of interest.
    Event(Stop<AtEvent>),
    /// None of these; it can go on.
    Trap(Stop<AtTrap>),
}

impl Ptrace {
    /// For this thread.
    pub(super) fn new() -> Self {
        Self { here: PhantomData }
    }

    /// Begins to trace a thread. It runs on, and its system calls are reported only once it has
    /// stopped for another reason.
    pub(super) fn seize(&self, tid: Tid) -> Result<()> {
        sys::seize(tid)
    }

    /// Has a thread stop.
    pub(super) fn interrupt(&self, tid: Tid) -> Result<()> {
        sys::interrupt(tid)
    }

    /// The next report.
    ///
    /// # Errors
    ///
    /// `ECHILD` where there is no such tracee, `EINTR` where a signal came first.
    pub(super) fn next(&self, whose: Whose, which: Wait) -> Result<Option<Reported>> {
        Ok(sys::look(whose, which)?.and_then(|report| self.reported(report)))
    }

    fn reported(&self, report: Report) -> Option<Reported> {
        let tid = report.tid;
        Some(match Change::decode(report)? {
            Change::Ended(fate) => {
                // It cannot fail: the report is still there.
                sys::reap(tid).ok();
                Reported::Ended(tid, fate)
            }
            Change::Stopped(cause) => match cause {
                Cause::Event(event @ Event::Exec) => {
                    // It cannot fail: the report is still there.
                    sys::take(tid).ok();
                    Reported::Event(self.stop(tid, AtEvent(event)))
                }
                Cause::Syscall => Reported::Syscall(self.stop(tid, AtSyscall)),
                Cause::Signal(signal) => Reported::Signal(self.stop(tid, AtSignal(signal))),
                Cause::Group(_) => Reported::Group(self.stop(tid, InGroup)),
                Cause::Event(event) => Reported::Event(self.stop(tid, AtEvent(event))),
                Cause::Trap => Reported::Trap(self.stop(tid, AtTrap)),
            },
        })
    }

    fn stop<K: Kind>(&self, tid: Tid, kind: K) -> Stop<K> {
        Stop {
            tid,
            kind,
            here: self.here,
        }
    }
}

/// A thread that stands still until this is dropped.
#[derive(Debug)]
#[must_use = "the thread goes on when this is dropped"]
pub(super) struct Stop<K: Kind> {
    tid: Tid,
    kind: K,
    here: PhantomData<*const ()>,
}

impl<K: Kind> Stop<K> {
    /// The thread.
    pub(super) fn tid(&self) -> Tid {
        self.tid
    }
}

impl<K: Kind> Drop for Stop<K> {
    fn drop(&mut self) {
        // It fails where the thread was killed in its stop; that is its own report.
        self.kind.resume(self.tid).ok();
    }
}

/// A kind of stop, by how it ends.
pub(super) trait Kind {
    fn resume(&self, tid: Tid) -> Result<()> {
        sys::resume(tid, 0)
    }
}

/// See [`Reported::Syscall`].
#[derive(Debug)]
pub(super) struct AtSyscall;

impl Kind for AtSyscall {}

impl Stop<AtSyscall> {
    /// The call.
    pub(super) fn info(&self) -> Result<SyscallInfo> {
        sys::syscall_info(self.tid)
    }
}

/// See [`Reported::Signal`].
#[derive(Debug)]
pub(super) struct AtSignal(i32);

impl Kind for AtSignal {
    fn resume(&self, tid: Tid) -> Result<()> {
        sys::resume(tid, self.0)
    }
}

impl Stop<AtSignal> {
    /// Its number.
    pub(super) fn signal(&self) -> i32 {
        self.kind.0
    }

    /// Where it comes from.
    pub(super) fn info(&self) -> Result<libc::siginfo_t> {
        sys::signal_info(self.tid)
    }
}

/// See [`Reported::Group`].
#[derive(Debug)]
pub(super) struct InGroup;

impl Kind for InGroup {
    fn resume(&self, tid: Tid) -> Result<()> {
        sys::listen(tid)
    }
}

/// See [`Reported::Event`].
#[derive(Debug)]
pub(super) struct AtEvent(Event);

impl Kind for AtEvent {}

impl Stop<AtEvent> {
    /// What it did.
    pub(super) fn event(&self) -> Event {
        self.kind.0
    }

    /// The thread that the event is about.
    pub(super) fn about(&self) -> Option<Tid> {
        let message = sys::event_message(self.tid).ok()?;
        i32::try_from(message).ok().filter(|&tid| tid > 0).map(Tid)
    }
}

/// See [`Reported::Trap`].
#[derive(Debug)]
pub(super) struct AtTrap;

impl Kind for AtTrap {}
