//! What a report of `waitid` means. Pure: from the two numbers that the kernel gives.
//!
//! Sources: `ptrace(2)`, "Stopped states"; `wait_task_stopped` in `kernel/exit.c` (Linux 6.12).

use super::sys::Report;
use crate::capture::event::Fate;

/// What has become of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It has ended.
    Ended(Fate),
    /// It stands still.
    Stopped(Cause),
}

/// Why a thread stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// It enters or leaves a system call.
    Syscall,
    /// It is about to get a signal: any from 1 to 64.
    Signal(i32),
    /// Its whole process was stopped by this signal.
    Group(i32),
    /// It did something that it was asked to report.
    Event(Event),
    /// We interrupted it, it has just been cloned, or a group-stop is over.
    Trap,
}

/// See [`Cause::Event`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// It made a process or a thread, which the event's message names.
    Fork,
    /// It executed a program; the message is the tid under which it did.
    Exec,
    /// An event that is of no use to us.
    Other,
}

impl Change {
    /// `None` for a report that no tracee makes.
    pub(super) fn decode(report: Report) -> Option<Self> {
        let status = report.status;
        match report.code {
            libc::CLD_EXITED => Some(Self::Ended(Fate::Code(status))),
            libc::CLD_KILLED | libc::CLD_DUMPED => Some(Self::Ended(Fate::Signal(status))),
            libc::CLD_TRAPPED | libc::CLD_STOPPED => Some(Self::Stopped(cause(status))),
            _ => None,
        }
    }
}

fn cause(status: i32) -> Cause {
    /// What `PTRACE_O_TRACESYSGOOD` adds.
    const SYSCALL: i32 = libc::SIGTRAP | 0x80;
    /// `PTRACE_EVENT_STOP`, which libc lacks.
    const STOP: i32 = 128;
    let (event, signal) = (status >> 8, status & 0xff);
    match event {
        0 if signal == SYSCALL => Cause::Syscall,
        0 => Cause::Signal(signal),
        STOP if signal == libc::SIGTRAP => Cause::Trap,
        STOP => Cause::Group(signal),
        libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
            Cause::Event(Event::Fork)
        }
        libc::PTRACE_EVENT_EXEC => Cause::Event(Event::Exec),
        _ => Cause::Event(Event::Other),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sys::Tid;
    use super::*;

    fn decode(code: i32, status: i32) -> Option<Change> {
        Change::decode(Report {
            tid: Tid(1),
            code,
            status,
        })
    }

    fn stopped(status: i32) -> Cause {
        match decode(libc::CLD_TRAPPED, status) {
            Some(Change::Stopped(cause)) => cause,
            other => panic!("{status:#x} is {other:?}"),
        }
    }

    #[test]
    fn ends_have_a_status_or_a_signal() {
        assert_eq!(
            decode(libc::CLD_EXITED, 41),
            Some(Change::Ended(Fate::Code(41)))
        );
        for code in [libc::CLD_KILLED, libc::CLD_DUMPED] {
            assert_eq!(decode(code, 9), Some(Change::Ended(Fate::Signal(9))));
        }
        assert_eq!(decode(libc::CLD_CONTINUED, libc::SIGCONT), None);
    }

    #[test]
    fn every_signal_is_itself() {
        for signal in 1..=64 {
            assert_eq!(stopped(signal), Cause::Signal(signal));
        }
    }

    #[test]
    fn a_system_call_is_no_sigtrap() {
        assert_eq!(stopped(0x85), Cause::Syscall);
        assert_eq!(stopped(5), Cause::Signal(libc::SIGTRAP));
    }

    #[test]
    fn stops_of_the_group_keep_their_signal() {
        for signal in [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU] {
            assert_eq!(stopped(128 << 8 | signal), Cause::Group(signal));
        }
        assert_eq!(stopped(128 << 8 | libc::SIGTRAP), Cause::Trap);
    }

    #[test]
    fn events_are_those_that_were_asked_for() {
        for event in [1, 2, 3] {
            assert_eq!(
                stopped(event << 8 | libc::SIGTRAP),
                Cause::Event(Event::Fork)
            );
        }
        assert_eq!(stopped(4 << 8 | libc::SIGTRAP), Cause::Event(Event::Exec));
        assert_eq!(stopped(6 << 8 | libc::SIGTRAP), Cause::Event(Event::Other));
    }
}
