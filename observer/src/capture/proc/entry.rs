//! One process as `/proc/PID` shows it.
//!
//! A process may end, and permission be missing, at any moment between two reads: what cannot be
//! read is left out, never an error.
//!
//! Source: proc(5) and the pages it names.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::capture::event::{End, Pid};

/// How often `/proc` counts a second (`USER_HZ`), in every Linux architecture that we know.
const NANOS_PER_TICK: u64 = 1_000_000_000 / 100;

/// A running process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Its parent; `None` for the first process, and for one from outside the PID namespace.
    pub ppid: Option<Pid>,
    /// Its executable, where we may know it.
    pub exe: Option<String>,
    /// Its arguments, as they are now: a program may rewrite them.
    pub argv: Vec<String>,
    /// When it started, in nanoseconds since boot, rounded down to 10 ms.
    pub start: u64,
    /// Its open pipes and sockets; `None` where we may not look.
    pub descriptors: Option<Vec<Descriptor>>,
    /// Its network namespace (the inode that stands for it), where we may know it.
    pub net: Option<u64>,
}

/// An open pipe or socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Its number.
    pub fd: i32,
    /// What it is open on.
    pub object: Object,
}

/// See [`Descriptor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// An end of the pipe with this inode.
    Pipe(u64, End),
    /// The socket with this inode, of any family.
    Socket(u64),
}

impl Process {
    /// Reads `/proc/PID`; `None` where there is no such process (any more).
    pub(super) fn read(proc: &Path, pid: Pid) -> Option<Self> {
        let folder = proc.join(pid.to_string());
        let stat = fs::read(folder.join("stat")).ok()?;
        let (ppid, start) = parse_stat(&stat)?;
        Some(Self {
            ppid,
            exe: fs::read_link(folder.join("exe"))
                .ok()
                .map(|path| without_deleted(&path)),
            argv: parse_cmdline(&fs::read(folder.join("cmdline")).unwrap_or_default()),
            start,
            descriptors: read_descriptors(&folder).ok(),
            net: link_inode(&folder.join("ns/net"), "net:["),
        })
    }

    /// What it calls itself, or is: never empty where anything is known of it.
    pub fn name(&self) -> &str {
        let own = self
            .argv
            .first()
            .map(String::as_str)
            .filter(|name| !name.is_empty());
        file_name(own.or(self.exe.as_deref()).unwrap_or("?"))
    }

    /// The names under which a user may ask for it: of its executable, of the program that it
    /// calls itself, of the script or module that it interprets. Not the kernel's `comm`, which
    /// is cut at 15 bytes and often a thread's.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let interpreted = interpreted(&self.argv);
        let stem = interpreted.map(|name| name.rsplit_once('.').map_or(name, |(stem, _)| stem));
        [
            self.exe.as_deref(),
            self.argv.first().map(String::as_str),
            interpreted,
            stem,
        ]
        .into_iter()
        .flatten()
        .map(file_name)
    }
}

/// The script or module that an interpreter's arguments name.
fn interpreted(argv: &[String]) -> Option<&str> {
    const INTERPRETERS: [&str; 12] = [
        "node", "nodejs", "bun", "deno", "python", "pypy", "ruby", "perl", "sh", "bash", "dash",
        "zsh",
    ];
    let (program, arguments) = argv.split_first()?;
    let program = file_name(program).trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if !INTERPRETERS.contains(&program) {
        return None;
    }
    arguments
        .iter()
        .map(String::as_str)
        .find(|word| !word.starts_with('-') && *word != "run")
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Parent and start time. The second field is the program's name in parentheses, and may hold
/// spaces and parentheses itself.
fn parse_stat(stat: &[u8]) -> Option<(Option<Pid>, u64)> {
    let end = memchr::memrchr(b')', stat)?;
    let mut fields = std::str::from_utf8(stat.get(end + 1..)?)
        .ok()?
        .split_ascii_whitespace();
    let ppid: u32 = fields.nth(1)?.parse().ok()?;
    let start: u64 = fields.nth(17)?.parse().ok()?;
    Some((
        (ppid != 0).then_some(Pid(ppid)),
        start.saturating_mul(NANOS_PER_TICK),
    ))
}

fn parse_cmdline(cmdline: &[u8]) -> Vec<String> {
    let cmdline = cmdline.strip_suffix(b"\0").unwrap_or(cmdline);
    if cmdline.is_empty() {
        return Vec::new();
    }
    cmdline
        .split(|&byte| byte == 0)
        .map(|word| String::from_utf8_lossy(word).into())
        .collect()
}

/// The kernel marks an executable that was replaced, as by an update of the host.
fn without_deleted(path: &Path) -> String {
    let path = path.to_string_lossy();
    path.strip_suffix(" (deleted)").unwrap_or(&path).to_owned()
}

fn read_descriptors(folder: &Path) -> io::Result<Vec<Descriptor>> {
    let links = folder.join("fd");
    let mut descriptors = Vec::new();
    for entry in fs::read_dir(&links)? {
        let name = entry?.file_name();
        let Some(fd) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let link = links.join(&name);
        let object = if let Some(inode) = link_inode(&link, "pipe:[") {
            let end = fs::read_to_string(folder.join("fdinfo").join(&name));
            end.ok()
                .and_then(|info| parse_end(&info))
                .map(|end| Object::Pipe(inode, end))
        } else {
            link_inode(&link, "socket:[").map(Object::Socket)
        };
        descriptors.extend(object.map(|object| Descriptor { fd, object }));
    }
    descriptors.sort_by_key(|descriptor| descriptor.fd);
    Ok(descriptors)
}

/// The inode in a link like `pipe:[1234]`.
fn link_inode(link: &Path, kind: &str) -> Option<u64> {
    let target: PathBuf = fs::read_link(link).ok()?;
    target
        .to_str()?
        .strip_prefix(kind)?
        .strip_suffix(']')?
        .parse()
        .ok()
}

/// Which end of its pipe a descriptor is open on, by the access mode in `fdinfo`.
fn parse_end(fdinfo: &str) -> Option<End> {
    let flags = fdinfo
        .lines()
        .find_map(|line| line.strip_prefix("flags:"))?
        .trim();
    match i32::from_str_radix(flags, 8).ok()? & libc::O_ACCMODE {
        libc::O_RDONLY => Some(End::Reader),
        libc::O_WRONLY => Some(End::Writer),
        _ => None,
    }
}

/// The network namespace of a process, to ask in.
pub(super) fn open_net(proc: &Path, pid: Pid) -> io::Result<File> {
    File::open(proc.join(pid.to_string()).join("ns/net"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn stat_survives_any_program_name() {
        let tail = "S 7 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 1 1";
        for name in ["sh", "a b", ") 9 9 (", ""] {
            let stat = format!("42 ({name}) {tail}");
            assert_eq!(
                parse_stat(stat.as_bytes()),
                Some((Some(Pid(7)), 123_450_000_000))
            );
        }
        let init = b"1 (init) S 0 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 2 1 1";
        assert_eq!(parse_stat(init), Some((None, 20_000_000)));
        for damaged in ["", "42", "42 (sh)", "42 (sh) S", "42 (sh) S x"] {
            assert_eq!(parse_stat(damaged.as_bytes()), None, "{damaged}");
        }
    }

    #[test]
    fn cmdline_keeps_empty_arguments() {
        assert_eq!(parse_cmdline(b""), strings(&[]));
        assert_eq!(parse_cmdline(b"sh\0-c\0\0"), strings(&["sh", "-c", ""]));
        assert_eq!(parse_cmdline(b"claude"), strings(&["claude"]));
        assert_eq!(parse_cmdline(b"a\xff\0"), strings(&["a\u{fffd}"]));
    }

    #[test]
    fn a_process_goes_by_the_program_it_interprets() {
        let named = |exe: &str, argv: &[&str], name: &str| {
            let process = Process {
                exe: Some(exe.into()),
                argv: strings(argv),
                ..Process::default()
            };
            process.names().any(|known| known == name)
        };
        assert!(named("/opt/codex/bin/codex", &["codex", "exec"], "codex"));
        assert!(named(
            "/usr/bin/node",
            &["node", "/usr/local/bin/gemini"],
            "gemini"
        ));
        assert!(named(
            "/usr/bin/node",
            &["node", "--no-warnings", "/x/server.mjs"],
            "server"
        ));
        assert!(named(
            "/usr/bin/node",
            &["node", "/x/server.mjs"],
            "server.mjs"
        ));
        assert!(named(
            "/usr/bin/python3.11",
            &["python3", "-m", "server"],
            "server"
        ));
        assert!(named(
            "/usr/bin/bun",
            &["bun", "run", "/x/server.ts"],
            "server"
        ));
        assert!(named("/usr/bin/node", &["claude"], "claude"));
        assert!(!named(
            "/usr/bin/sudo",
            &["sudo", "observer", "attach", "codex"],
            "codex"
        ));
        assert!(!named(
            "/usr/bin/observer",
            &["observer", "attach", "codex"],
            "codex"
        ));
        assert!(!named("/usr/bin/vi", &["vi", "codex"], "codex"));
    }

    #[test]
    fn reads_pipes_and_sockets_and_leaves_the_rest() {
        let proc = tempfile::tempdir().unwrap();
        let folder = proc.path().join("42");
        fs::create_dir_all(folder.join("fd")).unwrap();
        fs::create_dir_all(folder.join("fdinfo")).unwrap();
        let stat = "42 (sh) S 7 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 1 1 1";
        fs::write(folder.join("stat"), stat).unwrap();
        fs::write(folder.join("cmdline"), "sh\0").unwrap();
        symlink("/bin/sh (deleted)", folder.join("exe")).unwrap();
        let targets = [
            ("0", "pipe:[10]", "0100000"),
            ("1", "pipe:[11]", "0100001"),
            ("2", "/dev/null", "0100002"),
            ("5", "socket:[12]", "02000002"),
            ("11", "anon_inode:[eventpoll]", "02000002"),
            ("12", "pipe:[zz]", "01"),
        ];
        for (fd, target, flags) in targets {
            symlink(target, folder.join("fd").join(fd)).unwrap();
            let info = format!("pos:\t0\nflags:\t{flags}\nmnt_id:\t15\n");
            fs::write(folder.join("fdinfo").join(fd), info).unwrap();
        }
        let process = Process::read(proc.path(), Pid(42)).unwrap();
        assert_eq!(process.exe.as_deref(), Some("/bin/sh"));
        let expected = [
            Descriptor {
                fd: 0,
                object: Object::Pipe(10, End::Reader),
            },
            Descriptor {
                fd: 1,
                object: Object::Pipe(11, End::Writer),
            },
            Descriptor {
                fd: 5,
                object: Object::Socket(12),
            },
        ];
        assert_eq!(process.descriptors.as_deref(), Some(&expected[..]));

        fs::remove_dir_all(folder.join("fd")).unwrap();
        assert_eq!(
            Process::read(proc.path(), Pid(42)).unwrap().descriptors,
            None
        );
        assert_eq!(Process::read(proc.path(), Pid(43)), None);
    }
}
