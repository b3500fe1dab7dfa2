//! The live view on a terminal: what is left on it once the user has left.
#![cfg(target_os = "linux")]
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, in its helpers too"
)]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use nix::pty::{Winsize, openpty};
use tempfile::TempDir;

/// What a program sends that shows the cursor.
const CURSOR: &str = "\x1b[?25h";

/// What a program sends that leaves the terminal's other screen.
const LEFT: &str = "\x1b[?1049l";

const TRACE: &str = "tests/traces/made/codex-0.163-retry.jsonl";

/// What the shell says once the observer has ended, before its exit code.
const ENDED: &str = "ended with ";

/// The observer on a terminal of its own, started by a shell.
struct Terminal {
    child: Child,
    keys: File,
    screen: Receiver<Vec<u8>>,
    seen: String,
}

impl Terminal {
    fn start(args: &[&str]) -> Self {
        let size = Winsize {
            ws_row: 24,
            ws_col: 80,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let pty = openpty(Some(&size), None).expect("a terminal");
        let terminal: OwnedFd = pty.slave;
        let stdio = || Stdio::from(terminal.try_clone().expect("a descriptor"));
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("\"$@\"; echo '{ENDED}'$?."), "sh"])
            .arg(env!("CARGO_BIN_EXE_observer"))
            .args(args)
            .env("NO_COLOR", "1")
            .env("LANG", "C.UTF-8");
        command.stdin(stdio()).stdout(stdio()).stderr(stdio());
        let descriptor = terminal.as_raw_fd();
        let prepare = move || {
            nix::unistd::setsid()?;
            // SAFETY: the descriptor is a terminal, and this request takes a number.
            match unsafe { libc::ioctl(descriptor, libc::TIOCSCTTY, 0) } {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        };
        // SAFETY: two system calls, which a forked child may make.
        let child = unsafe { command.pre_exec(prepare) }.spawn();
        let keys = File::from(pty.master);
        let mut output = keys.try_clone().expect("a descriptor");
        let (sender, screen) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            // The master reads an error once the last slave is closed.
            while let Ok(read @ 1..) = output.read(&mut buffer) {
                if sender.send(buffer[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            child: child.expect("it starts"),
            keys,
            screen,
            seen: String::new(),
        }
    }

    /// Waits for `text`; what came before it.
    fn await_text(&mut self, text: &str) -> String {
        let patience = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(at) = self.seen.find(text) {
                let rest = self.seen.split_off(at + text.len());
                let mut before = std::mem::replace(&mut self.seen, rest);
                before.truncate(at);
                return before;
            }
            let left = patience.saturating_duration_since(Instant::now());
            match self.screen.recv_timeout(left) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => panic!("no {text:?} on the screen:\n{}", self.seen),
            }
        }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("keys");
    }

    /// Leaves; what is on the terminal then, and the exit code.
    fn leave(mut self) -> (String, String) {
        self.press("q");
        self.await_text(LEFT);
        let printed = self.await_text(ENDED).replace("\r\n", "\n");
        // It may be shown several times.
        let printed = printed.replace(CURSOR, "");
        (printed, self.await_text("."))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn trace() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(TRACE);
    path.to_str().expect("UTF-8").into()
}

/// The lines' last part, without the view.
fn summary(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_observer"))
        .args(args)
        .env("NO_COLOR", "1")
        .output()
        .expect("it runs");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let at = text.find("\nSummary").expect("a summary");
    text[at..].to_owned()
}

#[test]
fn leaving_prints_what_the_lines_end_with() {
    let trace = trace();
    let mut view = Terminal::start(&["replay", "--tui", "--fail-on", "error", &trace]);
    view.await_text("2 calls abandoned");
    let (printed, code) = view.leave();
    assert_eq!(printed, summary(&["replay", &trace]));
    assert!(
        printed.contains("abandoned-call #2 (confirmed)"),
        "{printed}"
    );
    assert_eq!(code, "1");
}

#[test]
fn a_cut_log_is_called_one_in_the_view_and_after_it() {
    let log = Cut::new();
    let path = log.path.to_str().expect("UTF-8");
    let mut view = Terminal::start(&["replay", "--tui", "--strict", path]);
    view.await_text("LOG CUT");
    let (printed, code) = view.leave();
    assert!(printed.contains("is cut; the rest is judged"), "{printed}");
    assert!(printed.contains("evidence  incomplete"), "{printed}");
    assert_eq!(code, "3");
}

#[test]
fn what_is_filtered_is_saved_as_a_log_like_others() {
    let trace = trace();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("saved.jsonl");
    let path = path.to_str().expect("UTF-8");
    let mut view = Terminal::start(&["replay", "--tui", &trace]);
    view.await_text("2 calls abandoned");
    view.press("/id:2\r");
    view.press(&format!("w\x15{path}\r"));
    view.await_text("saved");
    view.await_text("judged");
    view.leave();

    let verify = Command::new(env!("CARGO_BIN_EXE_observer"))
        .args(["verify", path])
        .output()
        .expect("it runs");
    assert_eq!(verify.status.code(), Some(0), "{verify:?}");
    // The call, the retries that speak for it, and the handshake: not `tools/list`.
    let saved = summary(&["replay", path]);
    let calls = "calls     4: 1 answered, 2 abandoned, 1 torn-down";
    assert!(
        saved.contains(calls) && saved.contains("evidence  complete"),
        "{saved}"
    );
    let written = fs::read_to_string(path).expect("a log");
    assert!(written.contains(r#""type":"summary""#) && !written.contains("tools/list"));
}

/// A log whose end is missing.
struct Cut {
    path: PathBuf,
    _folder: TempDir,
}

impl Cut {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("audit.jsonl");
        let text = fs::read_to_string(trace()).expect("a trace");
        fs::write(&path, text.trim_end_matches("}\n")).expect("written");
        Self {
            path,
            _folder: folder,
        }
    }
}
