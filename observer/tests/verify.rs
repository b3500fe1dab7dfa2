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
        command
            .args(args)
            .current_dir(self.0.path())
            .env_remove("CI");
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
    fs::write(lab.path("empty"), "").expect("written");
    let (code, _, stderr) = lab.observer(&["verify", "empty"]);
    assert_eq!(code, Some(2));
    assert!(
        stderr.contains("cannot read empty: it is empty"),
        "{stderr}"
    );
    let header = "{\"type\":\"header\",\"t\":0,\"schema\":\"observer/1\"}\n";
    fs::write(lab.path("old.jsonl"), header).expect("written");
    let (code, stdout, _) = lab.observer(&["verify", "old.jsonl"]);
    assert_eq!(code, Some(3));
    assert!(stdout.starts_with("old.jsonl: not sealed"), "{stdout}");
    let (code, ..) = lab.observer(&["verify", "nowhere"]);
    assert_eq!(code, Some(2));
}

/// A log of many lines, from another.
fn long_log(lab: &Lab, name: &str, options: &[&str]) -> String {
    let line = r#"{"type":"noise","t":1,"from":"server","bytes":3,"kind":"text","text":"hi"}"#;
    let header = r#"{"type":"header","t":0,"schema":"observer/1"}"#;
    fs::write(
        lab.path("long.jsonl"),
        format!("{header}\n{}", format!("{line}\n").repeat(1_000)),
    )
    .expect("written");
    let (code, stdout, stderr) =
        lab.observer(&[&["replay", "--log", name], options, &["long.jsonl"]].concat());
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    stdout
}

#[test]
fn a_log_in_several_parts_is_one_log() {
    for name in ["audit.jsonl", "audit.jsonl.zst"] {
        let lab = Lab::new();
        let expected = long_log(&lab, name, &["--rotate", "16KiB"]);
        let second = name.replacen('.', ".2.", 1);
        assert!(lab.path(&second).exists() || name.ends_with("zst"));
        let (code, stdout, stderr) = lab.observer(&["replay", name]);
        assert_eq!((code, stderr.as_str()), (Some(0), ""));
        assert_eq!(stdout, expected);
        let (code, stdout, stderr) = lab.observer(&["verify", name]);
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
        assert!(stdout.contains("whole: "), "{stdout}");
    }
}

#[test]
fn parts_are_followed_and_held_to_each_other() {
    let lab = Lab::new();
    long_log(&lab, "audit.jsonl", &["--rotate", "16KiB"]);
    let size = |name: &str| fs::metadata(lab.path(name)).expect("a file").len();
    assert!((16 << 10..17 << 10).contains(&size("audit.jsonl")));
    let (_, stdout, _) = lab.observer(&["verify", "audit.2.jsonl", "audit.jsonl"]);
    assert!(
        stdout.starts_with("audit.2.jsonl: part 2, whole so far: "),
        "{stdout}"
    );
    let parts = stdout.lines().count();
    assert!(
        parts > 3
            && stdout
                .lines()
                .filter(|line| line.contains(": whole"))
                .count()
                == 1
    );
    // A pattern names all parts; each is judged once.
    let (code, stdout, stderr) = lab.observer(&["check", "audit.2.jsonl", "audit.jsonl"]);
    assert_eq!((code, stderr.as_str()), (Some(3), ""), "{stdout}");
    for part in ["check", "replay"] {
        let (code, _, stderr) = lab.observer(&[part, "audit.2.jsonl"]);
        assert_eq!(code, Some(2));
        assert!(
            stderr.contains("it is part 2 of a log; give the first part"),
            "{stderr}"
        );
    }
    // The wrong one comes next.
    fs::copy(lab.path("audit.3.jsonl"), lab.path("audit.2.jsonl")).expect("copied");
    let (code, stdout, _) = lab.observer(&["verify", "audit.jsonl"]);
    assert_eq!(code, Some(1));
    assert!(
        stdout.contains("altered: it is not the part that follows"),
        "{stdout}"
    );
    let (code, ..) = lab.observer(&["replay", "--quiet", "audit.jsonl"]);
    assert_eq!(code, Some(2));
    // None does.
    fs::remove_file(lab.path("audit.2.jsonl")).expect("removed");
    let (code, stdout, _) = lab.observer(&["verify", "audit.jsonl"]);
    assert_eq!(code, Some(3));
    assert!(
        stdout.contains("it goes on in audit.2.jsonl, which is not there"),
        "{stdout}"
    );
    let (code, _, stderr) = lab.observer(&["replay", "--quiet", "--strict", "audit.jsonl"]);
    assert_eq!(code, Some(3));
    assert!(
        stderr.contains("which is not there; the rest is judged"),
        "{stderr}"
    );
}

#[test]
fn a_compressed_log_is_read_up_to_where_it_is_cut() {
    let lab = Lab::new();
    long_log(&lab, "audit.jsonl.zst", &[]);
    let log = fs::read(lab.path("audit.jsonl.zst")).expect("a file");
    assert_eq!(log[..4], [0x28, 0xB5, 0x2F, 0xFD]);
    let plain = fs::metadata(lab.path("long.jsonl")).expect("a file").len();
    assert!((log.len() as u64) < plain / 10);
    for length in [log.len() - 1, log.len() / 2, 20] {
        fs::write(lab.path("cut.zst"), &log[..length]).expect("written");
        let (code, stdout, _) = lab.observer(&["verify", "cut.zst"]);
        let empty = code == Some(2) && stdout.is_empty();
        assert!(code == Some(3) || code == Some(0) && length == log.len() - 1 || empty);
    }
    let mut broken = log.clone();
    broken[log.len() / 2] ^= 0x55;
    fs::write(lab.path("broken.zst"), &broken).expect("written");
    let (code, ..) = lab.observer(&["verify", "broken.zst"]);
    assert!(matches!(code, Some(1 | 2)), "{code:?}");
    // The decoder itself gives up: nothing that it says reaches the user.
    let garbage = [&log[..], &[0x55; 64]].concat();
    fs::write(lab.path("broken.zst"), garbage).expect("written");
    for command in ["verify", "check"] {
        let (code, _, stderr) = lab.observer(&[command, "broken.zst"]);
        let expected = "observer: cannot read broken.zst: it is damaged: it cannot be decompressed \
                        beyond line ";
        assert_eq!(code, Some(2));
        assert!(stderr.contains(expected), "{stderr}");
        assert!(stderr.contains("zstdcat broken.zst | head -n "), "{stderr}");
    }
}

#[test]
fn rotating_needs_a_file() {
    let lab = Lab::new();
    let usage = |args: &[&str]| lab.observer(&[&["replay"], args, &[&trace()]].concat());
    for args in [&["--rotate", "1MB"][..], &["--log", "x", "--rotate", "9"]] {
        assert_eq!(usage(args).0, Some(2));
    }
}

/// An observer that is killed while it writes leaves a log that is good up to its last line.
#[test]
fn a_killed_observer_leaves_a_log_that_verifies() {
    let lab = Lab::new();
    let line = r#"{"type":"noise","t":1,"from":"server","bytes":3,"kind":"text","text":"hi"}"#;
    let block = format!("{line}\n").repeat(500);
    for round in 0..12 {
        let ending = if round % 3 == 2 { ".zst" } else { "" };
        let name = format!("killed-{round}.jsonl{ending}");
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
