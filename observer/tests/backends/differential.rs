//! One contract: the same conversation has the same log, whichever backend saw it.
//!
//! Compared is what is left when times, pids and the kernel's numbers are taken out. What a
//! backend cannot see is listed with it, and in docs/capture.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::{Value, json};

use crate::conversation::{WAYS, Way};
use crate::roles::role;
use crate::stage::{Stage, backends};

/// What a backend does not see of what the others do: keys of [`essence`].
fn unseen(backend: &str) -> &'static [&'static str] {
    match backend {
        // Nothing of a conversation: see "ptrace" in docs/capture.md for what else it misses.
        "ebpf" | "ptrace" => &[],
        other => panic!("no backend {other}"),
    }
}

#[test]
fn all_backends_say_the_same() {
    let stage = Stage::set();
    for way in WAYS {
        let mut first: Option<(&str, BTreeMap<&str, Value>)> = None;
        for backend in backends() {
            let seen = essence(&observe(&stage, backend, way));
            hold_to_the_truth(&seen, backend, way);
            let Some((other, expected)) = &first else {
                first = Some((backend, seen));
                continue;
            };
            let hidden: BTreeSet<_> = [backend, other].into_iter().flat_map(unseen).collect();
            for (key, value) in expected.iter().filter(|(key, _)| !hidden.contains(key)) {
                assert_eq!(value, &seen[key], "{key}: {other} and {backend}, {way:?}");
            }
        }
    }
}

/// The records of the log.
fn observe(stage: &Stage, backend: &str, way: Way) -> Vec<Value> {
    let file = stage.path(&format!("{backend}.jsonl"));
    let words = format!("host {} {} {}", way.kind, way.write, way.read);
    let output = stage
        .run(backend)
        .arg("--log")
        .arg(&file)
        .arg("--")
        .args(role(&stage.roles(), &words))
        .output()
        .unwrap();
    assert!(output.status.success(), "{backend} {way:?}: {output:?}");
    let text = fs::read_to_string(&file).unwrap();
    fs::remove_file(&file).unwrap();
    let records = text.lines().map(|line| serde_json::from_str(line).unwrap());
    records.collect()
}

/// What two backends must agree on.
fn essence(records: &[Value]) -> BTreeMap<&'static str, Value> {
    let of = |kind: &'static str| records.iter().filter(move |record| record["type"] == kind);
    // Of one direction in the order of the stream; the two have no mutual order.
    let said = |side: &str| -> Value {
        let mut lines: Vec<_> = of("message")
            .chain(of("noise"))
            .chain(of("gap"))
            .filter(|record| record["from"] == side)
            .map(|record| {
                let what = ["type", "bytes", "json", "kind", "reason"].map(|key| &record[key]);
                (record["offset"].as_u64(), json!(what))
            })
            .collect();
        lines.sort_by_key(|(offset, _)| *offset);
        json!(lines)
    };
    let sorted = |kind, keys: &[&str]| -> Value {
        let pick = |record: &Value| json!(keys.iter().map(|key| &record[key]).collect::<Vec<_>>());
        let mut picked: Vec<String> = of(kind).map(|record| pick(record).to_string()).collect();
        picked.sort();
        json!(picked)
    };
    let calls = [
        "from",
        "id",
        "method",
        "name",
        "outcome",
        "request_bytes",
        "response_bytes",
    ];
    let findings = ["rule", "severity", "confidence", "side", "id", "method"];
    let summary = of("summary").next().unwrap();
    BTreeMap::from([
        ("client", said("client")),
        ("server", said("server")),
        ("calls", sorted("call", &calls)),
        ("findings", sorted("finding", &findings)),
        ("interrupts", sorted("interrupt", &["kind"])),
        ("ends", sorted("process", &["event", "status"])),
        (
            "totals",
            json!(["messages", "bytes", "gaps", "complete"].map(|key| &summary[key])),
        ),
    ])
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
        seen["interrupts"].to_string().contains("sigkill"),
        "{backend} {way:?}"
    );
    assert_eq!(seen["totals"][3], true, "{backend} {way:?}");
}
