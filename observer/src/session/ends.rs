//! Who is at one end of a stream.

use super::processes::ProcId;

/// More processes than these at one end are not told apart: a pipe that many share (the jobs of
/// `make`, a terminal multiplexer's log) is no MCP connection.
const MOST: usize = 16;

/// The processes at one end of a stream. Using it counts more than holding it: wrappers hold the
/// descriptors of the server that they started, and never read or write.
#[derive(Debug, Default)]
pub(super) struct Ends {
    used: Vec<ProcId>,
    held: Vec<ProcId>,
    fds: Fds,
}

/// Through which descriptors, as far as they mean something by convention.
#[derive(Debug, Default)]
struct Fds {
    stdin: bool,
    stdout: bool,
    stderr: bool,
    other: bool,
}

impl Ends {
    /// A process used it. Whether that is news.
    pub(super) fn note_use(&mut self, process: ProcId, fd: Option<i32>) -> bool {
        let news = self.fds.note(fd);
        add(&mut self.used, process) || news
    }

    /// A process holds it. Whether that is news.
    pub(super) fn note_hold(&mut self, process: ProcId, fd: i32) -> bool {
        let news = self.fds.note(Some(fd));
        add(&mut self.held, process) || news
    }

    /// Those who use it; before anybody did, those who hold it.
    pub(super) fn known(&self) -> &[ProcId] {
        if self.used.is_empty() {
            &self.held
        } else {
            &self.used
        }
    }

    /// Whether anybody has used it.
    pub(super) fn is_used(&self) -> bool {
        !self.used.is_empty()
    }

    /// Whether there are more than are told apart.
    pub(super) fn is_crowded(&self) -> bool {
        self.used.len().max(self.held.len()) == MOST
    }

    /// All who use or hold it; some come twice.
    pub(super) fn all(&self) -> impl Iterator<Item = ProcId> {
        self.used.iter().chain(&self.held).copied()
    }

    /// Whether somebody is at both ends; `None` where nobody is known at one of them.
    pub(super) fn meet(&self, other: &Self) -> Option<bool> {
        let (one, other) = (self.known(), other.known());
        let known = !one.is_empty() && !other.is_empty();
        known.then(|| one.iter().any(|process| other.contains(process)))
    }

    /// Whether it is somebody's descriptor 0.
    pub(super) fn is_stdin(&self) -> bool {
        self.fds.stdin
    }

    /// Whether it is somebody's descriptor 1.
    pub(super) fn is_stdout(&self) -> bool {
        self.fds.stdout
    }

    /// Whether it is descriptor 2 and no other.
    pub(super) fn is_only_stderr(&self) -> bool {
        self.fds.stderr && !self.fds.stdin && !self.fds.stdout && !self.fds.other
    }
}

impl Fds {
    fn note(&mut self, fd: Option<i32>) -> bool {
        let flag = match fd {
            Some(0) => &mut self.stdin,
            Some(1) => &mut self.stdout,
            Some(2) => &mut self.stderr,
            Some(_) => &mut self.other,
            None => return false,
        };
        !std::mem::replace(flag, true)
    }
}

fn add(list: &mut Vec<ProcId>, process: ProcId) -> bool {
    let news = list.len() < MOST && !list.contains(&process);
    if news {
        list.push(process);
    }
    news
}
