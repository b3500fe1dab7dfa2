//! `observer diff` as a user meets it: exit codes, text and JSON.
#![expect(
    clippy::expect_used,
    reason = "a test fails by panicking, in its helpers too"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn trace(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces/made");
    let path: PathBuf = path.join(format!("{name}.jsonl"));
    path.to_str().expect("UTF-8").to_owned()
}

/// Exit code and stdout.
fn diff(args: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_observer"))
        .arg("diff")
        .args(args)
        .output()
        .expect("it runs");
    let stdout = String::from_utf8(output.stdout).expect("UTF-8");
    (output.status.code(), stdout)
}

#[test]
fn a_host_that_began_to_abandon_calls_is_worse() {
    let (old, new) = (trace("codex-0.171-retry"), trace("codex-0.163-retry"));
    let (code, text) = diff(&[&old, &new]);
    assert_eq!(code, Some(1), "{text}");
    let line = text.lines().find(|line| line.contains("abandoned-call"));
    assert!(
        line.is_some_and(|line| line.starts_with("! started")),
        "{text}"
    );
    assert!(text.contains("codex-mcp-client 0.163.0"), "{text}");
    // The other way round it has mended its ways.
    let abandoned = ["--rule", "abandoned-call"];
    let (code, text) = diff(&[&abandoned[..], &[&new, &old]].concat());
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("  stopped  abandoned-call  tools/call slow  2 of 3 -> 0 of 3"),
        "{text}"
    );
    assert!(text.ends_with("not worse\n"), "{text}");
    // Only now it shows that the server does not listen.
    let (code, text) = diff(&[&new, &old]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("! started  cancel-ignored "), "{text}");
    let (code, text) = diff(&[&new, &new]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("no change; "), "{text}");
    assert_eq!(diff(&["-q", &old, &new]), (Some(1), String::new()));
}

#[test]
fn the_same_as_json() {
    let (code, text) = diff(&[
        "--json",
        &trace("codex-0.171-retry"),
        &trace("codex-0.163-retry"),
    ]);
    assert_eq!(code, Some(1));
    let json: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["worse"], true);
    assert_eq!(json["new"]["hosts"][0], "codex-mcp-client 0.163.0");
    let changes = json["changes"].as_array().expect("an array");
    let started = changes
        .iter()
        .find(|change| change["rule"] == "abandoned-call");
    let started = started.expect("a change");
    assert_eq!(started["change"], "started");
    assert_eq!(started["name"], "slow");
    assert_eq!(started["old"]["findings"], 0);
}

#[test]
fn without_traffic_there_is_nothing_to_compare() {
    let folder = tempfile::tempdir().expect("a folder");
    let silent = folder.path().join("silent.jsonl");
    let header = "{\"type\":\"header\",\"t\":0,\"schema\":\"observer/1\"}\n";
    std::fs::write(&silent, header).expect("written");
    let silent = silent.to_str().expect("UTF-8");
    assert_eq!(diff(&[silent, &trace("codex-0.163-retry")]).0, Some(3));
    assert_eq!(diff(&["/nowhere", silent]).0, Some(2));
}

#[test]
fn a_log_that_breaks_off_is_no_better() {
    let folder = tempfile::tempdir().expect("a folder");
    let cut = folder.path().join("cut.jsonl");
    let whole = std::fs::read(trace("codex-0.163-retry")).expect("read");
    std::fs::write(&cut, &whole[..2000]).expect("written");
    let cut = cut.to_str().expect("UTF-8");
    assert_eq!(diff(&[&trace("codex-0.163-retry"), cut]).0, Some(3));
}
