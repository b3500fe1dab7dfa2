//! Signals that ask a process to stop, and who sent them.
//!
//! A tracer sees signals when they are delivered: one that the process blocks is not seen until
//! it does not, and SIGKILL never. So who kills whom is known from the calls that do so.

use std::fs;

use super::calls::Caller;
use super::sys::Tid;
use super::syscall::{Args, Op, low};
use super::tasks::number;
use crate::capture::event::{InterruptKind, Pid};

/// What a signal is to us.
pub(super) fn interrupt(signal: i32) -> Option<InterruptKind> {
    match signal {
        libc::SIGHUP => Some(InterruptKind::Sighup),
        libc::SIGINT => Some(InterruptKind::Sigint),
        libc::SIGTERM => Some(InterruptKind::Sigterm),
        _ => None,
    }
}

/// Who sent a signal; `None` where the kernel made it, or the sender is in no namespace of ours.
pub(super) fn sender(info: &libc::siginfo_t) -> Option<Pid> {
    if !matches!(
        info.si_code,
        libc::SI_USER | libc::SI_TKILL | libc::SI_QUEUE
    ) {
        return None;
    }
    // SAFETY: a signal with one of these codes comes from a process, and has its pid.
    let pid = unsafe { info.si_pid() };
    u32::try_from(pid).ok().filter(|&pid| pid != 0).map(Pid)
}

/// Whether a thread's process ignores a signal: it is reported to its tracer all the same.
pub(super) fn is_ignored(tid: Tid, signal: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = line
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

/// Whom a call would kill, of the processes in `scope`.
pub(super) fn victims(
    caller: Caller,
    op: Op,
    args: &Args,
    scope: impl Iterator<Item = Pid>,
) -> Vec<Pid> {
    let [target, second, third, ..] = args.map(low);
    match op {
        Op::Kill if second == libc::SIGKILL => match u32::try_from(target) {
            Ok(pid) if pid != 0 => vec![Pid(pid)],
            _ => members(caller.pid, target, scope),
        },
        Op::Tgkill if third == libc::SIGKILL => one(target),
        Op::Tkill if second == libc::SIGKILL => super::tasks::look_up(Tid(target))
            .map(|(pid, _)| pid)
            .into_iter()
            .collect(),
        Op::PidfdSendSignal if second == libc::SIGKILL => behind_pidfd(caller.tid, target),
        _ => Vec::new(),
    }
}

fn one(pid: i32) -> Vec<Pid> {
    u32::try_from(pid)
        .ok()
        .filter(|&pid| pid != 0)
        .map(Pid)
        .into_iter()
        .collect()
}

/// Who is meant by 0 (the caller's process group), -1 (everybody else) or the negative number of
/// a process group.
fn members(caller: Pid, target: i32, scope: impl Iterator<Item = Pid>) -> Vec<Pid> {
    let group = |pid: Pid| {
        // SAFETY: a number, no memory.
        unsafe { libc::getpgid(pid.0.cast_signed()) }
    };
    let wanted = if target == 0 {
        group(caller)
    } else {
        target.saturating_neg()
    };
    scope
        .filter(|&pid| {
            if target == -1 {
                pid != caller
            } else {
                group(pid) == wanted
            }
        })
        .collect()
}

/// The process that a pidfd of a thread stands for.
fn behind_pidfd(tid: Tid, fd: i32) -> Vec<Pid> {
    let info = fs::read_to_string(format!("/proc/{tid}/fdinfo/{fd}")).unwrap_or_default();
    number(&info, "Pid:").map(Pid).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Caller {
        let pid = std::process::id();
        Caller {
            pid: Pid(pid),
            tid: Tid(pid.cast_signed()),
        }
    }

    fn killed(op: Op, args: [i32; 3]) -> Vec<Pid> {
        let [one, two, three] = args.map(|arg| u64::from(arg.cast_unsigned()));
        let scope = [own().pid, Pid(u32::MAX >> 1)].into_iter();
        victims(own(), op, &[one, two, three, 0, 0, 0], scope)
    }

    #[test]
    fn victims_are_named_by_the_call() {
        let pid = own().pid;
        let number = pid.0.cast_signed();
        // SAFETY: no memory.
        let group = unsafe { libc::getpgrp() };
        assert_eq!(killed(Op::Kill, [77, 9, 0]), [Pid(77)]);
        assert_eq!(killed(Op::Kill, [77, 15, 0]), []);
        assert_eq!(killed(Op::Kill, [-group, 9, 0]), [pid]);
        assert_eq!(killed(Op::Kill, [0, 9, 0]), [pid]);
        assert_eq!(killed(Op::Kill, [-1, 9, 0]), [Pid(u32::MAX >> 1)]);
        assert_eq!(killed(Op::Kill, [i32::MIN, 9, 0]), []);
        assert_eq!(killed(Op::Tgkill, [77, 78, 9]), [Pid(77)]);
        assert_eq!(killed(Op::Tkill, [number, 9, 0]), [pid]);
        assert_eq!(killed(Op::Write, [1, 9, 9]), []);
        assert_eq!(killed(Op::PidfdSendSignal, [-1, 9, 0]), []);
    }

    #[test]
    fn nothing_is_ignored_that_was_not_asked_for() {
        let tid = own().tid;
        // The Rust runtime ignores SIGPIPE.
        assert!(is_ignored(tid, libc::SIGPIPE));
        assert!(!is_ignored(tid, libc::SIGTERM));
    }
}
