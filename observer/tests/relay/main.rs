//! `observer relay` from outside: hosts and servers must not be able to tell that it is there.
//!
//! Most tests do the same thing twice, with the server alone and with the relay before it, and want
//! the same to come of it. The servers are shell and Python scripts.
#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helpers too"
)]

mod bytes;
mod collect;
mod config;
mod ends;
mod faults;
mod log;
mod signals;

use std::fmt::Debug;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// No step takes so long; what does is stuck.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether the relay stands before the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Direct,
    Relayed,
}

/// A host's side of a server: its folder, and the command to start.
struct Bench {
    way: Way,
    folder: TempDir,
}

impl Bench {
    fn new(way: Way) -> Self {
        Self {
            way,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn relayed() -> Self {
        Self::new(Way::Relayed)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The server's command, its stdio not set, in a process group of its own: signals to the
    /// group must not reach the test.
    fn command(&self, server: &[&str]) -> Command {
        self.command_with(
            &["--log", self.path("audit.jsonl").to_str().unwrap()],
            server,
        )
    }

    fn command_with(&self, options: &[&str], server: &[&str]) -> Command {
        use std::os::unix::process::CommandExt;
        let mut command = match self.way {
            Way::Direct => Command::new(server[0]),
            Way::Relayed => {
                let mut command = Command::new(env!("CARGO_BIN_EXE_observer"));
                command.arg("relay").args(options).arg("--").arg(server[0]);
                command
            }
        };
        command.args(&server[1..]).current_dir(self.folder.path());
        command
            .env("XDG_STATE_HOME", self.path("state"))
            .env_remove("CI")
            .process_group(0);
        command
    }

    fn start(&self, server: &[&str]) -> Running {
        Running::start(&mut self.command(server))
    }

    /// The log's records, once the relay has ended.
    fn records(&self) -> Vec<Value> {
        records(&self.path("audit.jsonl"))
    }
}

/// A server under way, with pipes at its stdin and stdout.
struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Running {
    fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdout }
    }

    fn pid(&self) -> nix::unistd::Pid {
        nix::unistd::Pid::from_raw(self.child.id().cast_signed())
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn rest(&mut self) -> String {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        rest
    }

    fn close_stdin(&mut self) {
        drop(self.child.stdin.take());
    }

    fn wait(&mut self) -> End {
        End::of(self.child.wait().unwrap())
    }
}

impl Drop for Running {
    /// A failed test leaves nothing running.
    fn drop(&mut self) {
        let _ = nix::sys::signal::killpg(self.pid(), nix::sys::signal::Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

/// How a process ended, as its parent sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Code(i32),
    Signal(i32),
}

impl End {
    fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, signal) => Self::Signal(signal.unwrap()),
        }
    }
}

/// Does it both ways, and wants `expected` to come of it.
fn alike<T: Debug + PartialEq>(expected: &T, act: impl Fn(&Bench) -> T) {
    for way in [Way::Direct, Way::Relayed] {
        assert_eq!(&act(&Bench::new(way)), expected, "{way:?}");
    }
}

fn records(path: &Path) -> Vec<Value> {
    // The log is written a moment longer than the server lives, where something holds it up.
    wait_for(|| {
        let log = fs::read_to_string(path).ok()?;
        let records: Vec<Value> = log
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or(Value::Null))
            .collect();
        (records.last()?["type"] == "summary").then_some(records)
    })
}

fn of_type<'a>(records: &'a [Value], kind: &str) -> Vec<&'a Value> {
    records
        .iter()
        .filter(|record| record["type"] == kind)
        .collect()
}

/// Asks until there is an answer.
fn wait_for<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < end, "nothing has come of it");
        thread::sleep(Duration::from_millis(2));
    }
}

fn is_alive(pid: u32) -> bool {
    // A zombie has ended; its parent is only slow, or does not care.
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        !stat
            .rsplit(") ")
            .next()
            .is_some_and(|rest| rest.starts_with('Z'))
    })
}

/// A socket pair, as Node and Bun make one for each of a server's streams.
fn socket_pair() -> (UnixStream, OwnedFd) {
    let (host, server) = UnixStream::pair().unwrap();
    (host, server.into())
}

/// A server in Python, which the tests need in places where a shell cannot do it.
fn python(script: &str) -> Vec<&str> {
    vec!["python3", "-u", "-c", script]
}
