//! SARIF 2.1.0 (OASIS), for code scanning: one result a finding, and what each rule means.

use serde::Serialize;
use serde_json::{Value, json};

use super::build::Report;
use super::model::{Log, heading};
use crate::record::Word;
use crate::verdict::{self, About, Culprit, Finding, Severity, by_revision};
use crate::wording::time;

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// Where the rules are described.
const RULES: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/verdicts.md");

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: Vec<Run>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    tool: Value,
    automation_details: Value,
    artifacts: Vec<Value>,
    invocations: Vec<Value>,
    results: Vec<Value>,
    column_kind: &'static str,
}

pub(super) fn render(report: &Report, out: &mut Vec<u8>) {
    let document = Document {
        schema: SCHEMA,
        version: "2.1.0",
        runs: vec![run(report)],
    };
    #[expect(
        clippy::expect_used,
        reason = "a Vec takes every write, and all keys are strings"
    )]
    serde_json::to_writer_pretty(&mut *out, &document).expect("a report serialises");
    out.push(b'\n');
}

fn run(report: &Report) -> Run {
    let logs = || report.logs.iter().enumerate();
    Run {
        tool: json!({ "driver": {
            "name": "observer",
            "version": env!("CARGO_PKG_VERSION"),
            "informationUri": env!("CARGO_PKG_REPOSITORY"),
            "rules": verdict::rules().map(rule).collect::<Vec<_>>(),
        } }),
        automation_details: json!({ "id": "observer/" }),
        artifacts: report
            .logs
            .iter()
            .map(|log| json!({ "location": { "uri": uri(&log.name) }, "roles": ["resultFile"] }))
            .collect(),
        invocations: report.logs.iter().map(invocation).collect(),
        results: logs()
            .flat_map(|(place, log)| {
                log.findings
                    .values()
                    .map(move |finding| result(place, log, finding))
            })
            .collect(),
        column_kind: "unicodeCodePoints",
    }
}

/// What a rule says about itself.
fn rule(about: &About) -> Value {
    let list = |title: &str, items: Vec<String>| match items.is_empty() {
        true => String::new(),
        false => format!("\n\n{title}:\n\n- {}", items.join("\n- ")),
    };
    let owned = |items: &[&str]| items.iter().map(ToString::to_string).collect();
    let clauses = by_revision(about)
        .map(|(revisions, clause)| format!("{}: {clause}", revisions.join(", ")))
        .collect();
    let help = [
        about.meaning.to_owned(),
        list("Evidence", owned(about.evidence)),
        list("What looks like it and is none", owned(about.exceptions)),
        list("What the protocol says", clauses),
    ]
    .concat();
    json!({
        "id": about.name,
        "name": pascal_case(about.name),
        "shortDescription": { "text": about.meaning },
        "fullDescription": { "text": about.meaning },
        "help": { "text": help, "markdown": help },
        "helpUri": format!("{RULES}#{}", about.name),
        "defaultConfiguration": { "level": level(about.severity) },
        "properties": { "side": about.side, "tags": ["mcp", about.side] },
    })
}

/// Whether a log could be read to its end.
fn invocation(log: &Log) -> Value {
    let notes: Vec<_> = log
        .faults
        .iter()
        .chain(&log.ruling.uncovered)
        .map(|fault| json!({ "level": "warning", "message": { "text": fault } }))
        .collect();
    json!({
        "executionSuccessful": log.faults.is_empty(),
        "toolExecutionNotifications": notes,
        "properties": {
            "log": log.name,
            "verdict": log.standing.word(),
            "calls": log.summary.calls,
            "complete": log.summary.complete,
        },
    })
}

fn result(place: usize, log: &Log, finding: &Finding) -> Value {
    let index = verdict::rules().position(|rule| rule.name == finding.rule);
    let sides = finding.conn.and_then(|conn| log.connections.get(&conn));
    let (host, server) = match sides {
        Some(connection) => {
            let sides = &connection.sides;
            (sides.host.title(), sides.server.title())
        }
        None => ("?".into(), "?".into()),
    };
    let subject = match (&finding.method, &finding.name) {
        (Some(method), Some(name)) => format!("{method} {name}"),
        (Some(method), None) => method.clone(),
        _ => String::new(),
    };
    let culprit = match finding.side {
        Culprit::Host => &host,
        Culprit::Server => &server,
        Culprit::Observer => "observer",
    };
    // Code scanning on GitHub takes no result without a line; the first one tells of the log.
    let line = log.places.get(&finding.number).and_then(|own| own.line);
    let line = line.or(Some(1));
    json!({
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": level(finding.severity),
        "kind": "fail",
        "message": { "text": format!("{}: {}", heading(finding), finding.message) },
        "locations": [{
            "physicalLocation": physical(log, place, line),
            "logicalLocations": [{
                "name": culprit,
                "fullyQualifiedName": format!("{host} -> {server} {subject}").trim_end(),
                "kind": "module",
            }],
        }],
        // The same fault of the same programs is the same alert, whatever its times and ids.
        "partialFingerprints": {
            "observerFinding/v1": format!("{}/{host}/{server}/{subject}", finding.rule),
        },
        "codeFlows": flow(log, place, finding),
        "properties": {
            "confidence": finding.confidence.word(),
            "side": finding.side.word(),
            "finding": finding.number,
            "connection": finding.conn,
            "time": time(finding.at),
            "spec": finding.spec,
        },
    })
}

/// A line of a log; the log itself where the line is not known, or is another file's.
fn physical(log: &Log, place: usize, line: Option<u64>) -> Value {
    let artifact = json!({ "uri": uri(&log.name), "index": place });
    match line {
        Some(line) => json!({ "artifactLocation": artifact, "region": { "startLine": line } }),
        None => json!({ "artifactLocation": artifact }),
    }
}

/// The evidence, step by step.
fn flow(log: &Log, place: usize, finding: &Finding) -> Value {
    let lines = log.places.get(&finding.number).map(|own| &own.evidence);
    let steps: Vec<_> = finding
        .evidence
        .iter()
        .enumerate()
        .map(|(step, evidence)| {
            let (at, kind) = (time(evidence.at), evidence.kind);
            let line = lines.and_then(|lines| lines.get(step).copied().flatten());
            json!({ "location": {
                "physicalLocation": physical(log, place, line),
                "message": { "text": format!("{at} {kind}: {}", evidence.detail) },
            } })
        })
        .collect();
    match steps.is_empty() {
        true => json!([]),
        false => json!([{ "threadFlows": [{ "locations": steps }] }]),
    }
}

const fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

/// `abandoned-call` as SARIF names rules: `AbandonedCall`.
fn pascal_case(name: &str) -> String {
    let mut words = String::new();
    for word in name.split('-') {
        let mut chars = word.chars();
        words.extend(chars.next().map(|first| first.to_ascii_uppercase()));
        words.push_str(chars.as_str());
    }
    words
}

/// A path as a relative or file URI reference (RFC 3986).
fn uri(path: &str) -> String {
    let mut uri = String::new();
    if path.starts_with('/') {
        uri.push_str("file://");
    }
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(char::from(byte));
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_uri_reference() {
        assert_eq!(uri("logs/a b.jsonl"), "logs/a%20b.jsonl");
        assert_eq!(uri("/x/ä"), "file:///x/%C3%A4");
    }

    #[test]
    fn rules_have_names_as_sarif_wants_them() {
        assert_eq!(pascal_case("abandoned-call"), "AbandonedCall");
    }
}
