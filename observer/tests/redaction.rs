//! Every trace of real traffic gets the same verdicts without its payload, live and replayed; and
//! what the options of the command line hide.
#![expect(
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test reads its files, and fails by panicking"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use observer::capture::Timestamp;
use observer::pipeline::{Output, Pipeline};
use observer::record::{Payload, Record, parse_line};
use observer::redact::{Key, Plan, Redactor};
use observer::session::Observed;
use observer::{session, verdict};

fn traces() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces");
    let inside = |name| fs::read_dir(folder.join(name)).expect("a folder");
    let entries = inside("hosts").chain(inside("made"));
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .collect()
}

fn read(text: &str) -> Vec<Observed> {
    let records = text.lines().map(|line| parse_line(line.as_bytes()));
    records
        .filter_map(|record| record.expect("a record")?.into_observed())
        .collect()
}

/// What the pipeline makes of it: the lines of the new log.
fn judged(events: &[Observed], redactor: Option<Redactor>) -> Vec<Record> {
    let mut pipeline = Pipeline::new(session::Settings::default(), verdict::Settings::default())
        .redacting(redactor);
    let mut last = Timestamp::ZERO;
    for event in events {
        last = last.max(event.at);
        pipeline.handle_observed(event.clone());
    }
    pipeline.finish(last);
    let outputs = std::iter::from_fn(|| pipeline.poll_output());
    let records = outputs.filter_map(|output| match &output {
        Output::Observed(observed) => Some(Record::from(observed)),
        Output::Derived(derived) => Some(Record::from(derived)),
        Output::GiveUp(_) | Output::Forget(_) => None,
    });
    records.collect()
}

/// What was concluded, without the words.
fn conclusions(records: &[Record]) -> Vec<String> {
    let one = |record: &Record| match record {
        Record::Call(call) => Some(format!(
            "{:?} {} {:?}",
            call.id,
            call.t.as_nanos(),
            call.outcome
        )),
        Record::Finding(finding) => Some(format!(
            "{} {:?} {:?} {:?} {:?} {:?}",
            finding.rule,
            finding.id,
            finding.t,
            finding.severity,
            finding.confidence,
            finding
                .evidence
                .iter()
                .map(|one| (&one.kind, one.t))
                .collect::<Vec<_>>()
        )),
        Record::Summary(summary) => Some(format!("{:?} {:?}", summary.calls, summary.findings)),
        _ => None,
    };
    records.iter().filter_map(one).collect()
}

fn redactor(payload: Payload) -> Redactor {
    let plan = Plan {
        payload,
        ..Plan::default()
    };
    Redactor::new(plan, Key::new([1; 32]))
}

#[test]
fn no_verdict_changes_without_the_payload() {
    let mut hidden = 0;
    for trace in traces() {
        let events = read(&fs::read_to_string(&trace).expect("a trace"));
        let full = judged(&events, None);
        for payload in [Payload::Full, Payload::Redacted, Payload::None] {
            let redacted = judged(&events, Some(redactor(payload)));
            let name = trace.display();
            assert_eq!(
                conclusions(&full),
                conclusions(&redacted),
                "{name} {payload:?}"
            );
            // And so does its replay, word for word.
            let mut log = Vec::new();
            redacted
                .iter()
                .for_each(|record| record.write_line(&mut log));
            let log = String::from_utf8(log).expect("UTF-8");
            assert_eq!(judged(&read(&log), None), redacted, "{name} {payload:?}");
            hidden += log.matches("\"sha256\"").count();
        }
    }
    assert!(hidden > 1_000);
}

const LOG: &str = r#"{"type":"header","t":0,"schema":"observer/1","scope":{"kind":"run","command":["host","--token","hunter2","hello"]}}
{"type":"process","t":0,"pid":10,"exe":"/bin/host","argv":["host","--token","hunter2","hello"],"event":"seen"}
{"type":"message","t":1,"from":"client","bytes":9,"json":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"api_key":"hunter2","text":"hello","note":"world"}}}}
{"type":"noise","t":2,"from":"server","bytes":9,"kind":"text","text":"hello PASSWORD=hunter2"}
"#;

/// The new log that `observer replay` writes, and what it prints.
fn replay(options: &[&str], ci: Option<&str>) -> (String, String) {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("audit.jsonl"), LOG).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_observer"));
    command
        .args(["replay", "-v", "--log", "new.jsonl", "audit.jsonl"])
        .args(options)
        .current_dir(folder.path())
        .env_remove("CI");
    if let Some(ci) = ci {
        command.env("CI", ci);
    }
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    let log = fs::read_to_string(folder.path().join("new.jsonl")).expect("a log");
    (log, String::from_utf8(output.stdout).expect("UTF-8"))
}

#[test]
fn the_options_say_what_is_hidden() {
    let (log, lines) = replay(&[], None);
    assert!(
        !log.contains("hunter2") && log.contains("hello") && log.contains("world"),
        "{log}"
    );
    assert!(!lines.contains("hunter2"), "{lines}");
    let (log, _) = replay(&["--show-secrets"], None);
    // In the scope, the process, the message, the noise, and the finding about it.
    assert_eq!(log.matches("hunter2").count(), 5);
    let (log, _) = replay(&["--redact-key", "NOTE"], None);
    assert!(!log.contains("world") && log.contains("hello"));
    for (options, ci, payload) in [
        (&[][..], Some("true"), "redacted"),
        (&["--payload", "redacted"], None, "redacted"),
        (&["--payload", "none"], None, "none"),
    ] {
        let (log, lines) = replay(options, ci);
        assert!(log.contains(&format!("\"payload\":\"{payload}\"")), "{log}");
        for word in ["hunter2", "hello", "world"] {
            assert!(!log.contains(word), "{word} in {log}");
            assert!(!lines.contains(word), "{word} in {lines}");
        }
        assert!(log.contains("\"name\":\"t\""));
    }
    let (log, _) = replay(&["--payload", "full"], Some("true"));
    assert!(log.contains("hello"));
}

#[test]
fn one_observation_says_nothing_of_another() {
    let marks = |log: String| -> Vec<String> {
        let marks = log
            .match_indices("sha256\":\"")
            .map(|(at, _)| log[at..at + 40].to_owned());
        marks.collect()
    };
    let one = marks(replay(&["--payload", "redacted"], None).0);
    let other = marks(replay(&["--payload", "redacted"], None).0);
    assert!(!one.is_empty() && one.iter().all(|mark| !other.contains(mark)));
}
