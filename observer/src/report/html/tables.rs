//! The tables of a log's section.

use std::fmt::Write;

use super::super::model::{Log, outcomes};
use super::{Escaped, outcome_class};
use crate::policy::Level;
use crate::record::Word;
use crate::session::Side;
use crate::wording::{size, span, time};

/// So many rows a table has.
const ROWS: usize = 2_000;

/// So many calls are shown without being unfolded.
const UNFOLDED: usize = 50;

pub(super) fn connections(log: &Log, out: &mut String) {
    if log.connections.is_empty() {
        return;
    }
    begin(
        "Connections",
        &["#", "host", "server", "MCP", "#from", "#until", "#calls"],
        out,
    );
    for (conn, connection) in log.connections.iter().take(ROWS) {
        let sides = &connection.sides;
        let at = |at: Option<_>| at.map(time).unwrap_or_default();
        let _ = writeln!(
            out,
            "<tr><td class=\"number\">{conn}</td><td>{}</td><td>{}</td><td>{}</td>\
             <td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td></tr>",
            party(&sides.host),
            party(&sides.server),
            Escaped(sides.revision.as_deref().unwrap_or_default()),
            at(connection.opened),
            at(connection.closed),
            connection.calls
        );
    }
    end(log.connections.len(), out);
}

/// How a side calls itself, and what it runs as.
fn party(known: &crate::wording::Known) -> String {
    let title = known.title();
    let mut runs = known
        .program
        .clone()
        .filter(|program| *program != title)
        .unwrap_or_default();
    if let Some(pid) = known.pid {
        let _ = write!(runs, "[{pid}]");
    }
    format!(
        "{} <span class=\"dim\">{}</span>",
        Escaped(&title),
        Escaped(&runs)
    )
}

pub(super) fn tools(log: &Log, out: &mut String) {
    if log.tools.is_empty() {
        return;
    }
    begin(
        "Tools and other requests",
        &["call", "outcomes", "#mean", "#longest", "#wasted"],
        out,
    );
    for (tool, tally) in log.tools.iter().take(ROWS) {
        let mean = tally.mean();
        let wasted = (!tally.wasted.is_zero()).then_some(tally.wasted);
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td>\
             <td class=\"number\">{}</td></tr>",
            Escaped(&tool.title()),
            Escaped(&outcomes(&tally.outcomes)),
            mean.map(span).unwrap_or_default(),
            mean.map(|_| span(tally.longest)).unwrap_or_default(),
            wasted.map(span).unwrap_or_default()
        );
    }
    end(log.tools.len(), out);
}

pub(super) fn calls(log: &Log, out: &mut String) {
    if log.calls.is_empty() {
        return;
    }
    let folded = log.calls.len() > UNFOLDED;
    if folded {
        let _ = write!(
            out,
            "<details>\n<summary>All {} calls</summary>\n<div>\n",
            log.calls.len()
        );
    }
    let columns = [
        "#sent",
        "#",
        "call",
        "outcome",
        "#took",
        "#wasted",
        "#request",
        "#answer",
        "cancellation",
    ];
    begin("Calls", &columns, out);
    for call in log.calls.iter().take(ROWS) {
        let conn = call.conn;
        let way = match call.from {
            Side::Client => format!("{conn} →"),
            Side::Server => format!("{conn} ←"),
        };
        let cancelled = match (call.cancelled, &call.reason) {
            (Some(at), Some(reason)) => format!("{}: {reason}", time(at)),
            (Some(at), None) => time(at),
            _ => String::new(),
        };
        let _ = writeln!(
            out,
            "<tr><td class=\"number\">{}</td><td class=\"number\">{way}</td><td>{}</td>\
             <td class=\"{}\">{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td>\
             <td class=\"number\">{}</td><td class=\"number\">{}</td><td>{}</td></tr>",
            time(call.sent),
            Escaped(&call.title()),
            outcome_class(call.outcome),
            call.outcome.word(),
            call.took().map(span).unwrap_or_default(),
            call.wasted.map(span).unwrap_or_default(),
            size(call.request_bytes),
            call.response_bytes.map(size).unwrap_or_default(),
            Escaped(&cancelled)
        );
    }
    let left_out = usize::try_from(log.calls_left_out).unwrap_or(usize::MAX);
    end(log.calls.len().saturating_add(left_out), out);
    if folded {
        out.push_str("</div>\n</details>\n");
    }
}

pub(super) fn objections(log: &Log, out: &mut String) {
    let ruling = &log.ruling;
    if ruling.objections.is_empty() {
        return;
    }
    begin("What the policy objects to", &["", "rule", "why"], out);
    for objection in ruling.objections.iter().take(ROWS) {
        let class = match objection.level {
            Level::Deny => "error",
            Level::Warn | Level::Allow => "warning",
        };
        let subject = format!("{}{}", objection.subject.name(), objection.detail);
        let subject = match objection.finding {
            Some(number) => format!("<a href=\"#finding{number}\">{}</a>", Escaped(&subject)),
            None => Escaped(&subject).to_string(),
        };
        let _ = writeln!(
            out,
            "<tr><td class=\"{class}\">{}</td><td>{subject}</td><td>{}</td></tr>",
            objection.level.word(),
            Escaped(&objection.message)
        );
    }
    let all = usize::try_from(ruling.denied + ruling.warned).unwrap_or(usize::MAX);
    end(all, out);
}

/// The kernel's counters, where there are any.
pub(super) fn loss(log: &Log, out: &mut String) {
    let Some(loss) = log.summary.loss else { return };
    begin("What the capture saw", &["", "#bytes"], out);
    for (title, bytes) in [
        ("written by the watched processes", loss.seen),
        ("taken", loss.submitted),
        ("left out: no MCP", loss.filtered),
        ("lost to a full ring", loss.ring_full),
        ("unreadable", loss.unreadable),
    ] {
        let _ = writeln!(
            out,
            "<tr><td>{title}</td><td class=\"number\">{bytes}</td></tr>"
        );
    }
    let _ = writeln!(
        out,
        "<tr><td>events lost</td><td class=\"number\">{}</td></tr>",
        loss.events_lost
    );
    end(0, out);
}

/// The columns of numbers are marked with `#`.
fn begin(title: &str, columns: &[&str], out: &mut String) {
    let _ = writeln!(
        out,
        "<h3>{title}</h3>\n<div class=\"scroll\">\n<table>\n<thead><tr>"
    );
    for column in columns {
        let _ = match column.strip_prefix('#') {
            Some(number) => writeln!(out, "<th scope=\"col\" class=\"number\">{number}</th>"),
            None => writeln!(out, "<th scope=\"col\">{column}</th>"),
        };
    }
    out.push_str("</tr></thead>\n<tbody>\n");
}

fn end(rows: usize, out: &mut String) {
    out.push_str("</tbody>\n</table>\n</div>\n");
    more(rows.saturating_sub(ROWS) as u64, out);
}

pub(super) fn more(number: u64, out: &mut String) {
    if number > 0 {
        let _ = writeln!(out, "<p class=\"dim\">and {number} more</p>");
    }
}
