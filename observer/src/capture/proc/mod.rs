//! The processes that run already, and the pipes and socket pairs between them, from `/proc`.
//!
//! Owns the way from a pid or a name that a user gave to the set of processes that must be
//! watched, and what is known of each before the first system call is seen. A snapshot is never
//! exact: whoever takes one watches first and looks then. Named pipes are left out; they announce
//! themselves when they are written to.

mod entry;
mod pairs;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

pub use entry::{Descriptor, Object, Process};

use super::event::{
    CaptureEvent, Captured, End, Joined, Pid, ProcessChange, ProcessEvent, StreamId, StreamKind,
    Timestamp,
};

/// Why no snapshot could be taken.
#[derive(Debug, thiserror::Error)]
pub enum ProcError {
    /// `/proc` itself.
    #[error("cannot list the processes in /proc")]
    List(#[source] io::Error),
    /// `sock_diag`.
    #[error("cannot ask the kernel for the peers of sockets (sock_diag)")]
    Sockets(#[source] io::Error),
}

/// All processes at one moment, more or less.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    processes: BTreeMap<Pid, Process>,
    /// Socket inode to peer's inode, of unnamed pairs.
    peers: BTreeMap<u64, u64>,
}

impl Snapshot {
    /// Looks at every process but this one.
    ///
    /// # Errors
    ///
    /// Where `/proc` cannot be listed, or the kernel does not tell the peers of sockets. A
    /// process that ends meanwhile, or that we may not look into, is no error.
    pub fn take() -> Result<Self, ProcError> {
        let proc = Path::new("/proc");
        let own = std::process::id();
        let mut processes = BTreeMap::new();
        for folder in std::fs::read_dir(proc).map_err(ProcError::List)? {
            let name = folder.map_err(ProcError::List)?.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            if pid != own {
                let pid = Pid(pid);
                processes.extend(Process::read(proc, pid).map(|process| (pid, process)));
            }
        }
        let mut peers = pairs::peers().map_err(ProcError::Sockets)?;
        peers.extend(foreign_peers(proc, &processes));
        Ok(Self { processes, peers })
    }

    /// The process with this pid.
    pub fn process(&self, pid: Pid) -> Option<&Process> {
        self.processes.get(&pid)
    }

    /// All processes.
    pub fn pids(&self) -> BTreeSet<Pid> {
        self.processes.keys().copied().collect()
    }

    /// The processes that go by `name`: that of the executable, or of the script it interprets.
    pub fn named(&self, name: &str) -> BTreeSet<Pid> {
        let named = self
            .processes
            .iter()
            .filter(|(_, process)| process.names().any(|n| n == name));
        named.map(|(&pid, _)| pid).collect()
    }

    /// `roots`, what they have started, and whoever holds the other end of a stdio stream of any
    /// of them: a verdict on a connection of which one end is unseen would be a guess.
    pub fn scope(&self, roots: &BTreeSet<Pid>) -> BTreeSet<Pid> {
        let partners = self.partners();
        let children = self.children();
        let mut scope = BTreeSet::new();
        let mut next: Vec<Pid> = roots.iter().copied().collect();
        while let Some(pid) = next.pop() {
            if self.processes.contains_key(&pid) && scope.insert(pid) {
                next.extend(children.get(&pid).into_iter().flatten());
                next.extend(partners.get(&pid).into_iter().flatten());
            }
        }
        scope
    }

    /// What is known of the processes in `scope`: first each of them, then what they hold.
    pub fn events(&self, scope: &BTreeSet<Pid>, at: Timestamp) -> Vec<Captured> {
        let known = || self.processes.iter().filter(|(pid, _)| scope.contains(pid));
        let seen = known().map(|(&pid, process)| {
            let change = ProcessChange::Seen {
                ppid: process.ppid,
                exe: process.exe.clone(),
                argv: process.argv.clone(),
                start: Some(process.start),
            };
            CaptureEvent::Process(ProcessEvent { pid, change })
        });
        let holds = known().flat_map(|(&pid, process)| {
            self.ends(process)
                .map(move |(stream, end, fd)| CaptureEvent::Holds {
                    stream,
                    pid,
                    end,
                    fd,
                    joined: Joined::Middle,
                })
        });
        seen.chain(holds)
            .map(|event| Captured { at, event })
            .collect()
    }

    /// The ends of streams that a process holds.
    fn ends(&self, process: &Process) -> impl Iterator<Item = (StreamId, End, i32)> {
        process
            .descriptors
            .iter()
            .flatten()
            .flat_map(|&Descriptor { fd, object }| {
                let ends = match object {
                    Object::Pipe(inode, end) => [Some((StreamKind::Pipe, inode, end)), None],
                    // What is written to a socket is read from its peer.
                    Object::Socket(inode) => match self.peers.get(&inode) {
                        Some(&peer) => [
                            Some((StreamKind::Socket, inode, End::Writer)),
                            Some((StreamKind::Socket, peer, End::Reader)),
                        ],
                        None => [None, None],
                    },
                };
                ends.into_iter().flatten().map(move |(kind, object, end)| {
                    (
                        StreamId {
                            kind,
                            object,
                            scope: 0,
                        },
                        end,
                        fd,
                    )
                })
            })
    }

    /// For each process those at the other end of a stream that is the standard input or output
    /// of one of the two.
    fn partners(&self) -> BTreeMap<Pid, BTreeSet<Pid>> {
        let mut holders: BTreeMap<StreamId, Vec<(Pid, End, i32)>> = BTreeMap::new();
        for (&pid, process) in &self.processes {
            for (stream, end, fd) in self.ends(process) {
                holders.entry(stream).or_default().push((pid, end, fd));
            }
        }
        let mut partners: BTreeMap<Pid, BTreeSet<Pid>> = BTreeMap::new();
        for ends in holders.values() {
            for &(writer, _, out) in ends.iter().filter(|(_, end, _)| *end == End::Writer) {
                for &(reader, _, into) in ends.iter().filter(|(_, end, _)| *end == End::Reader) {
                    if writer != reader && (out == 1 || into == 0) {
                        partners.entry(writer).or_default().insert(reader);
                        partners.entry(reader).or_default().insert(writer);
                    }
                }
            }
        }
        partners
    }

    fn children(&self) -> BTreeMap<Pid, Vec<Pid>> {
        let mut children: BTreeMap<Pid, Vec<Pid>> = BTreeMap::new();
        for (&pid, process) in &self.processes {
            if let Some(parent) = process.ppid {
                children.entry(parent).or_default().push(pid);
            }
        }
        children
    }
}

/// One running process.
pub fn process(pid: Pid) -> Option<Process> {
    Process::read(Path::new("/proc"), pid)
}

/// This process's ancestors, nearest first, with their executables.
pub(super) fn ancestors() -> impl Iterator<Item = (Pid, Option<String>)> {
    let mut next = process(Pid(std::process::id())).and_then(|process| process.ppid);
    std::iter::from_fn(move || {
        let pid = next?;
        let process = process(pid)?;
        next = process.ppid;
        Some((pid, process.exe))
    })
}

/// The peers of sockets in the other network namespaces that processes live in. A namespace that
/// we may not enter is left out, as are its processes' sockets.
fn foreign_peers(proc: &Path, processes: &BTreeMap<Pid, Process>) -> BTreeMap<u64, u64> {
    let own = process(Pid(std::process::id())).and_then(|process| process.net);
    let mut asked = BTreeSet::new();
    let mut peers = BTreeMap::new();
    for (&pid, process) in processes {
        let Some(net) = process.net else { continue };
        if Some(net) != own && asked.insert(net) {
            let found = entry::open_net(proc, pid).and_then(|net| pairs::peers_in(&net));
            peers.extend(found.unwrap_or_default());
        }
    }
    peers
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    const READER: End = End::Reader;
    const WRITER: End = End::Writer;

    type Fds<'a> = &'a [(i32, Object)];

    /// Processes by pid, parent, and descriptors.
    fn snapshot(processes: &[(u32, u32, Fds<'_>)], pairs: &[(u64, u64)]) -> Snapshot {
        let process = |&(pid, ppid, fds): &(u32, u32, Fds<'_>)| {
            let descriptors = fds
                .iter()
                .map(|&(fd, object)| Descriptor { fd, object })
                .collect::<Vec<_>>();
            let ppid = Some(Pid(ppid));
            (
                Pid(pid),
                Process {
                    ppid,
                    descriptors: Some(descriptors),
                    ..Process::default()
                },
            )
        };
        Snapshot {
            processes: processes.iter().map(process).collect(),
            peers: pairs.iter().flat_map(|&(a, b)| [(a, b), (b, a)]).collect(),
        }
    }

    fn pids(pids: &[u32]) -> BTreeSet<Pid> {
        pids.iter().copied().map(Pid).collect()
    }

    #[test]
    fn a_server_brings_its_host_and_a_host_its_servers() {
        let world = snapshot(
            &[
                (1, 0, &[]),
                // A host with a server on pipes, and one that was handed to init, on sockets.
                (
                    10,
                    1,
                    &[
                        (7, Object::Pipe(100, WRITER)),
                        (8, Object::Pipe(101, READER)),
                        (9, Object::Socket(200)),
                    ],
                ),
                (
                    11,
                    10,
                    &[
                        (0, Object::Pipe(100, READER)),
                        (1, Object::Pipe(101, WRITER)),
                    ],
                ),
                (12, 1, &[(0, Object::Socket(201))]),
                // Neighbours.
                (20, 1, &[(7, Object::Pipe(300, WRITER))]),
                (21, 20, &[(0, Object::Pipe(300, READER))]),
            ],
            &[(200, 201)],
        );
        for root in [10, 11, 12] {
            assert_eq!(
                world.scope(&pids(&[root])),
                pids(&[10, 11, 12]),
                "from {root}"
            );
        }
        assert_eq!(world.scope(&pids(&[21])), pids(&[20, 21]));
        assert_eq!(world.scope(&pids(&[99])), pids(&[]));
    }

    #[test]
    fn a_stream_that_is_nobodys_stdio_joins_nobody() {
        let fd = |fd, object| [(fd, object)];
        let world = snapshot(
            &[
                (10, 1, &fd(7, Object::Pipe(1, WRITER))),
                (11, 1, &fd(5, Object::Pipe(1, READER))),
            ],
            &[],
        );
        assert_eq!(world.scope(&pids(&[10])), pids(&[10]));
    }

    #[test]
    fn a_socket_is_the_end_of_two_streams() {
        let world = snapshot(&[(10, 1, &[(0, Object::Socket(200))])], &[(200, 201)]);
        let held: Vec<_> = world
            .events(&pids(&[10]), Timestamp::ZERO)
            .into_iter()
            .filter_map(|captured| match captured.event {
                CaptureEvent::Holds {
                    stream, end, fd, ..
                } => Some((stream.object, end, fd)),
                _ => None,
            })
            .collect();
        assert_eq!(held, [(200, WRITER, 0), (201, READER, 0)]);
    }

    #[test]
    fn a_socket_without_a_known_peer_is_no_stream() {
        let world = snapshot(&[(10, 1, &[(0, Object::Socket(200))])], &[]);
        assert_eq!(world.events(&pids(&[10]), Timestamp::ZERO).len(), 1);
    }

    struct Running(Child);

    impl Drop for Running {
        fn drop(&mut self) {
            self.0.kill().ok();
            self.0.wait().ok();
        }
    }

    #[test]
    fn sees_a_real_process_and_the_pipe_to_it() {
        let child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn();
        let child = Running(child.unwrap());
        let pid = Pid(child.0.id());
        let snapshot = Snapshot::take().unwrap();
        let process = snapshot.process(pid).unwrap();
        assert_eq!(process.ppid, Some(Pid(std::process::id())));
        let stdin = process.descriptors.as_ref().unwrap()[0];
        assert!(matches!(
            stdin,
            Descriptor {
                fd: 0,
                object: Object::Pipe(_, End::Reader)
            }
        ));
        let events = snapshot.events(&BTreeSet::from([pid]), Timestamp::ZERO);
        assert!(
            matches!(events[0].event, CaptureEvent::Process(_)),
            "{events:?}"
        );
        assert!(
            matches!(events[1].event, CaptureEvent::Holds { fd: 0, .. }),
            "{events:?}"
        );
    }
}
