//! An `observer` process under test.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User};
use tempfile::TempDir;

/// Whether a probe can be loaded here; says so where it cannot.
pub(crate) fn can_capture() -> bool {
    let output = Observer::new(&["doctor", "--backend", "ebpf"]).output();
    if output.status == Some(0) {
        return true;
    }
    let required = std::env::var_os("OBSERVER_REQUIRE_KERNEL").is_some();
    assert!(
        !required,
        "OBSERVER_REQUIRE_KERNEL is set, but:\n{}",
        output.stdout
    );
    // Not `eprintln`, which a test run that passes would not show.
    let _ = writeln!(std::io::stderr(), "skipped: nothing can be captured here");
    false
}

/// The backends that can watch what is started here.
pub(crate) fn backends() -> impl Iterator<Item = &'static str> {
    can_capture()
        .then_some("ebpf")
        .into_iter()
        .chain(std::iter::once("ptrace"))
}

/// The records of a log.
pub(crate) fn log(file: &Path) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(file).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A call of the program.
pub(crate) struct Observer {
    command: Command,
    input: String,
}

impl Observer {
    pub(crate) fn new(args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_observer"));
        command
            .args(args)
            .env("NO_COLOR", "1")
            .env_remove("CI")
            .env_remove("SUDO_UID")
            .env_remove("DOAS_USER");
        Self {
            command,
            input: String::new(),
        }
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn input(mut self, input: &str) -> Self {
        self.input = input.to_owned();
        self
    }

    /// Runs it to its end.
    pub(crate) fn output(self) -> Output {
        self.start().finish()
    }

    pub(crate) fn start(mut self) -> Running {
        self.command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = self.command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // It may have ended without having read.
        let _unread = stdin.write_all(self.input.as_bytes());
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Running {
            child,
            stdout,
            stderr,
            seen: String::new(),
        }
    }
}

/// A call in progress.
pub(crate) struct Running {
    child: Child,
    stdout: BufReader<std::process::ChildStdout>,
    stderr: BufReader<std::process::ChildStderr>,
    seen: String,
}

impl Running {
    /// The next line of its stdout.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Waits for a line of its stderr that holds `text`.
    pub(crate) fn await_on_stderr(&mut self, text: &str) {
        loop {
            let start = self.seen.len();
            let read = self.stderr.read_line(&mut self.seen).unwrap();
            assert_ne!(read, 0, "no {text:?} in:\n{}", self.seen);
            if self.seen[start..].contains(text) {
                return;
            }
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
    }

    pub(crate) fn finish(mut self) -> Output {
        let rest: JoinHandle<String> = thread::spawn(move || {
            let mut text = String::new();
            self.stdout.read_to_string(&mut text).unwrap();
            text
        });
        let mut stderr = self.seen;
        self.stderr.read_to_string(&mut stderr).unwrap();
        let stdout = rest.join().unwrap();
        Output {
            status: self.child.wait().unwrap().code(),
            stdout,
            stderr,
        }
    }
}

/// What came of a call.
pub(crate) struct Output {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A copy of the program that a user without rights may execute.
pub(crate) struct ForNobody {
    _folder: TempDir,
    program: PathBuf,
    user: User,
}

/// `None` where we cannot become that user.
pub(crate) fn for_nobody() -> Option<ForNobody> {
    if !nix::unistd::geteuid().is_root() {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("observer");
    fs::copy(env!("CARGO_BIN_EXE_observer"), &program).unwrap();
    let user = User::from_name("nobody").unwrap().unwrap();
    Some(ForNobody {
        _folder: folder,
        program,
        user,
    })
}

impl ForNobody {
    pub(crate) fn call(&self, args: &[&str]) -> Output {
        let output = Command::new(&self.program)
            .args(args)
            .uid(self.user.uid.as_raw())
            .gid(self.user.gid.as_raw())
            .current_dir("/")
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Output {
            status: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}
