//! The summary as JSON, for programs: what every other format shows, in the audit log's terms.

use std::collections::BTreeMap;

use serde::Serialize;

use super::build::Report;
use super::model::{Log, Tally, Tool};
use crate::capture::{Loss, Timestamp};
use crate::record::{Finding, Header, Span};
use crate::session::ConnId;
use crate::verdict::Outcome;
use crate::wording::Known;

/// The form's name and major version.
const SCHEMA: &str = "observer-report/1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    observer: &'static str,
    verdict: &'static str,
    logs: Vec<LogForm<'a>>,
}

#[derive(Serialize)]
struct LogForm<'a> {
    log: &'a str,
    verdict: &'static str,
    header: &'a Header,
    length: Span,
    messages: u64,
    bytes: u64,
    gaps: u64,
    complete: bool,
    loss: Option<Loss>,
    calls: &'a BTreeMap<Outcome, u64>,
    connections: Vec<ConnectionForm<'a>>,
    tools: Vec<ToolForm<'a>>,
    findings: Vec<Finding>,
    findings_left_out: u64,
    policy: PolicyForm<'a>,
    faults: &'a [String],
}

#[derive(Serialize)]
struct ConnectionForm<'a> {
    conn: ConnId,
    host: PartyForm<'a>,
    server: PartyForm<'a>,
    revision: Option<&'a str>,
    opened: Option<Timestamp>,
    closed: Option<Timestamp>,
    calls: u64,
}

#[derive(Serialize)]
struct PartyForm<'a> {
    name: Option<&'a str>,
    version: Option<&'a str>,
    program: Option<&'a str>,
    pid: Option<u32>,
}

#[derive(Serialize)]
struct ToolForm<'a> {
    method: &'a str,
    name: Option<&'a str>,
    calls: &'a BTreeMap<Outcome, u64>,
    mean: Option<Span>,
    longest: Option<Span>,
    wasted: Span,
}

#[derive(Serialize)]
struct PolicyForm<'a> {
    denied: u64,
    warned: u64,
    missing: &'a [String],
    objections: Vec<ObjectionForm<'a>>,
}

#[derive(Serialize)]
struct ObjectionForm<'a> {
    level: &'static str,
    subject: &'static str,
    finding: Option<u32>,
    message: &'a str,
}

pub(super) fn render(report: &Report, out: &mut Vec<u8>) {
    let document = Document {
        schema: SCHEMA,
        observer: env!("CARGO_PKG_VERSION"),
        verdict: report.standing().word(),
        logs: report.logs.iter().map(log_form).collect(),
    };
    #[expect(
        clippy::expect_used,
        reason = "a Vec takes every write, and all keys are strings"
    )]
    serde_json::to_writer_pretty(&mut *out, &document).expect("a report serialises");
    out.push(b'\n');
}

fn log_form(log: &Log) -> LogForm<'_> {
    LogForm {
        log: &log.name,
        verdict: log.standing.word(),
        header: &log.header,
        length: Span(log.length()),
        messages: log.summary.messages,
        bytes: log.summary.bytes,
        gaps: log.summary.gaps,
        complete: log.summary.complete,
        loss: log.summary.loss,
        calls: &log.summary.calls,
        connections: connections(log),
        tools: log.tools.iter().map(tool_form).collect(),
        findings: log.findings.values().map(Finding::from).collect(),
        findings_left_out: log.findings_left_out,
        policy: policy_form(log),
        faults: &log.faults,
    }
}

fn connections(log: &Log) -> Vec<ConnectionForm<'_>> {
    log.connections
        .iter()
        .map(|(conn, connection)| ConnectionForm {
            conn: *conn,
            host: party(&connection.sides.host),
            server: party(&connection.sides.server),
            revision: connection.sides.revision.as_deref(),
            opened: connection.opened,
            closed: connection.closed,
            calls: connection.calls,
        })
        .collect()
}

fn party(known: &Known) -> PartyForm<'_> {
    PartyForm {
        name: known.name.as_deref(),
        version: known.version.as_deref(),
        program: known.program.as_deref(),
        pid: known.pid,
    }
}

fn tool_form<'a>((tool, tally): (&'a Tool, &'a Tally)) -> ToolForm<'a> {
    ToolForm {
        method: &tool.method,
        name: tool.name.as_deref(),
        calls: &tally.outcomes,
        mean: tally.mean().map(Span),
        longest: tally.mean().map(|_| Span(tally.longest)),
        wasted: Span(tally.wasted),
    }
}

fn policy_form(log: &Log) -> PolicyForm<'_> {
    let objections = log.ruling.objections.iter().map(|objection| ObjectionForm {
        level: objection.level.word(),
        subject: objection.subject.name(),
        finding: objection.finding,
        message: &objection.message,
    });
    PolicyForm {
        denied: log.ruling.denied,
        warned: log.ruling.warned,
        missing: &log.ruling.uncovered,
        objections: objections.collect(),
    }
}
