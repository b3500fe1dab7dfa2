//! The page about a call, a finding, a frame, a connection: all that is known, as prose.

use std::collections::BTreeSet;

use super::call::Call;
use super::doc::{Fold, Ink, Line, Page};
use super::frame::{Body, Frame, Kind};
use super::json::pretty;
use super::wording::{self, capital, state_ink};
use super::{Model, title};
use crate::record::{Word, escape, printable};
use crate::session::{ConnId, Event, Side};
use crate::wording::{count, size, span, time};

/// So many lines of a message are shown at first.
const FIRST_LINES: usize = 200;

/// And so many when more are asked for.
const MORE_LINES: usize = 10_000;

/// So many related calls, or progress notifications, are listed.
const LISTED: usize = 20;

/// Calls that are further apart than this are not looked through for a retry.
const REACH: u32 = 20_000;

pub(super) fn call(page: &mut Page, model: &Model, number: u32, folded: &BTreeSet<Fold>) {
    let Some(call) = model.ledger.calls.get(number) else {
        page.prose(1, Ink::Dim, "This call has left memory.");
        return;
    };
    let name = title(&call.method, call.name.as_deref(), Some(&call.id));
    let state = format!("  {}", call.state().word());
    page.spans(
        0,
        vec![(Ink::Strong, name), (state_ink(call.state()), state)],
    );
    page.prose(
        0,
        Ink::Plain,
        &format!("{}.", wording::sentence(call, model.now)),
    );
    for found in wording::standing(&model.ledger, call) {
        page.heading("Why");
        about_finding(page, found, Some(call));
    }
    facts(page, model, call);
    related(page, model, number, call);
    progress(page, model, number);
    for (name, at) in [
        ("Request", call.request),
        ("Cancellation", call.cancellation),
        ("Answer", call.answer),
    ] {
        if let Some(at) = at {
            message_part(page, model, name, at, folded);
        }
    }
}

pub(super) fn finding(page: &mut Page, model: &Model, at: u32, folded: &BTreeSet<Fold>) {
    let Some(found) = model.ledger.findings.get(at as usize) else {
        return;
    };
    if let Some(number) = found.call.filter(|_| !found.superseded) {
        return call(page, model, number, folded);
    }
    about_finding(page, found, None);
    if let Some(connection) = found
        .finding
        .conn
        .and_then(|conn| model.ledger.connections.get(&conn))
    {
        page.heading("Connection");
        wording::connection(page, &model.ledger, connection);
    }
}

pub(super) fn connection(page: &mut Page, model: &Model, conn: ConnId) {
    let Some(connection) = model.ledger.connections.get(&conn) else {
        return;
    };
    let title = format!("{}  {}", connection.title(), connection.word());
    page.prose(0, Ink::Strong, &title);
    page.blank();
    wording::connection(page, &model.ledger, connection);
    let of_it = |found: &&super::Found| found.finding.conn == Some(conn) && !found.superseded;
    let found: Vec<_> = model
        .ledger
        .findings
        .iter()
        .filter(of_it)
        .take(LISTED)
        .collect();
    if !found.is_empty() {
        page.heading("Findings");
    }
    for found in found {
        page.marked(
            |line| line.call = found.call,
            |page| {
                wording::verdict_line(page, found);
                page.prose(3, Ink::Plain, &capital(&printable(&found.finding.message)));
            },
        );
    }
}

pub(super) fn frame(page: &mut Page, model: &Model, number: u32, folded: &BTreeSet<Fold>) {
    let Some(frame) = model.ledger.frames.get(number) else {
        page.prose(1, Ink::Dim, "This frame has left memory.");
        return;
    };
    page.prose(0, Ink::Strong, &frame.label);
    let from = frame
        .from
        .map_or(String::new(), |from| format!(" from the {}", from.word()));
    let what = format!("At {}{from}, {}.", time(frame.at), size(frame.bytes));
    page.prose(0, Ink::Plain, &what);
    let call = frame.call.and_then(|call| model.ledger.calls.get(call));
    if let Some(call) = call {
        let name = title(&call.method, call.name.as_deref(), Some(&call.id));
        let text = format!("It belongs to {name}: {}.", call.state().word());
        let of = frame.call;
        page.marked(
            |line| line.call = of,
            |page| page.prose(0, Ink::Note, &text),
        );
    }
    match (&frame.body, frame.is_message()) {
        (_, true) => message_part(page, model, "Text", number, folded),
        (Body::Here(event), false) => other(page, event),
        (_, false) => page.prose(1, Ink::Dim, "Its text has left memory."),
    }
}

/// The beginning of a frame's text.
pub(super) fn excerpt(number: u32, model: &Model, columns: usize) -> Vec<Line> {
    let mut page = Page::new(columns);
    let Some(frame) = model.ledger.frames.get(number) else {
        return page.lines;
    };
    match (&frame.body, frame.text()) {
        (_, Some(text)) => json(&mut page, number, text, &BTreeSet::new()),
        (Body::Here(event), None) => {
            page.prose(
                1,
                Ink::Plain,
                &format!("At {}: {}.", time(frame.at), frame.label),
            );
            other(&mut page, event);
        }
        (Body::InLog(_), None) => {
            let text = "Its text has left memory. Enter reads it back from the log.";
            page.prose(2, Ink::Dim, text);
        }
        (Body::Gone, None) => away(&mut page, frame),
    }
    page.lines
}

fn other(page: &mut Page, event: &Event) {
    if let Event::Noise(noise) = event {
        page.heading("Text");
        let text = std::str::from_utf8(&noise.text);
        let text = text.map_or_else(|_| escape(&noise.text), printable);
        page.prose(1, Ink::Text, &text);
    }
}

fn about_finding(page: &mut Page, found: &super::Found, call: Option<&Call>) {
    wording::verdict_line(page, found);
    page.prose(
        1,
        Ink::Plain,
        &format!("{}.", capital(&printable(&found.finding.message))),
    );
    page.blank();
    wording::steps(page, &found.finding, call);
    if let Some(spec) = &found.finding.spec {
        page.blank();
        let spec = vec![
            (Ink::Dim, "Specification: ".into()),
            (Ink::Plain, printable(spec)),
        ];
        page.hanging(1, 3, spec);
    }
}

fn facts(page: &mut Page, model: &Model, call: &Call) {
    page.heading("Facts");
    if let Some(connection) = model.ledger.connections.get(&call.conn) {
        let revision = connection.revision.as_deref().unwrap_or("?");
        let text = format!("{} {}, MCP {revision}", connection.id, connection.title());
        page.pair("connection", Ink::Plain, &text);
    }
    let from = if call.from == Side::Client {
        "host to server"
    } else {
        "server to host"
    };
    page.pair("direction", Ink::Plain, from);
    let ended = call.ended.map_or("not yet".into(), time);
    let took = span(call.took(model.now));
    page.pair(
        "time",
        Ink::Plain,
        &format!("sent {}, ended {ended}, {took}", time(call.sent)),
    );
    if let Some((from, until)) = call.waste(model.now) {
        let text = format!(
            "{}, from {} to {}",
            span(until.since(from)),
            time(from),
            time(until)
        );
        page.pair("wasted", Ink::Accent, &text);
    }
    let answer = call.response_bytes.map_or("none".into(), size);
    let sizes = format!("request {}, answer {answer}", size(call.request_bytes));
    page.pair("size", Ink::Plain, &sizes);
    if let Some(cancel) = &call.cancel {
        let reason = cancel
            .reason
            .as_deref()
            .map_or("without a reason".into(), printable);
        page.pair(
            "cancelled",
            Ink::Note,
            &format!("{}: {reason}", time(cancel.at)),
        );
    }
}

/// Calls that ask for the same thing.
fn related(page: &mut Page, model: &Model, number: u32, call: &Call) {
    let Some(print) = call.print else { return };
    let calls = &model.ledger.calls;
    let near = calls.range().start.max(number.saturating_sub(REACH))
        ..calls.range().end.min(number.saturating_add(REACH));
    let equal = near.filter(|other| *other != number).filter_map(|other| {
        let known = calls.get(other)?;
        (known.conn == call.conn && known.print == Some(print)).then_some((other, known))
    });
    let equal: Vec<_> = equal.take(LISTED).collect();
    if equal.is_empty() {
        return;
    }
    page.heading("The same call, sent again");
    for (other, known) in equal {
        let apart = match other > number {
            true => format!("{} later", span(known.sent.since(call.sent))),
            false => format!("{} before", span(call.sent.since(known.sent))),
        };
        let state = known.state().word().to_owned();
        let spans = vec![
            (
                Ink::Plain,
                format!("{:>9}  #{}  {apart}  ", time(known.sent), known.id),
            ),
            (state_ink(known.state()), state),
        ];
        page.marked(|line| line.call = Some(other), |page| page.spans(1, spans));
    }
}

fn progress(page: &mut Page, model: &Model, number: u32) {
    let Some(call) = model
        .ledger
        .calls
        .get(number)
        .filter(|call| call.progress > 0)
    else {
        return;
    };
    page.heading("Progress");
    let many = count(call.progress, "notification");
    page.prose(
        1,
        Ink::Plain,
        &format!("{many} from the {}.", call.from.peer().word()),
    );
    let frames = &model.ledger.frames;
    let from = call.request.unwrap_or(frames.range().start);
    let of_it = (from..frames.range().end)
        .take(REACH as usize)
        .filter_map(|at| frames.get(at).map(|frame| (at, frame)))
        .filter(|(_, frame)| frame.call == Some(number) && frame.kind == Kind::Notification);
    for (at, frame) in of_it
        .filter(|(_, frame)| &*frame.label == PROGRESS)
        .take(LISTED)
    {
        let text = frame
            .text()
            .and_then(params)
            .map(printable)
            .unwrap_or_default();
        let spans = vec![
            (Ink::Dim, format!("{:>9}  ", time(frame.at))),
            (Ink::Text, text),
        ];
        page.marked(
            |line| line.frame = Some(at),
            |page| page.hanging(1, 12, spans),
        );
    }
}

const PROGRESS: &str = "notifications/progress";

fn params(text: &str) -> Option<&str> {
    crate::jsonrpc::member(text, "params")
}

/// A message under its heading, as lines that can be folded.
fn message_part(
    page: &mut Page,
    model: &Model,
    name: &'static str,
    number: u32,
    folded: &BTreeSet<Fold>,
) {
    let Some(frame) = model.ledger.frames.get(number) else {
        return;
    };
    page.blank();
    let part = Fold::Part(name);
    let shut = folded.contains(&part);
    let sign = if shut { "▸" } else { "▾" };
    let note = format!("  {} at {}", size(frame.bytes), time(frame.at));
    page.marked(
        |line| (line.fold, line.frame) = (Some(part), Some(number)),
        |page| {
            page.spans(
                0,
                vec![(Ink::Heading, format!("{sign} {name}")), (Ink::Dim, note)],
            );
        },
    );
    if shut {
        return;
    }
    let mark = |line: &mut Line| line.frame = Some(number);
    match frame.text() {
        Some(text) => page.marked(mark, |page| json(page, number, text, folded)),
        None => page.marked(mark, |page| away(page, frame)),
    }
}

fn json(page: &mut Page, number: u32, text: &str, folded: &BTreeSet<Fold>) {
    let range = Fold::Json(number, 0)..=Fold::Json(number, usize::MAX);
    let places = folded.range(range).filter_map(|fold| match fold {
        Fold::Json(_, at) => Some(*at),
        Fold::Part(_) | Fold::More(_) => None,
    });
    let more = folded.contains(&Fold::More(number));
    let limit = if more { MORE_LINES } else { FIRST_LINES };
    let shown = pretty(text, &places.collect(), limit);
    for line in shown.lines {
        let indent = 2 + 2 * line.depth.min(20);
        let fold = line.fold.map(|at| Fold::Json(number, at));
        page.marked(
            |line| line.fold = fold,
            |page| page.hanging(indent, indent + 2, line.spans),
        );
    }
    if shown.rest > 0 {
        let rest = size(shown.rest as u64);
        let (text, fold) = match more {
            false => (
                format!("… {rest} more: Space shows them"),
                Some(Fold::More(number)),
            ),
            true => (format!("… {rest} more: y copies the whole message"), None),
        };
        page.marked(
            |line| line.fold = fold,
            |page| page.prose(2, Ink::Note, &text),
        );
    }
}

fn away(page: &mut Page, frame: &Frame) {
    let text = match frame.body {
        Body::InLog(_) => "Its text has left memory; it is being read back from the log.",
        Body::Here(_) | Body::Gone => {
            "Its text has left memory. With --log it could be read back; --tui-memory keeps more."
        }
    };
    page.prose(2, Ink::Dim, text);
}
