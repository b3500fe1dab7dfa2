//! One contract: the same conversation has the same log, whichever backend saw it.
//!
//! Compared is what is left when times, pids and the kernel's numbers are taken out. What a
//! backend cannot see is declared in `unseen`, and in docs/capture.md.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::conversation::{BY_KERNEL, WAYS, Way};
use crate::roles::role;
use crate::stage::{Stage, backends};
use crate::unseen::unseen;

#[test]
fn all_backends_say_the_same() {
    let stage = Stage::set();
    for way in WAYS {
        let mut first: Option<(&str, BTreeMap<&str, Value>)> = None;
        for backend in backends().into_iter().chain(["relay"]) {
            let seen = essence(&observe(&stage, backend, way));
            hold_to_the_truth(&seen, backend, way);
            let Some((other, expected)) = &first else {
                first = Some((backend, seen));
                continue;
            };
            let hidden = [unseen(backend), unseen(other)].concat();
            for (key, value) in expected.iter().filter(|(key, _)| !hidden.contains(key)) {
                assert_eq!(value, &seen[key], "{key}: {other} and {backend}, {way:?}");
            }
        }
    }
}

/// What the kernel moves from file to file is a gap to those that look at system calls. Through a
/// relay it goes like all else.
#[test]
fn a_relay_sees_what_no_system_call_shows() {
    let stage = Stage::set();
    for way in BY_KERNEL {
        hold_to_the_truth(&essence(&observe(&stage, "relay", way)), "relay", way);
    }
}

/// The records of the log.
fn observe(stage: &Stage, backend: &str, way: Way) -> Vec<Value> {
    let file = stage.path(&format!("{backend}.jsonl"));
    let words = format!("host {} {} {}", way.kind, way.write, way.read);
    let mut command = if backend == "relay" {
        let (observer, log) = (stage.observer(), file.display());
        let relay = format!("{} relay --log {log} --", observer.display());
        let host = role(&stage.roles(), &format!("{words} {relay}"));
        let mut command = stage.command(&host[0]);
        command.args(&host[1..]);
        command
    } else {
        let mut command = stage.run(backend);
        command.arg("--log").arg(&file).arg("--");
        command.args(role(&stage.roles(), &words));
        command
    };
    let output = command.output().unwrap();
    assert!(output.status.success(), "{backend} {way:?}: {output:?}");
    let records = whole_log(&file);
    fs::remove_file(&file).unwrap();
    records
}

/// The log, once its summary is written: a relay is not waited for by the host that killed it.
fn whole_log(file: &Path) -> Vec<Value> {
    for _ in 0..3000 {
        let text = fs::read_to_string(file).unwrap();
        let records = text.lines().map(serde_json::from_str);
        let records: Vec<Value> = records.map_while(Result::ok).collect();
        if records.last().is_some_and(|last| last["type"] == "summary") {
            return records;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("the log has no end: {}", fs::read_to_string(file).unwrap())
}

const SIDES: [&str; 2] = ["client", "server"];

const CALL: [&str; 7] = [
    "from",
    "id",
    "method",
    "name",
    "outcome",
    "request_bytes",
    "response_bytes",
];

const FINDING: [&str; 6] = ["rule", "severity", "confidence", "side", "id", "method"];

/// What two backends must agree on.
fn essence(records: &[Value]) -> BTreeMap<&'static str, Value> {
    let of = |kind| of_type(records, kind);
    let connection = of("connection").rfind(|record| record["event"] == "open");
    let connection = connection.unwrap();
    let side_of = |pid: &Value| {
        SIDES
            .into_iter()
            .find(|side| connection[side]["pid"] == *pid)
    };
    let end_of = |side: &str| {
        let mut exits = of("process").filter(|process| process["event"] == "exit");
        let end = exits.find(|exit| exit["pid"] == connection[side]["pid"]);
        end.map_or(Value::Null, |exit| exit["status"].clone())
    };
    let signals = of("interrupt").map(|it| json!([it["kind"], side_of(&it["pid"])]));
    let senders = of("interrupt").map(|it| json!([it["kind"], side_of(&it["sender"])]));
    let summary = of("summary").next().unwrap();
    BTreeMap::from([
        ("client", said(records, "client")),
        ("server", said(records, "server")),
        (
            "ends of file",
            sorted(of("eof").chain(of("refused")), &["type", "from"]),
        ),
        ("read", json!(SIDES.map(|side| read_up_to(records, side)))),
        ("calls", sorted(of("call"), &CALL)),
        ("findings", sorted(of("finding"), &FINDING)),
        ("signals", signals.collect()),
        ("senders", senders.collect()),
        ("network", sorted(of("activity"), &["kind", "bytes"])),
        ("processes", sorted(of("process"), &["event", "status"])),
        ("the server's end", end_of("server")),
        ("the host's end", end_of("client")),
        (
            "totals",
            json!(["messages", "bytes", "gaps", "complete"].map(|key| &summary[key])),
        ),
    ])
}

fn of_type<'a>(
    records: &'a [Value],
    kind: &'static str,
) -> impl DoubleEndedIterator<Item = &'a Value> {
    records.iter().filter(move |record| record["type"] == kind)
}

/// Of one direction in the order of the stream; the two have no mutual order.
fn said(records: &[Value], side: &str) -> Value {
    let mut lines: Vec<_> = ["message", "noise", "gap"]
        .into_iter()
        .flat_map(|kind| of_type(records, kind))
        .filter(|record| record["from"] == side)
        .map(|record| {
            let what = ["type", "bytes", "json", "kind", "reason"].map(|key| &record[key]);
            (record["offset"].as_u64(), json!(what))
        })
        .collect();
    lines.sort_by_key(|(offset, _)| *offset);
    json!(lines)
}

/// How far the other side has read what this one said.
fn read_up_to(records: &[Value], side: &str) -> Option<u64> {
    of_type(records, "delivered")
        .filter(|delivered| delivered["from"] == side)
        .filter_map(|delivered| delivered["offset"].as_u64())
        .max()
}

fn sorted<'a>(records: impl Iterator<Item = &'a Value>, keys: &[&str]) -> Value {
    let pick = |record: &Value| json!(keys.iter().map(|key| &record[key]).collect::<Vec<_>>());
    let mut picked: Vec<String> = records.map(|record| pick(record).to_string()).collect();
    picked.sort();
    json!(picked)
}

/// That both are wrong in the same way would not do.
fn hold_to_the_truth(seen: &BTreeMap<&str, Value>, backend: &str, way: Way) {
    let lines = |side| seen[side].as_array().unwrap().len();
    assert_eq!(
        lines("client"),
        16,
        "{backend} {way:?}: {:.2000}",
        seen["client"]
    );
    assert_eq!(
        lines("server"),
        14,
        "{backend} {way:?}: {:.2000}",
        seen["server"]
    );
    let outcomes = seen["calls"].to_string();
    for (outcome, count) in [("answered", 11), ("cancelled", 1)] {
        assert_eq!(
            outcomes.matches(outcome).count(),
            count,
            "{backend} {way:?}: {outcomes}"
        );
    }
    let findings = seen["findings"].to_string();
    for rule in ["stdout-noise", "unknown-response-id", "torn-down-pending"] {
        assert!(findings.contains(rule), "{backend} {way:?}: {findings}");
    }
    assert!(
        seen["signals"].to_string().contains("sigkill"),
        "{backend} {way:?}"
    );
    assert_eq!(seen["totals"][3], true, "{backend} {way:?}");
}
