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
fn a_log_that_is_none_is_told_in_clear_words() {
    let lab = Lab::new();
    let header = "{\"type\":\"header\",\"t\":0,\"schema\":\"observer/1\"}\n";
    lab.write("newer.jsonl", &header.replace("observer/1", "observer/2"));
    lab.write("other.jsonl", "{\"name\":\"strace\"}\n");
    lab.write("binary", "\u{7f}ELF\0\0\n");
    lab.write("empty.jsonl", "");
    lab.write("twice.jsonl", &header.repeat(2));
    for command in ["check", "report"] {
        for (file, part) in [
            (
                "newer.jsonl",
                "it has the schema \"observer/2\", and this observer knows",
            ),
            ("other.jsonl", "it is no audit log"),
            ("binary", "it is no audit log"),
            ("empty.jsonl", "it is empty"),
            ("twice.jsonl", "line 2 begins another log"),
            (".", "Is a directory"),
        ] {
            let ended = lab.observer(&[command, file]);
            assert_eq!(ended.code, Some(2), "{command} {file}: {}", ended.stderr);
            assert!(
                ended.stderr.contains(part),
                "{command} {file}: {}",
                ended.stderr
            );
            assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        }
    }
}

#[test]
fn more_than_a_report_keeps_is_counted() {
    let lab = Lab::new();
    let mut log = String::from("{\"type\":\"header\",\"t\":0,\"schema\":\"observer/1\"}\n");
    for id in 0..12_000 {
        for (from, rest) in [
            (
                "client",
                "\"method\":\"tools/call\",\"params\":{\"name\":\"x\"}",
            ),
            ("server", "\"result\":{}"),
        ] {
            log += &format!(
                "{{\"type\":\"message\",\"t\":{id},\"from\":\"{from}\",\"bytes\":1,\
                 \"json\":{{\"jsonrpc\":\"2.0\",\"id\":{id},{rest}}}}}\n"
            );
        }
    }
    lab.write("long.jsonl", &log);
    let args = ["-f", "csv=calls.csv", "-f", "html=page.html", "long.jsonl"];
    let ended = lab.observer(&[&["report"], &args[..]].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(lab.read("calls.csv").lines().count(), 12_001);
    let page = lab.read("page.html");
    assert!(page.contains("12000: 12000 answered"));
    // 10,000 are kept, and 2,000 of them shown.
    assert!(page.contains("and 10000 more"));
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

/// The line that a result and each step of its evidence point to is the one that has it.
#[test]
fn sarif_points_to_the_evidence() {
    let ended = end(observer(&["report", "--format", "sarif", ABANDONS]).current_dir(traces()));
    let log = fs::read_to_string(traces().join(ABANDONS)).expect("a trace");
    let lines: Vec<&str> = log.lines().collect();
    let document: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let results = document["runs"][0]["results"].as_array().expect("results");
    let line = |location: &serde_json::Value| {
        let line = location["physicalLocation"]["region"]["startLine"].as_u64();
        usize::try_from(line.expect("a line")).expect("small")
    };
    assert!(!results.is_empty());
    for result in results {
        let steps = result["codeFlows"][0]["threadFlows"][0]["locations"].as_array();
        let steps = steps.expect("evidence");
        assert_eq!(line(&result["locations"][0]), line(&steps[0]["location"]));
        for step in steps {
            let said = step["location"]["message"]["text"].as_str().expect("text");
            let time: f64 = said
                .split(' ')
                .next()
                .and_then(|time| time.parse().ok())
                .expect("a time");
            let record: serde_json::Value =
                serde_json::from_str(lines[line(&step["location"]) - 1]).expect("a record");
            let at = record["t"].as_f64().expect("a time");
            assert!((at - time).abs() < 0.001, "{said}: {record}");
        }
    }
}
