//! The processes of the scope: who descends from whom, who is alive.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::capture::Pid;

/// How many ended processes are remembered: a daemon's parents end before it is of interest.
const REMEMBERED: usize = 8192;
/// How far up a family tree is followed.
const GENERATIONS: usize = 32;
/// Programs that start anything: what they read or receive is not meant for what they started.
const BYSTANDERS: [&str; 41] = [
    "sh",
    "bash",
    "dash",
    "zsh",
    "fish",
    "nu",
    "tmux",
    "tmux: server",
    "tmux: client",
    "screen",
    "zellij",
    "byobu",
    "dtach",
    "abduco",
    "ssh",
    "sshd",
    "mosh-client",
    "mosh-server",
    "login",
    "su",
    "sudo",
    "doas",
    "systemd",
    "init",
    "script",
    "expect",
    "ttyd",
    "env",
    "xterm",
    "kitty",
    "alacritty",
    "foot",
    "wezterm-gui",
    "ghostty",
    "konsole",
    "gnome-terminal-server",
    "code",
    "cursor",
    "make",
    "observer",
    "strace",
];
/// Programs in which Esc is pressed all the time, and means nothing but to them: a host that starts
/// one, or that runs inside of one, is not meant.
const EDITORS: [&str; 14] = [
    "vi", "vim", "nvim", "view", "emacs", "nano", "helix", "hx", "kak", "micro", "less", "more",
    "man", "fzf",
];

/// How a process stands to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// It is the host.
    Itself,
    /// The host descends from it: a front end, a launcher.
    Above,
    /// It descends from the host.
    Below,
    /// It runs the same program, and started neither the host nor was started by it: another window
    /// of a host that serves several.
    SameProgram,
}

#[derive(Debug)]
struct Process {
    /// Tells processes of one pid apart.
    birth: u64,
    parent: Option<(Pid, u64)>,
    exe: Option<Box<str>>,
    /// Its arguments, as far as they tell commands apart.
    argv: Option<u64>,
    alive: bool,
    /// It is in the scope, so that its end would be seen.
    watched: bool,
}

/// The processes that were seen, and those that ended not long ago.
#[derive(Debug, Default)]
pub(super) struct Processes {
    known: HashMap<Pid, Process>,
    births: u64,
    ended: VecDeque<(Pid, u64)>,
}

impl Processes {
    pub(super) fn seen(&mut self, pid: Pid, ppid: Option<Pid>, exe: Option<&str>, argv: &[String]) {
        self.births += 1;
        let parent =
            ppid.and_then(|ppid| self.known.get(&ppid).map(|process| (ppid, process.birth)));
        let exe = exe.map(Into::into);
        let birth = self.births;
        self.known.insert(
            pid,
            Process {
                birth,
                parent,
                exe,
                argv: hash(argv),
                alive: true,
                watched: true,
            },
        );
    }

    pub(super) fn executed(&mut self, pid: Pid, exe: Option<&str>, argv: &[String]) {
        self.known_as(pid, exe);
        if let Some(process) = self.known.get_mut(&pid) {
            process.argv = hash(argv);
            process.watched = true;
        }
    }

    /// A process runs this program, as somebody else knows.
    pub(super) fn known_as(&mut self, pid: Pid, exe: Option<&str>) {
        if !self.known.contains_key(&pid) {
            self.seen(pid, None, exe, &[]);
            self.known
                .entry(pid)
                .and_modify(|process| process.watched = false);
        } else if let Some(process) = self.known.get_mut(&pid) {
            process.exe = exe.map(Into::into).or(process.exe.take());
        }
    }

    pub(super) fn exited(&mut self, pid: Pid) {
        if !self.known.contains_key(&pid) {
            self.seen(pid, None, None, &[]);
        }
        let Some(process) = self.known.get_mut(&pid) else {
            return;
        };
        process.alive = false;
        self.ended.push_back((pid, process.birth));
        while self.ended.len() > REMEMBERED
            && let Some((pid, birth)) = self.ended.pop_front()
        {
            if self
                .known
                .get(&pid)
                .is_some_and(|process| process.birth == birth)
            {
                self.known.remove(&pid);
            }
        }
    }

    /// Whether the process was seen to end. One that was never seen may well live.
    pub(super) fn has_ended(&self, pid: Pid) -> bool {
        self.known.get(&pid).is_some_and(|process| !process.alive)
    }

    /// Whether the process is one whose end would be seen, and has not ended.
    pub(super) fn is_watched_alive(&self, pid: Pid) -> bool {
        self.known
            .get(&pid)
            .is_some_and(|process| process.alive && process.watched)
    }

    /// How `other` stands to the host, if it does.
    pub(super) fn relation(&self, host: Pid, other: Pid) -> Option<Relation> {
        if host == other {
            return Some(Relation::Itself);
        }
        // Some of them are hosts themselves.
        let one_product = self.same_program(host, other);
        if self.is_any(other, &EDITORS) && !one_product {
            return None;
        }
        if self.descends(host, other) && (one_product || !self.is_any(other, &BYSTANDERS)) {
            return Some(Relation::Above);
        }
        if self.descends(other, host) {
            return Some(Relation::Below);
        }
        let own = self.program(host)?;
        let shared = one_product && !INTERPRETERS.contains(&own);
        (shared && !self.has_own_window(host)).then_some(Relation::SameProgram)
    }

    /// Whether a shell or a terminal started the host: then nobody sees it from another window.
    fn has_own_window(&self, host: Pid) -> bool {
        const DETACHED: [&str; 2] = ["systemd", "init"];
        self.ancestors(host).next().is_some_and(|(pid, process)| {
            process.alive && self.is_any(pid, &BYSTANDERS) && !self.is_any(pid, &DETACHED)
        })
    }

    /// Whether the two run one program, by its file name.
    pub(super) fn same_program(&self, one: Pid, other: Pid) -> bool {
        self.program(one)
            .is_some_and(|program| self.program(other) == Some(program))
    }

    /// Whether the two were started by one command: program and arguments.
    pub(super) fn same_command(&self, one: Pid, other: Pid) -> bool {
        let argv = |pid| self.known.get(&pid).and_then(|process| process.argv);
        self.same_program(one, other) && argv(one).is_some() && argv(one) == argv(other)
    }

    fn descends(&self, child: Pid, ancestor: Pid) -> bool {
        self.ancestors(child).any(|(pid, _)| pid == ancestor)
    }

    /// Who started a process, and who started that one, as far as they are remembered.
    fn ancestors(&self, of: Pid) -> impl Iterator<Item = (Pid, &Process)> {
        let parent = |child: &Process| {
            let (pid, birth) = child.parent?;
            let process = self
                .known
                .get(&pid)
                .filter(|process| process.birth == birth)?;
            Some((pid, process))
        };
        let first = self.known.get(&of).and_then(parent);
        std::iter::successors(first, move |(_, process)| parent(process)).take(GENERATIONS)
    }

    fn is_any(&self, pid: Pid, programs: &[&str]) -> bool {
        self.program(pid)
            .is_some_and(|program| programs.contains(&program))
    }

    fn program(&self, pid: Pid) -> Option<&str> {
        let exe = self.known.get(&pid)?.exe.as_deref()?;
        exe.rsplit('/').next().filter(|name| !name.is_empty())
    }
}

fn hash(argv: &[String]) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    argv.hash(&mut hasher);
    (!argv.is_empty()).then(|| hasher.finish())
}

/// Programs that are shared by unrelated products: the same one says nothing.
const INTERPRETERS: [&str; 8] = [
    "node",
    "bun",
    "deno",
    "python",
    "python3",
    "python3.11",
    "uv",
    "java",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn family() -> Processes {
        let mut processes = Processes::default();
        processes.seen(Pid(1), None, Some("/usr/bin/bash"), &[]);
        processes.seen(Pid(2), Some(Pid(1)), Some("/opt/codex/codex"), &[]);
        processes.seen(Pid(3), Some(Pid(2)), None, &[]);
        processes.seen(
            Pid(4),
            Some(Pid(3)),
            Some("/home/u/.codex/packages/codex"),
            &[],
        );
        processes.seen(Pid(5), Some(Pid(4)), Some("/usr/bin/python3"), &[]);
        processes
    }

    #[test]
    fn a_daemon_is_known_by_its_lineage_at_fork_though_its_parents_have_ended() {
        let mut processes = family();
        processes.exited(Pid(3));
        assert_eq!(processes.relation(Pid(4), Pid(2)), Some(Relation::Above));
        assert_eq!(processes.relation(Pid(4), Pid(5)), Some(Relation::Below));
        assert_eq!(processes.relation(Pid(4), Pid(4)), Some(Relation::Itself));
        processes.exited(Pid(2));
        assert!(processes.has_ended(Pid(3)) && !processes.has_ended(Pid(9)));
    }

    #[test]
    fn the_shell_above_is_a_bystander() {
        assert_eq!(family().relation(Pid(4), Pid(1)), None);
    }

    #[test]
    fn an_editor_is_no_relation_wherever_it_is() {
        let mut processes = Processes::default();
        processes.seen(Pid(1), None, Some("/usr/bin/nvim"), &[]);
        processes.seen(Pid(2), Some(Pid(1)), Some("/opt/codex/codex"), &[]);
        processes.seen(Pid(3), Some(Pid(2)), Some("/usr/bin/vim"), &[]);
        assert_eq!(processes.relation(Pid(2), Pid(1)), None);
        assert_eq!(processes.relation(Pid(2), Pid(3)), None);
    }

    #[test]
    fn an_editor_that_is_the_host_is_one_product_with_its_processes() {
        let mut processes = Processes::default();
        processes.seen(Pid(1), None, Some("/usr/share/code/code"), &[]);
        processes.seen(Pid(2), Some(Pid(1)), Some("/usr/share/code/code"), &[]);
        processes.seen(Pid(3), Some(Pid(2)), Some("/usr/bin/nvim"), &[]);
        processes.seen(Pid(4), Some(Pid(3)), Some("/usr/bin/nvim"), &[]);
        assert_eq!(processes.relation(Pid(2), Pid(1)), Some(Relation::Above));
        assert_eq!(processes.relation(Pid(3), Pid(4)), Some(Relation::Below));
        assert_eq!(processes.relation(Pid(3), Pid(2)), None);
    }

    #[test]
    fn a_host_in_a_window_of_its_own_has_no_other() {
        let mut processes = family();
        processes.seen(Pid(7), Some(Pid(1)), Some("/usr/bin/codex"), &[]);
        // The one that the shell started is its own window; the daemon may serve this one too.
        assert_eq!(processes.relation(Pid(2), Pid(7)), None);
        assert_eq!(
            processes.relation(Pid(4), Pid(7)),
            Some(Relation::SameProgram)
        );
    }

    #[test]
    fn the_same_program_is_a_relation_but_the_same_interpreter_is_none() {
        let mut processes = family();
        processes.seen(Pid(7), None, Some("/usr/local/bin/codex"), &[]);
        processes.seen(Pid(8), None, Some("/usr/bin/python3"), &[]);
        assert_eq!(
            processes.relation(Pid(4), Pid(7)),
            Some(Relation::SameProgram)
        );
        assert_eq!(processes.relation(Pid(5), Pid(8)), None);
    }

    #[test]
    fn a_reused_pid_is_another_process() {
        let mut processes = family();
        processes.exited(Pid(2));
        processes.seen(Pid(2), None, Some("/usr/bin/vim"), &[]);
        assert_eq!(processes.relation(Pid(4), Pid(2)), None);
    }

    #[test]
    fn what_ended_long_ago_is_forgotten() {
        let mut processes = Processes::default();
        for pid in 0..20_000 {
            processes.seen(Pid(pid), None, None, &[]);
            processes.exited(Pid(pid));
        }
        assert_eq!(processes.known.len(), REMEMBERED);
    }
}
