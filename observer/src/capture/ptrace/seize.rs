//! The beginning of a trace: every thread of a process, while it may start others.

use std::collections::HashSet;

use nix::Result;
use nix::errno::Errno;

use super::stop::Ptrace;
use super::sys::Tid;
use super::tasks::threads_of;
use crate::capture::event::Pid;

/// Seizes all threads of a process; returns them. They run on.
///
/// A thread that is started meanwhile is traced from its start where the one that starts it is,
/// and is found in the next round where not.
///
/// # Errors
///
/// The kernel's, where not one of them can be seized.
pub(super) fn seize(ptrace: &Ptrace, pid: Pid) -> Result<Vec<Tid>> {
    let mut seen = HashSet::new();
    let mut seized = Vec::new();
    let mut refused = Errno::ESRCH;
    loop {
        let new: Vec<_> = threads_of(pid)
            .into_iter()
            .filter(|tid| !seen.contains(tid))
            .collect();
        if new.is_empty() {
            break;
        }
        for tid in new {
            seen.insert(tid);
            match ptrace.seize(tid) {
                Ok(()) => seized.push(tid),
                // It has ended, or is traced already because it has just been started.
                Err(error) => refused = error,
            }
        }
    }
    if seized.is_empty() {
        Err(refused)
    } else {
        Ok(seized)
    }
}
