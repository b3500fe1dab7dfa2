//! The processes of the scope: who started whom, and who lives.
//!
//! A pid may be used again, so everything else in the session names a process by its [`ProcId`].

use std::collections::{HashMap, HashSet};

use super::event::{Event, Party};
use crate::capture::{Pid, ProcessChange};

/// A process, however often its pid is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ProcId(u64);

/// How far up a lineage is looked at and kept.
const GENERATIONS: usize = 32;

/// So many dead processes may wait to be forgotten.
const DEAD: usize = 1024;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Processes {
    current: HashMap<Pid, ProcId>,
    all: HashMap<ProcId, Process>,
    created: u64,
    dead: usize,
}

#[derive(Debug)]
struct Process {
    pid: Pid,
    ppid: Option<Pid>,
    parent: Option<ProcId>,
    exe: Option<String>,
    argv: Vec<String>,
    start: Option<u64>,
    alive: bool,
    /// Whether the layers above have heard of it.
    shown: bool,
}

impl Processes {
    /// The process that has this pid now; one that nobody announced becomes known by this.
    pub(super) fn at(&mut self, pid: Pid) -> ProcId {
        match self.current.get(&pid) {
            Some(&id) => id,
            None => self.create(pid),
        }
    }

    /// Takes in a change. The process, for an end the one that ended.
    pub(super) fn change(&mut self, pid: Pid, change: ProcessChange) -> ProcId {
        match change {
            ProcessChange::Seen {
                ppid,
                exe,
                argv,
                start,
            } => self.seen(pid, ppid, exe, argv, start),
            ProcessChange::Exec { exe, argv } => {
                let id = self.at(pid);
                if let Some(process) = self.all.get_mut(&id) {
                    (process.exe, process.argv) = (exe, argv);
                }
                id
            }
            ProcessChange::Exit { .. } => {
                let id = self.at(pid);
                self.bury(id);
                id
            }
        }
    }

    fn seen(
        &mut self,
        pid: Pid,
        ppid: Option<Pid>,
        exe: Option<String>,
        argv: Vec<String>,
        start: Option<u64>,
    ) -> ProcId {
        if let Some(&old) = self.current.get(&pid) {
            let known = self.all.get(&old).and_then(|process| process.start);
            if known.is_some() && start.is_some() && known != start {
                self.bury(old);
            }
        }
        let parent = ppid
            .filter(|&ppid| ppid != pid && ppid != Pid(0))
            .map(|ppid| self.at(ppid));
        let id = self.at(pid);
        if let Some(process) = self.all.get_mut(&id) {
            process.ppid = process.ppid.or(ppid);
            process.parent = process.parent.or(parent);
            process.start = process.start.or(start);
            if exe.is_some() {
                (process.exe, process.argv) = (exe, argv);
            }
        }
        id
    }

    fn create(&mut self, pid: Pid) -> ProcId {
        let id = ProcId(self.created);
        self.created += 1;
        self.current.insert(pid, id);
        let process = Process {
            pid,
            ppid: None,
            parent: None,
            exe: None,
            argv: Vec::new(),
            start: None,
            alive: true,
            shown: false,
        };
        self.all.insert(id, process);
        id
    }

    fn bury(&mut self, id: ProcId) {
        let Some(process) = self.all.get_mut(&id) else {
            return;
        };
        self.dead += usize::from(std::mem::replace(&mut process.alive, false));
        self.current.remove(&process.pid);
    }

    /// Whether it has not ended.
    pub(super) fn is_alive(&self, id: ProcId) -> bool {
        self.all.get(&id).is_some_and(|process| process.alive)
    }

    /// Its parent, that one's parent, and so on. Bounded, so that no cycle can be endless.
    pub(super) fn ancestors(&self, id: ProcId) -> impl Iterator<Item = ProcId> {
        let parent = |id: ProcId| self.all.get(&id).and_then(|process| process.parent);
        std::iter::successors(parent(id), move |&id| parent(id)).take(GENERATIONS)
    }

    /// Whether `elder` started `id`, directly or through others.
    pub(super) fn descends(&self, id: ProcId, elder: ProcId) -> bool {
        self.ancestors(id).any(|ancestor| ancestor == elder)
    }

    /// Whether two processes belong together below `top`: one started the other, or a third that
    /// `top` started (a shell with a pipeline) started both. `top` itself relates nobody.
    pub(super) fn are_kin_below(&self, one: ProcId, other: ProcId, top: &[ProcId]) -> bool {
        let line = |id| {
            std::iter::once(id)
                .chain(self.ancestors(id))
                .take_while(|ancestor| !top.contains(ancestor))
        };
        let reaches_top = self.ancestors(one).any(|ancestor| top.contains(&ancestor));
        reaches_top && line(one).any(|elder| line(other).any(|id| id == elder))
    }

    /// Whether a live process may still hold what `id` held at the server's side of a stream: a
    /// child that inherited it, or a wrapper below `top` that handed it down.
    pub(super) fn has_live_kin_below(&self, id: ProcId, top: &[ProcId]) -> bool {
        let below = |process: &ProcId| self.ancestors(*process).any(|elder| top.contains(&elder));
        let wrapper = self.ancestors(id).take_while(|elder| !top.contains(elder));
        wrapper
            .into_iter()
            .any(|elder| self.is_alive(elder) && below(&elder))
            || self
                .all
                .iter()
                .any(|(&other, process)| process.alive && self.descends(other, id))
    }

    /// How a process is named as a side of a connection.
    pub(super) fn party(&self, id: ProcId) -> Option<Party> {
        let process = self.all.get(&id)?;
        Some(Party {
            pid: process.pid,
            exe: process.exe.clone(),
        })
    }

    /// The process that has this pid now, if the layers above have heard of it.
    pub(super) fn is_shown(&self, pid: Pid) -> bool {
        let process = self.current.get(&pid).and_then(|id| self.all.get(id));
        process.is_some_and(|process| process.shown)
    }

    /// Marks it as heard of; how to announce it, where it was not yet.
    pub(super) fn show(&mut self, id: ProcId) -> Option<Event> {
        let process = self.all.get_mut(&id)?;
        if std::mem::replace(&mut process.shown, true) {
            return None;
        }
        Some(Event::ProcessSeen {
            pid: process.pid,
            ppid: process.ppid,
            exe: process.exe.clone(),
            argv: process.argv.clone(),
            start: process.start,
        })
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are dead processes enough to look which can be forgotten.
    pub(super) fn is_crowded(&self) -> bool {
        self.dead > DEAD
    }

    /// Forgets the dead that nobody needs: neither those in `needed` nor ancestors of the living.
    pub(super) fn forget_dead(&mut self, needed: impl Iterator<Item = ProcId>) {
        let mut keep: HashSet<ProcId> = needed.collect();
        keep.extend(
            self.all
                .iter()
                .filter(|(_, process)| process.alive)
                .map(|(&id, _)| id),
        );
        let elders: Vec<ProcId> = keep.iter().flat_map(|&id| self.ancestors(id)).collect();
        keep.extend(elders);
        self.all.retain(|id, _| keep.contains(id));
        // What must stay does not count towards the next time.
        self.dead = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(processes: &mut Processes, pid: u32, ppid: u32, start: u64) -> ProcId {
        let change = ProcessChange::Seen {
            ppid: Some(Pid(ppid)),
            exe: Some(format!("/bin/{pid}")),
            argv: Vec::new(),
            start: Some(start),
        };
        processes.change(Pid(pid), change)
    }

    fn exit(processes: &mut Processes, pid: u32) -> ProcId {
        processes.change(Pid(pid), ProcessChange::Exit { fate: None })
    }

    #[test]
    fn a_pid_used_again_is_another_process() {
        let mut processes = Processes::default();
        let first = seen(&mut processes, 10, 1, 100);
        assert_eq!(seen(&mut processes, 10, 1, 100), first, "announced twice");
        exit(&mut processes, 10);
        let second = seen(&mut processes, 10, 1, 200);
        assert_ne!(first, second);
        assert!(!processes.is_alive(first) && processes.is_alive(second));
        let third = seen(&mut processes, 10, 1, 300);
        assert_ne!(second, third, "its exit went by unseen");
        assert!(!processes.is_alive(second));
    }

    #[test]
    fn lineage_outlives_the_parent_and_its_pid() {
        let mut processes = Processes::default();
        let host = seen(&mut processes, 10, 1, 1);
        let shell = seen(&mut processes, 11, 10, 2);
        let server = seen(&mut processes, 12, 11, 3);
        exit(&mut processes, 11);
        let stranger = seen(&mut processes, 11, 1, 4);
        assert!(processes.descends(server, host) && processes.descends(server, shell));
        assert!(!processes.descends(server, stranger));
    }

    #[test]
    fn kin_meet_below_the_host_only() {
        let mut processes = Processes::default();
        let host = seen(&mut processes, 10, 1, 1);
        let shell = seen(&mut processes, 11, 10, 2);
        let server = seen(&mut processes, 12, 11, 3);
        let tee = seen(&mut processes, 13, 11, 4);
        let other = seen(&mut processes, 14, 10, 5);
        assert!(processes.are_kin_below(server, tee, &[host]));
        assert!(processes.are_kin_below(server, shell, &[host]));
        assert!(!processes.are_kin_below(server, other, &[host]));
        assert!(!processes.are_kin_below(host, shell, &[host]));
    }

    #[test]
    fn a_cycle_of_parents_is_only_odd() {
        let mut processes = Processes::default();
        let one = seen(&mut processes, 10, 11, 1);
        let other = seen(&mut processes, 11, 10, 2);
        assert!(processes.descends(one, other) && processes.descends(other, one));
    }

    #[test]
    fn the_dead_are_forgotten_unless_needed() {
        let mut processes = Processes::default();
        seen(&mut processes, 1, 0, 1);
        let elder = seen(&mut processes, 10, 1, 1);
        let living = seen(&mut processes, 11, 10, 2);
        exit(&mut processes, 10);
        for pid in 100..3000 {
            seen(&mut processes, pid, 1, pid.into());
            exit(&mut processes, pid);
        }
        let party = seen(&mut processes, 5000, 1, 1);
        exit(&mut processes, 5000);
        assert!(processes.is_crowded());
        processes.forget_dead([party].into_iter());
        assert!(!processes.is_crowded());
        assert!(processes.party(party).is_some() && processes.descends(living, elder));
        assert!(processes.all.len() <= 5, "{}", processes.all.len());
    }
}
