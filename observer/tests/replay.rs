//! `observer replay` as a user meets it: exit codes, messages, files.
#![expect(
    clippy::expect_used,
    reason = "a test fails by panicking, in its helpers too"
)]

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

const HEADER: &str = r#"{"type":"header","t":0,"schema":"observer/1","payload":"full"}"#;
const NOISE: &str = r#"{"type":"noise","t":1,"from":"server","bytes":3,"kind":"text","text":"hi"}"#;
const GAP: &str =
    r#"{"type":"gap","t":2,"from":"server","offset":9,"bytes":null,"reason":"ring-full"}"#;
const MESSAGE: &str = r#"{"type":"message","t":3,"conn":1,"from":"client","bytes":36,"json": { "jsonrpc":"2.0", "method":"\u0078" } }"#;

/// A folder with a log in it.
struct Lab {
    folder: TempDir,
}

impl Lab {
    fn new(lines: &[&str]) -> Self {
        let lab = Self {
            folder: tempfile::tempdir().expect("a folder"),
        };
        lab.write(&(lines.join("\n") + "\n"));
        lab
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, text: &str) {
        fs::write(self.path("audit.jsonl"), text).expect("written");
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_observer"));
        command
            .arg("replay")
            .args(args)
            .current_dir(self.folder.path())
            .env_remove("CI");
        command
    }

    fn replay(&self, args: &[&str]) -> Replayed {
        let output = self
            .command(args)
            .arg("audit.jsonl")
            .output()
            .expect("it runs");
        Replayed::from(output)
    }
}

/// How a replay ended, and what it said.
#[derive(Debug)]
struct Replayed {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl From<Output> for Replayed {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }
}

impl Replayed {
    #[track_caller]
    fn fails_with(&self, message: &str) {
        assert_eq!(self.code, Some(2), "{self:?}");
        assert_eq!(self.stderr, format!("observer: {message}\n"));
    }
}

#[test]
fn a_log_is_judged_and_shown() {
    let replayed = Lab::new(&[HEADER, NOISE]).replay(&[]);
    assert_eq!((replayed.code, replayed.stderr.as_str()), (Some(0), ""));
    assert!(
        replayed
            .stdout
            .contains("3 B of text from the server: hi\n"),
        "{replayed:?}"
    );
    assert!(
        replayed.stdout.contains("\nSummary of 1.00 s\n"),
        "{replayed:?}"
    );
}

#[test]
fn findings_reach_the_exit_code_only_when_asked() {
    let lab = Lab::new(&[HEADER, NOISE]);
    assert_eq!(lab.replay(&["--fail-on", "stdout-noise"]).code, Some(1));
    assert_eq!(
        lab.replay(&["--fail-on", "error", "--fail-on", "warning"])
            .code,
        Some(1)
    );
    assert_eq!(lab.replay(&["--fail-on", "abandoned-call"]).code, Some(0));
    assert_eq!(lab.replay(&["--fail-on", "no-such-rule"]).code, Some(2));
}

#[test]
fn a_gap_is_incomplete_evidence() {
    let lab = Lab::new(&[HEADER, GAP]);
    assert_eq!(lab.replay(&[]).code, Some(0));
    assert_eq!(lab.replay(&["--strict"]).code, Some(3));
    assert_eq!(
        lab.replay(&["--strict", "--fail-on", "evidence-gap"]).code,
        Some(1)
    );
}

/// One that the observer wrote ends with its summary; else the observer was killed.
#[test]
fn a_log_without_its_end_is_incomplete_evidence() {
    let lab = Lab::new(&[HEADER, NOISE, MESSAGE]);
    assert_eq!(
        lab.replay(&["--log", "whole.jsonl", "--strict"]).code,
        Some(0)
    );
    let whole = fs::read_to_string(lab.path("whole.jsonl")).expect("it was written");
    lab.write(&whole);
    assert_eq!(lab.replay(&["--strict"]).code, Some(0));
    let end = whole.trim_end().rfind('\n').expect("several lines") + 1;
    lab.write(&whole[..end]);
    let replayed = lab.replay(&["--strict"]);
    assert_eq!(replayed.code, Some(3), "{replayed:?}");
    assert!(
        replayed.stderr.contains("it breaks off after line 4"),
        "{replayed:?}"
    );
    assert!(
        replayed.stdout.contains("evidence  incomplete"),
        "{replayed:?}"
    );
}

/// `observer replay --log new.jsonl FILE | head -1` must write all of it.
#[test]
fn a_reader_that_has_seen_enough_does_not_cut_the_new_log() {
    let lab = Lab::new(&[HEADER]);
    lab.write(&(format!("{HEADER}\n") + &format!("{NOISE}\n").repeat(20_000)));
    let mut child = lab
        .command(&["--log", "new.jsonl", "audit.jsonl"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    let new = fs::read_to_string(lab.path("new.jsonl")).expect("a log");
    let noisy = new.lines().filter(|line| line.contains(r#""noise""#));
    assert_eq!(noisy.count(), 20_000);
    assert!(new.contains(r#""type":"summary""#));
}

/// `observer replay --fail-on error FILE | head -1` must not pass for that.
#[test]
fn a_reader_that_has_seen_enough_does_not_change_the_verdict() {
    let lab = Lab::new(&[HEADER]);
    lab.write(&(format!("{HEADER}\n") + &format!("{NOISE}\n").repeat(20_000)));
    let mut child = lab
        .command(&["--fail-on", "stdout-noise", "audit.jsonl"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("there is one");
    let status = lab.command(&["audit.jsonl"]).stdout(full).status();
    assert_eq!(status.expect("it runs").code(), Some(2));
}

#[test]
fn a_new_log_keeps_what_was_observed() {
    let lab = Lab::new(&[HEADER, NOISE, MESSAGE]);
    assert_eq!(lab.replay(&["--log", "new.jsonl"]).code, Some(0));
    let new = fs::read_to_string(lab.path("new.jsonl")).expect("a log");
    let lines: Vec<_> = new.lines().collect();
    assert!(lines[0].contains(r#""schema":"observer/1""#) && lines[0].contains(r#""settings":{"#));
    assert!(
        lines
            .iter()
            .any(|line| line.contains(r#""type":"finding""#)),
        "{new}"
    );
    let frame = r#","json": { "jsonrpc":"2.0", "method":"\u0078" } }"#;
    assert!(lines.iter().any(|line| line.ends_with(frame)), "{new}");

    // What was derived is derived again, and nothing else changes.
    fs::rename(lab.path("new.jsonl"), lab.path("audit.jsonl")).expect("renamed");
    assert_eq!(lab.replay(&["--log", "again.jsonl"]).code, Some(0));
    assert_eq!(
        fs::read_to_string(lab.path("again.jsonl")).expect("a log"),
        new
    );
}

#[test]
fn under_sudo_a_new_log_belongs_to_the_caller() {
    let lab = Lab::new(&[HEADER, NOISE]);
    let folder = fs::metadata(lab.folder.path()).expect("metadata");
    if folder.uid() != 0 {
        println!("skipped: only root gives files away");
        return;
    }
    let status = lab
        .command(&["--quiet", "--log", "new.jsonl", "audit.jsonl"])
        .env("SUDO_UID", "65534")
        .env("SUDO_GID", "65534")
        .stdout(Stdio::null())
        .status()
        .expect("it runs");
    assert!(status.success());
    let log = fs::metadata(lab.path("new.jsonl")).expect("metadata");
    assert_eq!(
        (log.uid(), log.gid(), log.mode() & 0o777),
        (65534, 65534, 0o600)
    );
}

#[test]
fn a_log_on_stdout_sends_the_lines_to_stderr() {
    let replayed = Lab::new(&[HEADER, NOISE]).replay(&["--log", "-"]);
    assert!(
        replayed
            .stdout
            .lines()
            .all(|line| line.starts_with("{\"type\":\"")),
        "{replayed:?}"
    );
    assert!(replayed.stderr.contains("Summary of"), "{replayed:?}");
}

#[test]
fn a_log_comes_through_a_pipe() {
    let lab = Lab::new(&[]);
    let mut child = lab
        .command(&["-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let text = format!("{HEADER}\n{NOISE}\n");
    child
        .stdin
        .take()
        .expect("stdin")
        .write_all(text.as_bytes())
        .expect("written");
    let replayed = Replayed::from(child.wait_with_output().expect("it ends"));
    assert!(replayed.stdout.contains("Summary of"), "{replayed:?}");
}

#[test]
fn a_log_of_a_newer_version_is_refused() {
    Lab::new(&[r#"{"type":"header","t":0,"schema":"observer/2","new":{}}"#])
        .replay(&[])
        .fails_with(
            "cannot read audit.jsonl: it has the schema \"observer/2\", and this observer knows \
         \"observer/1\"; read it with the observer that wrote it, or a newer one",
        );
}

#[test]
fn what_is_no_log_is_refused() {
    let lab = Lab::new(&["\u{7f}ELF"]);
    lab.replay(&[]).fails_with(
        "cannot read audit.jsonl: it is no audit log: its first line is no header: it is no \
         JSON from column 1 on; give a file that observer wrote with --log",
    );
    lab.write("");
    lab.replay(&[]).fails_with(
        "cannot read audit.jsonl: it is empty; give a file that observer wrote with --log",
    );
    fs::remove_file(lab.path("audit.jsonl")).expect("removed");
    lab.replay(&[]).fails_with(
        "cannot open audit.jsonl: No such file or directory (os error 2); give a log that you may \
         read, or - for stdin",
    );
}

#[test]
fn what_comes_before_a_damaged_line_is_judged() {
    let replayed = Lab::new(&[HEADER, NOISE, r#"{"type":"eof","t":2}"#, NOISE]).replay(&[]);
    replayed.fails_with(
        "cannot read audit.jsonl: line 3 is damaged: missing field `from` at column 20; what comes \
         before it is good: head -n 2 audit.jsonl",
    );
    assert!(
        replayed.stdout.contains("1.000    1  noise "),
        "{replayed:?}"
    );
    assert!(replayed.stdout.contains("Summary of"), "{replayed:?}");
}

#[test]
fn a_line_that_was_not_finished_is_left_out() {
    let lab = Lab::new(&[]);
    lab.write(&format!("{HEADER}\n{NOISE}\n{}", &GAP[..30]));
    let replayed = lab.replay(&[]);
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    assert_eq!(
        replayed.stderr,
        "observer: audit.jsonl: line 3 is cut; the rest is judged\n"
    );
    assert_eq!(lab.replay(&["--strict"]).code, Some(3));
}

#[test]
fn the_log_that_is_read_is_not_written() {
    let lab = Lab::new(&[HEADER, NOISE]);
    let before = fs::read(lab.path("audit.jsonl")).expect("a log");
    lab.replay(&["--log", "./audit.jsonl"])
        .fails_with("--log audit.jsonl is the log that is read; give another file");
    assert_eq!(fs::read(lab.path("audit.jsonl")).expect("a log"), before);
}

#[test]
fn a_log_that_cannot_be_written_says_so() {
    let lab = Lab::new(&[HEADER, NOISE]);
    lab.replay(&["--log", "none/new.jsonl"]).fails_with(
        "cannot create none/new.jsonl: No such file or directory (os error 2); give --log a path \
         that you may write, or - for stdout",
    );
    let full = lab.replay(&["--log", "/dev/full"]);
    full.fails_with(
        "cannot write to /dev/full: No space left on device (os error 28); the log is incomplete",
    );
    assert!(full.stdout.contains("Summary of"), "{full:?}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_fault() {
    let lab = Lab::new(&[HEADER]);
    lab.write(&(format!("{HEADER}\n") + &format!("{NOISE}\n").repeat(20_000)));
    for args in [&["audit.jsonl"][..], &["--log", "-", "audit.jsonl"]] {
        let mut child = lab
            .command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        drop(child.stdout.take());
        let replayed = Replayed::from(child.wait_with_output().expect("it ends"));
        assert_eq!(replayed.code, Some(0), "{replayed:?}");
        assert!(!replayed.stderr.contains("observer:"), "{replayed:?}");
    }
}

#[test]
fn lines_are_plain_unless_colour_is_asked_for() {
    let lab = Lab::new(&[HEADER, NOISE]);
    assert!(!lab.replay(&[]).stdout.contains('\x1b'));
    assert!(lab.replay(&["--color", "always"]).stdout.contains('\x1b'));
    assert!(!lab.replay(&["--color", "never"]).stdout.contains('\x1b'));
}
