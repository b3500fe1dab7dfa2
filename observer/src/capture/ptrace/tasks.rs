//! The processes and threads that are traced, and what each thread is in the middle of.

use std::collections::{HashMap, HashSet};
use std::fs;

use super::calls::Pending;
use super::sys::Tid;
use crate::capture::event::Pid;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    threads: HashMap<Tid, Thread>,
    processes: HashSet<Pid>,
}

/// A thread.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) pid: Pid,
    /// The call that it has entered and not left, if that matters.
    pub(super) pending: Option<Pending>,
}

impl Tasks {
    pub(super) fn thread(&mut self, tid: Tid) -> Option<&mut Thread> {
        self.threads.get_mut(&tid)
    }

    /// Adds a thread. Whether its process is new as well.
    pub(super) fn add(&mut self, tid: Tid, pid: Pid) -> bool {
        self.threads
            .entry(tid)
            .or_insert(Thread { pid, pending: None });
        self.processes.insert(pid)
    }

    /// Removes a thread that has ended.
    pub(super) fn remove(&mut self, tid: Tid) -> Option<Thread> {
        self.threads.remove(&tid)
    }

    /// Removes a process and the threads that are left of it.
    pub(super) fn remove_process(&mut self, pid: Pid) -> Vec<Thread> {
        self.processes.remove(&pid);
        self.threads
            .extract_if(|_, thread| thread.pid == pid)
            .map(|(_, thread)| thread)
            .collect()
    }

    /// All threads.
    pub(super) fn tids(&self) -> Vec<Tid> {
        self.threads.keys().copied().collect()
    }

    /// All processes.
    pub(super) fn pids(&self) -> impl Iterator<Item = Pid> {
        self.processes.iter().copied()
    }

    pub(super) fn is_process(&self, pid: Pid) -> bool {
        self.processes.contains(&pid)
    }

    pub(super) fn knows(&self, tid: Tid) -> bool {
        self.threads.contains_key(&tid)
    }

    pub(super) fn len(&self) -> usize {
        self.threads.len()
    }
}

/// A thread, as `/proc` shows it: its process, and that one's parent.
pub(super) fn look_up(tid: Tid) -> Option<(Pid, Option<Pid>)> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let pid = number(&status, "Tgid:")?;
    let parent = number(&status, "PPid:").filter(|&parent| parent != 0);
    Some((Pid(pid), parent.map(Pid)))
}

/// The number in a line of `/proc/PID/status`.
pub(super) fn number(status: &str, key: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// The threads of a process.
pub(super) fn threads_of(pid: Pid) -> Vec<Tid> {
    let entries = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok().map(Tid))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_belongs_to_its_process() {
        let own = Pid(std::process::id());
        let tid = Tid(nix::unistd::gettid().as_raw());
        let (pid, parent) = look_up(tid).unwrap();
        assert_eq!(pid, own);
        assert_eq!(parent, Some(Pid(std::os::unix::process::parent_id())));
        assert!(threads_of(own).contains(&tid));
        assert_eq!(look_up(Tid(-1)), None);
    }

    #[test]
    fn a_process_goes_with_its_threads() {
        let mut tasks = Tasks::default();
        assert!(tasks.add(Tid(1), Pid(1)));
        assert!(!tasks.add(Tid(2), Pid(1)));
        assert!(tasks.add(Tid(9), Pid(9)));
        assert_eq!(tasks.remove_process(Pid(1)).len(), 2);
        assert_eq!(tasks.tids(), [Tid(9)]);
        assert!(tasks.add(Tid(1), Pid(1)), "the number is used again");
    }
}
