//! The live view on a terminal: what is left on it once the user has left.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::pty::Terminal;

/// What a program sends that shows the cursor.
const CURSOR: &str = "\x1b[?25h";

/// What a program sends that leaves the terminal's other screen.
const LEFT: &str = "\x1b[?1049l";

const TRACE: &str = "tests/traces/made/codex-0.163-retry.jsonl";

/// What the shell says once the observer has ended, before its exit code.
const ENDED: &str = "ended with ";

/// The observer in the live view, started by a shell.
fn show(args: &[&str]) -> Terminal {
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("\"$@\"; echo '{ENDED}'$?."), "sh"])
        .arg(env!("CARGO_BIN_EXE_observer"))
        .args(args)
        .env("NO_COLOR", "1")
        .env("LANG", "C.UTF-8");
    Terminal::start(&mut command)
}

/// Leaves the view; what is on the terminal then, and the exit code.
fn leave(mut view: Terminal) -> (String, String) {
    view.type_in("q");
    view.await_text(LEFT);
    let printed = view.await_text(ENDED).replace("\r\n", "\n");
    // It may be shown several times.
    let printed = printed.replace(CURSOR, "");
    (printed, view.await_text("."))
}

fn trace() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(TRACE);
    path.to_str().unwrap().into()
}

/// The lines' last part, without the view.
fn summary(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_observer"))
        .args(args)
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let at = text.find("\nSummary").unwrap();
    text[at..].to_owned()
}

#[test]
fn leaving_prints_what_the_lines_end_with() {
    let trace = trace();
    let mut view = show(&["replay", "--tui", "--fail-on", "error", &trace]);
    view.await_shown("2 calls abandoned");
    let (printed, code) = leave(view);
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
    let path = log.path.to_str().unwrap();
    let mut view = show(&["replay", "--tui", "--strict", path]);
    view.await_shown("LOG CUT");
    let (printed, code) = leave(view);
    assert!(printed.contains("is cut; the rest is judged"), "{printed}");
    assert!(printed.contains("evidence  incomplete"), "{printed}");
    assert_eq!(code, "3");
}

#[test]
fn what_is_filtered_is_saved_as_a_log_like_others() {
    let trace = trace();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("saved.jsonl");
    let path = path.to_str().unwrap();
    let mut view = show(&["replay", "--tui", &trace]);
    view.await_shown("2 calls abandoned");
    view.type_in("/id:2\r");
    view.type_in(&format!("w\x15{path}\r"));
    view.await_shown("saved");
    view.await_shown("judged");
    leave(view);

    let verify = Command::new(env!("CARGO_BIN_EXE_observer"))
        .args(["verify", path])
        .output()
        .unwrap();
    assert_eq!(verify.status.code(), Some(0), "{verify:?}");
    // The call, the retries that speak for it, and the handshake: not `tools/list`.
    let saved = summary(&["replay", path]);
    let calls = "calls     4: 1 answered, 2 abandoned, 1 torn-down";
    assert!(
        saved.contains(calls) && saved.contains("evidence  complete"),
        "{saved}"
    );
    let written = fs::read_to_string(path).unwrap();
    assert!(written.contains(r#""type":"summary""#) && !written.contains("tools/list"));
}

#[test]
fn a_log_is_saved_compressed_by_its_name_and_never_over_another() {
    let trace = trace();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("saved.jsonl.zst");
    let path = path.to_str().unwrap();
    let mut view = show(&["replay", "--tui", &trace]);
    view.await_shown("2 calls abandoned");
    view.type_in(&format!("w\x15{path}\r"));
    view.await_shown("judged");
    let saved = fs::read(path).unwrap();
    view.type_in(&format!("w\x15{path}\r"));
    view.await_shown("cannot create");
    leave(view);
    assert!(saved.starts_with(&[0x28, 0xB5, 0x2F, 0xFD]));
    assert_eq!(saved, fs::read(path).unwrap());
    let verify = Command::new(env!("CARGO_BIN_EXE_observer"))
        .args(["verify", path])
        .output()
        .unwrap();
    assert_eq!(verify.status.code(), Some(0), "{verify:?}");
}

/// A log whose end is missing.
struct Cut {
    path: PathBuf,
    _folder: TempDir,
}

impl Cut {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let text = fs::read_to_string(trace()).unwrap();
        fs::write(&path, text.trim_end_matches("}\n")).unwrap();
        Self {
            path,
            _folder: folder,
        }
    }
}
