//! `observer check` and `observer policy` as a user meets them: exit codes, messages, files.
#![expect(
    clippy::expect_used,
    reason = "a test fails by panicking, in its helpers too"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

const SILENT: &str = "{\"type\":\"header\",\"t\":0,\"schema\":\"observer/1\"}\n";

/// A folder to be in.
struct Lab(TempDir);

impl Lab {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn write(&self, name: &str, text: &str) -> &Self {
        fs::write(self.0.path().join(name), text).expect("written");
        self
    }

    /// Exit code, stdout, stderr.
    fn observer(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_observer"))
            .args(args)
            .current_dir(self.0.path())
            .env_remove("CI")
            .output()
            .expect("it runs");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    }

    fn code(&self, args: &[&str]) -> Option<i32> {
        self.observer(args).0
    }
}

fn trace(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces/made");
    let path: PathBuf = path.join(format!("{name}.jsonl"));
    path.to_str().expect("UTF-8").to_owned()
}

#[test]
fn without_a_policy_errors_are_denied_and_silence_is_no_success() {
    let lab = Lab::new();
    lab.write("silent.jsonl", SILENT);
    let bad = trace("codex-0.163-retry");
    let (code, stdout, stderr) = lab.observer(&["check", &bad]);
    assert_eq!((code, stderr.as_str()), (Some(1), ""));
    assert!(stdout.contains("retry.jsonl: denied\n"), "{stdout}");
    assert!(
        stdout.contains("deny     abandoned-call #2 (confirmed)"),
        "{stdout}"
    );
    let (code, stdout, _) = lab.observer(&["check", "silent.jsonl"]);
    assert_eq!(code, Some(3));
    assert!(
        stdout.contains("missing  no MCP message was seen"),
        "{stdout}"
    );
    // What was found weighs more than what is missing.
    assert_eq!(lab.code(&["check", &bad, "silent.jsonl"]), Some(1));
    assert_eq!(
        lab.code(&["check", "silent.jsonl", "none.jsonl", &bad]),
        Some(2)
    );
    // An explicit --fail-on is all that counts then.
    assert_eq!(
        lab.code(&["check", "--fail-on", "info", "silent.jsonl"]),
        Some(0)
    );
    // With --strict, silence is no success either, wherever it is said.
    for command in [
        &["check", "--fail-on", "info"][..],
        &["report", "--fail-on", "info"],
        &["replay"],
        &["replay", "--quiet"],
    ] {
        let strict = lab.observer(&[command, &["--strict", "silent.jsonl"]].concat());
        assert_eq!(strict.0, Some(3));
        let told = format!("{}{}", strict.1, strict.2);
        assert!(told.contains("no MCP message was seen"), "{told}");
        assert_eq!(
            lab.code(&[command, &["silent.jsonl"]].concat()),
            Some(0),
            "{command:?}"
        );
    }
}

#[test]
fn a_policy_says_what_counts() {
    let lab = Lab::new();
    let bad = trace("codex-0.163-retry");
    let check = |policy: &str| {
        lab.write("p.toml", policy);
        lab.code(&["check", "-q", "--policy", "p.toml", &bad])
    };
    assert_eq!(check(""), Some(1));
    assert_eq!(check("[severity]\nerror = \"warn\""), Some(0));
    assert_eq!(
        check("[[allow]]\nhost = \"codex*\"\ntool = \"slow\""),
        Some(0)
    );
    assert_eq!(check("[[allow]]\nhost = \"claude*\""), Some(1));
    let lenient = "[severity]\nerror = \"allow\"\n[limits]\n";
    assert_eq!(check(&format!("{lenient}wasted = \"1s\"")), Some(1));
    assert_eq!(check(&format!("{lenient}wasted = \"5s\"")), Some(0));
    assert_eq!(check(&format!("{lenient}pending = \"1s\"")), Some(1));
    assert_eq!(check(&format!("{lenient}servers = [\"lab\"]")), Some(0));
    assert_eq!(check(&format!("{lenient}servers = [\"web\"]")), Some(1));
}

#[test]
fn a_replay_tells_what_a_policy_objects_to() {
    let lab = Lab::new();
    lab.write("p.toml", "[rules.torn-down-pending]\nlevel = \"deny\"\n");
    let bad = trace("codex-0.163-retry");
    let (code, stdout, _) = lab.observer(&["replay", "-q", "--policy", "p.toml", &bad]);
    assert_eq!(code, Some(1));
    assert!(
        stdout.contains("\nPolicy: 3 denied, 0 warnings, 0 missing\n"),
        "{stdout}"
    );
    assert!(!lab.observer(&["replay", "-q", &bad]).1.contains("Policy"));
}

#[test]
fn a_policy_is_written_once_and_is_well_formed() {
    let lab = Lab::new();
    assert_eq!(lab.code(&["policy", "init"]), Some(0));
    let (code, stdout, _) = lab.observer(&["policy", "check"]);
    assert_eq!(
        (code, stdout.as_str()),
        (Some(0), "observer.toml: well-formed\n")
    );
    let (code, _, stderr) = lab.observer(&["policy", "init"]);
    assert_eq!(code, Some(2));
    assert_eq!(
        stderr,
        "observer: cannot create observer.toml: File exists (os error 17); give a new file, or - \
         for stdout\n"
    );
}

#[test]
fn a_mistake_in_a_policy_is_named_before_any_log_is_read() {
    let lab = Lab::new();
    lab.write("p.toml", "[limits]\npendign = 3\n");
    let expected = "observer: p.toml is no policy: line 2: unknown field `pendign`; did you mean \
                    `pending`?; observer policy init shows one\n";
    for (args, code) in [
        (&["policy", "check", "p.toml"][..], 2),
        (&["check", "--policy", "p.toml", "none.jsonl"], 2),
    ] {
        let (ended, _, stderr) = lab.observer(args);
        assert_eq!((ended, stderr.as_str()), (Some(code), expected));
    }
}

#[test]
fn a_cut_log_is_judged_and_with_strict_not_shown() {
    let lab = Lab::new();
    let whole = fs::read_to_string(trace("codex-0.163-retry")).expect("a trace");
    let cut = &whole[..whole.len() - 20];
    lab.write("cut.jsonl", cut);
    let args = ["check", "--fail-on", "server-died", "cut.jsonl"];
    let (code, _, stderr) = lab.observer(&args);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("is cut; the rest is judged"), "{stderr}");
    let (code, stdout, _) = lab.observer(&[&args[..3], &["--strict", "cut.jsonl"]].concat());
    assert_eq!(code, Some(3));
    assert!(
        stdout.contains("not shown: the evidence is incomplete"),
        "{stdout}"
    );
}

/// A sealed log of a host that abandons nothing; its name.
fn sealed(lab: &Lab, name: &str) -> String {
    let clean = trace("codex-0.171-retry");
    let (code, _, stderr) = lab.observer(&["replay", "-q", "--log", name, &clean]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    fs::read_to_string(lab.0.path().join(name)).expect("text")
}

#[test]
fn an_altered_log_is_no_evidence() {
    let lab = Lab::new();
    let log = sealed(&lab, "audit.jsonl");
    let (code, _, stderr) = lab.observer(&["check", "--strict", "audit.jsonl"]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let last = log.trim_end().rfind('\n').expect("lines") + 1;
    for altered in [
        // A word in it, a line too few, a line too many.
        log.replacen("\"bytes\":1", "\"bytes\":2", 1),
        log.lines()
            .enumerate()
            .filter(|(place, _)| *place != 3)
            .map(|(_, line)| format!("{line}\n"))
            .collect(),
        format!("{log}{{\"type\":\"eof\",\"t\":9,\"from\":\"client\"}}\n"),
        // A summary of another log.
        log[last..].replacen("\"lines\":", "\"lines\":1", 1),
    ]
    .map(
        |text: String| match text.starts_with("{\"type\":\"summary") {
            true => format!("{}{text}", &log[..last]),
            false => text,
        },
    ) {
        lab.write("altered.jsonl", &altered);
        let (code, stdout, stderr) = lab.observer(&["check", "altered.jsonl"]);
        assert_eq!(code, Some(2), "{stdout}{stderr}");
        assert!(
            stdout.contains("altered.jsonl: not shown: the log was altered\n"),
            "{stdout}"
        );
        assert!(
            stderr.starts_with("observer: altered.jsonl was altered: line"),
            "{stderr}"
        );
        assert_eq!(lab.code(&["verify", "-q", "altered.jsonl"]), Some(1));
        for other in [&["report"][..], &["replay", "-q"], &["diff", "audit.jsonl"]] {
            let (code, _, stderr) = lab.observer(&[other, &["altered.jsonl"]].concat());
            assert_eq!(code, Some(2), "{stderr}");
            assert_eq!(stderr.matches("was altered: line").count(), 1, "{stderr}");
        }
    }
}

#[test]
fn a_log_whose_seals_were_taken_away_is_told_so() {
    let lab = Lab::new();
    let log = sealed(&lab, "audit.jsonl");
    let (rest, seal) = log.rsplit_once(",\"chain\":").expect("a seal");
    assert!(seal.ends_with("}}\n"));
    lab.write("bare.jsonl", &format!("{rest}}}\n"));
    let (code, _, stderr) = lab.observer(&["check", "bare.jsonl"]);
    assert_eq!(
        (code, stderr.as_str()),
        (
            Some(0),
            "observer: bare.jsonl: it is not sealed: whether it was altered cannot be told\n"
        )
    );
    assert_eq!(lab.code(&["check", "--strict", "bare.jsonl"]), Some(3));
    assert_eq!(lab.code(&["verify", "-q", "bare.jsonl"]), Some(3));
}

#[test]
fn an_altered_part_of_a_log_is_named() {
    for ending in ["", ".zst"] {
        let lab = Lab::new();
        let log = format!("audit.jsonl{ending}");
        let line =
            "{\"type\":\"noise\",\"t\":1,\"from\":\"server\",\"bytes\":3,\"kind\":\"text\"}\n";
        lab.write("long.jsonl", &format!("{SILENT}{}", line.repeat(1_000)));
        let args = [
            "replay",
            "-q",
            "--rotate",
            "16KiB",
            "--log",
            &log,
            "long.jsonl",
        ];
        assert_eq!(lab.code(&args), Some(0));
        let (code, _, stderr) = lab.observer(&["check", "--fail-on", "error", &log]);
        assert_eq!((code, stderr.as_str()), (Some(0), ""));
        if !ending.is_empty() {
            continue;
        }
        let part = lab.0.path().join("audit.2.jsonl");
        let text = fs::read_to_string(&part).expect("text");
        fs::write(&part, text.replacen("\"bytes\":3", "\"bytes\":4", 1)).expect("written");
        let (code, _, stderr) = lab.observer(&["check", "--fail-on", "error", &log]);
        assert_eq!(code, Some(2));
        assert!(
            stderr.starts_with("observer: audit.2.jsonl was altered: lines 1 to "),
            "{stderr}"
        );
    }
}
