//! `observer verify` as a user meets it, on logs that the observer wrote, was killed over, or
//! that somebody altered.
#![expect(
    clippy::expect_used,
    reason = "a test fails by panicking, in its helpers too"
)]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

/// A folder to be in.
struct Lab(TempDir);

impl Lab {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_observer"));
        command.args(args).current_dir(self.0.path());
        command
    }

    /// Exit code, stdout, stderr.
    fn observer(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let output = self.command(args).output().expect("it runs");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    }

    /// Writes a log with seals, as any observation does.
    fn write_log(&self, name: &str) {
        let (code, ..) = self.observer(&["replay", "--quiet", "--log", name, &trace()]);
        assert_eq!(code, Some(0));
    }
}

fn trace() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces/made");
    let path = path.join("codex-0.163-retry.jsonl");
    path.to_str().expect("UTF-8").to_owned()
}

#[test]
fn a_log_is_whole_cut_or_altered() {
    let lab = Lab::new();
    lab.write_log("audit.jsonl");
    let log = fs::read_to_string(lab.path("audit.jsonl")).expect("text");
    let (code, stdout, stderr) = lab.observer(&["verify", "audit.jsonl"]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(stdout.starts_with("audit.jsonl: whole: "), "{stdout}");

    fs::write(lab.path("cut.jsonl"), &log[..log.len() - 9]).expect("written");
    let (code, stdout, _) = lab.observer(&["verify", "cut.jsonl"]);
    assert_eq!(code, Some(3));
    assert!(
        stdout.contains("cut: it breaks off in the middle of line"),
        "{stdout}"
    );

    let altered = log.replacen("\"from\":\"client\"", "\"from\":\"server\"", 1);
    fs::write(lab.path("altered.jsonl"), altered).expect("written");
    let (code, stdout, _) = lab.observer(&["verify", "altered.jsonl", "cut.jsonl"]);
    assert_eq!(code, Some(1));
    assert!(stdout.contains("altered: lines 1 to "), "{stdout}");
    let (code, stdout, _) = lab.observer(&["verify", "-q", "altered.jsonl"]);
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
}

#[test]
fn what_is_no_log_or_has_no_seal_is_told_so() {
    let lab = Lab::new();
    fs::write(lab.path("other"), "hello\n").expect("written");
    let (code, _, stderr) = lab.observer(&["verify", "other"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("it is no audit log"), "{stderr}");
    let header = "{\"type\":\"header\",\"t\":0,\"schema\":\"observer/1\"}\n";
    fs::write(lab.path("old.jsonl"), header).expect("written");
    let (code, stdout, _) = lab.observer(&["verify", "old.jsonl"]);
    assert_eq!(code, Some(3));
    assert!(stdout.starts_with("old.jsonl: not sealed"), "{stdout}");
    let (code, ..) = lab.observer(&["verify", "nowhere"]);
    assert_eq!(code, Some(2));
}

/// An observer that is killed while it writes leaves a log that is good up to its last line.
#[test]
fn a_killed_observer_leaves_a_log_that_verifies() {
    let lab = Lab::new();
    let line = r#"{"type":"noise","t":1,"from":"server","bytes":3,"kind":"text","text":"hi"}"#;
    let block = format!("{line}\n").repeat(500);
    for round in 0..12 {
        let name = format!("killed-{round}.jsonl");
        let mut observer = lab
            .command(&["replay", "--quiet", "--log", &name, "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("it runs");
        let mut stdin = observer.stdin.take().expect("piped");
        let block = block.clone();
        let feeding = thread::spawn(move || {
            let header = "{\"type\":\"header\",\"t\":0,\"schema\":\"observer/1\"}\n";
            let mut fed = stdin.write_all(header.as_bytes());
            while fed.is_ok() {
                fed = stdin.write_all(block.as_bytes());
            }
        });
        let path = lab.path(&name);
        // Not before it has begun.
        while fs::metadata(&path).map_or(0, |file| file.len()) < 10_000 {
            thread::sleep(Duration::from_millis(2));
        }
        thread::sleep(Duration::from_millis(round * 7));
        observer.kill().expect("killed");
        observer.wait().expect("waited for");
        feeding.join().expect("fed");
        let (code, stdout, stderr) = lab.observer(&["verify", &name]);
        assert_eq!((code, stderr.as_str()), (Some(3), ""), "{stdout}");
        assert!(stdout.contains(": cut: it breaks off"), "{stdout}");
        // What is there is judged.
        let (code, ..) = lab.observer(&["replay", "--quiet", &name]);
        assert_eq!(code, Some(0));
    }
}
