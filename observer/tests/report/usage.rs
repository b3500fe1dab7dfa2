//! Files, options and exit codes.

use std::fs;

use crate::lab::{ABANDONS, Lab, end, observer, traces};

fn abandons() -> String {
    let path = traces().join(ABANDONS);
    path.to_str().expect("UTF-8").to_owned()
}

#[test]
fn without_a_policy_the_exit_code_tells_only_of_faults() {
    let lab = Lab::new();
    let bad = abandons();
    let code = |args: &[&str]| lab.observer(&[&["report"], args].concat()).code;
    assert_eq!(code(&[&bad]), Some(0));
    assert_eq!(code(&["--fail-on", "error", &bad]), Some(1));
    assert_eq!(code(&["--fail-on", "stdout-noise", &bad]), Some(0));
    assert_eq!(code(&[&bad, "none.jsonl"]), Some(2));
    let whole = fs::read_to_string(&bad).expect("a trace");
    lab.write("cut.jsonl", &whole[..whole.len() - 20]);
    assert_eq!(code(&["cut.jsonl"]), Some(0));
    assert_eq!(code(&["--strict", "cut.jsonl"]), Some(3));
    lab.write(
        "damaged.jsonl",
        &whole.replacen("\"type\":\"message\"", "\"type\":message", 3),
    );
    assert_eq!(code(&["damaged.jsonl"]), Some(2));
}

#[test]
fn what_cannot_be_written_is_told_before_a_log_is_read() {
    let lab = Lab::new();
    let bad = abandons();
    for (args, part) in [
        (
            &["--format", "html=no/folder.html"][..],
            "cannot create no/folder.html",
        ),
        (&["-f", "html=x", "-f", "csv=x"], "--format csv=x is taken"),
        (&["-f", "html", "-f", "csv=-"], "--format csv=- is taken"),
        (&["-f", "htm=x"], "no such format; did you mean html?"),
    ] {
        let ended = lab.observer(&[&["report"], args, &[&bad, "none.jsonl"]].concat());
        assert_eq!(ended.code, Some(2));
        assert!(ended.stderr.contains(part), "{}", ended.stderr);
        assert!(!ended.stderr.contains("none.jsonl"), "{}", ended.stderr);
    }
    let ended = lab.observer(&["report", "-f", "csv=/dev/full", &bad]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
}

#[test]
fn a_log_is_not_overwritten_by_its_own_report() {
    let lab = Lab::new();
    let whole = fs::read_to_string(abandons()).expect("a trace");
    lab.write("a.jsonl", &whole);
    let ended = lab.observer(&["report", "-f", "text=./a.jsonl", "a.jsonl"]);
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.stderr.contains("is a log that is read"),
        "{}",
        ended.stderr
    );
    assert_eq!(lab.read("a.jsonl"), whole);
}

#[test]
fn a_workflow_gets_annotations_and_its_steps_summary() {
    let lab = Lab::new();
    lab.write("summary.md", "before\n");
    let mut command = observer(&["report", "--format", "github", &abandons()]);
    command
        .current_dir(lab.0.path())
        .env("GITHUB_STEP_SUMMARY", "summary.md");
    let ended = end(&mut command);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(
        ended
            .stdout
            .starts_with("::error title=abandoned-call #2 (confirmed)::the host ")
    );
    assert_eq!(ended.stdout.lines().count(), 3);
    let summary = lab.read("summary.md");
    assert!(
        summary.starts_with("before\n## MCP calls: denied\n"),
        "{summary}"
    );
}

#[test]
fn a_reader_that_has_seen_enough_ends_it_quietly() {
    let lab = Lab::new();
    let script = format!(
        "{} report -f csv {} | true; exit ${{PIPESTATUS[0]}}",
        env!("CARGO_BIN_EXE_observer"),
        abandons()
    );
    let mut command = std::process::Command::new("bash");
    let ended = end(command.args(["-c", &script]).current_dir(lab.0.path()));
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
}
