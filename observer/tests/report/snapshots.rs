//! What each format says of a recorded run, word for word.
//!
//! After a change: `INSTA_UPDATE=always cargo test -p observer --test report`, then read the diff.

use crate::lab::{ABANDONS, end, observer, traces};

/// The report of `logs` in a format, from the traces' folder.
fn report(format: &str, logs: &[&str]) -> String {
    let args = [&["report", "--format", format], logs].concat();
    let ended = end(observer(&args).current_dir(traces()));
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    ended.stdout.replace(env!("CARGO_PKG_VERSION"), "VERSION")
}

#[test]
fn every_format_says_what_happened() {
    for format in [
        "text", "markdown", "junit", "sarif", "html", "csv", "perfetto", "json", "github",
    ] {
        insta::assert_snapshot!(format, report(format, &[ABANDONS]));
    }
}

#[test]
fn several_logs_are_told_apart() {
    let logs = [ABANDONS, "hosts/claude-code-esc.jsonl"];
    for format in ["text", "markdown", "csv"] {
        insta::assert_snapshot!(format!("two-{format}"), report(format, &logs));
    }
}
