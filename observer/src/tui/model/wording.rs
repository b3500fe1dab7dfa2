//! What is known about a call, a finding, a connection, in words.

use super::call::{Call, State};
use super::connection::Connection;
use super::doc::{Ink, Line, Page};
use super::ledger::{Found, Ledger};
use super::{Model, Screen, title};
use crate::capture::Timestamp;
use crate::record::{Word, printable};
use crate::session::Side;
use crate::verdict::{Confidence, Finding, Outcome, Severity};
use crate::wording::{count, size, span, time};

/// How a call stands, in one sentence or two, for somebody who does not know the protocol.
pub(super) fn sentence(call: &Call, now: Timestamp) -> String {
    let took = span(call.took(now));
    let (asked, peer) = match call.from {
        Side::Client => ("the host", "the server"),
        Side::Server => ("the server", "the host"),
    };
    let progress = match call.progress {
        0 => String::new(),
        many => format!(", with {}", count(many, "progress notification")),
    };
    let text = match call.state() {
        State::Running => format!("{peer} has worked on it for {took}{progress}"),
        State::Over(Outcome::Answered) => {
            let bytes = call
                .response_bytes
                .map_or(String::new(), |bytes| format!(", {}", size(bytes)));
            format!("{peer} answered after {took}{bytes}{progress}")
        }
        State::Over(Outcome::Failed) => format!("{peer} answered with an error after {took}"),
        State::Over(Outcome::Cancelled) => {
            let cancel = call.cancel.as_ref();
            let after = cancel.map_or(took, |cancel| span(cancel.at.since(call.sent)));
            let reason = cancel.and_then(|cancel| cancel.reason.as_deref());
            let why = reason.map_or(", without a reason".into(), |why| {
                format!(": {}", printable(why))
            });
            format!("{asked} cancelled it after {after}{why}")
        }
        State::Over(Outcome::Abandoned) => abandoned(call, now),
        State::Over(Outcome::TornDown) => {
            format!("the connection ended after {took}, before {peer} had answered")
        }
        State::Over(Outcome::Pending) => {
            format!("open for {took} when the observation ended{progress}")
        }
        State::Over(Outcome::Unknown) => {
            "bytes were lost while it was open, so nobody can say how it ended".into()
        }
    };
    capital(&text)
}

fn abandoned(call: &Call, now: Timestamp) -> String {
    let doubt = match call.abandoned {
        Some(Confidence::Possible) => "may have stopped",
        Some(Confidence::Probable) => "very likely stopped",
        Some(Confidence::Confirmed) | None => "stopped",
    };
    let after = call.given_up.map_or(String::new(), |at| {
        format!(" after {}", span(at.since(call.sent)))
    });
    let wasted = call.waste(now).map_or(String::new(), |(from, until)| {
        format!(
            "; the server worked on for {} for nobody",
            span(until.since(from))
        )
    });
    format!("the host {doubt} waiting{after} and never told the server{wasted}")
}

/// What is known about the row that is looked at, in short: for the pane under the lists.
pub(crate) fn brief(model: &Model, columns: usize) -> Vec<Line> {
    let mut page = Page::new(columns);
    let ledger = &model.ledger;
    match model.screen {
        Screen::Connections => {
            if let Some(of) = model.current_connection() {
                connection(&mut page, ledger, of);
            }
        }
        Screen::Frames => {
            if let Some((number, _)) = model.current_frame() {
                return super::details::excerpt(number, model, columns);
            }
        }
        Screen::Calls | Screen::Timeline | Screen::Findings => {
            match (model.current_call(), model.current_finding()) {
                (Some((_, call)), _) => why(&mut page, ledger, call, model.now),
                (None, Some((_, found))) if model.screen == Screen::Findings => {
                    verdict_line(&mut page, found);
                    page.prose(1, Ink::Plain, &capital(&printable(&found.finding.message)));
                    steps(&mut page, &found.finding, None);
                }
                _ => {}
            }
        }
    }
    page.lines
}

/// Why a call stands as it does.
fn why(page: &mut Page, ledger: &Ledger, call: &Call, now: Timestamp) {
    page.prose(1, Ink::Plain, &format!("{}.", sentence(call, now)));
    for found in standing(ledger, call) {
        verdict_line(page, found);
        steps(page, &found.finding, Some(call));
        if let Some(spec) = &found.finding.spec {
            let spec = vec![(Ink::Dim, "spec: ".into()), (Ink::Dim, printable(spec))];
            page.hanging(1, 7, spec);
        }
    }
}

/// The findings that stand about a call, the worst first.
pub(super) fn standing<'a>(ledger: &'a Ledger, call: &Call) -> Vec<&'a Found> {
    let places = call.findings.iter();
    let mut found: Vec<&Found> = places
        .filter_map(|at| ledger.findings.get(*at as usize))
        .filter(|found| !found.superseded)
        .collect();
    found.sort_by_key(|found| std::cmp::Reverse(found.finding.severity));
    found
}

/// `abandoned-call  error, confirmed (it is shown), the host's fault`.
pub(super) fn verdict_line(page: &mut Page, found: &Found) {
    let Finding {
        rule,
        severity,
        confidence,
        side,
        ..
    } = &found.finding;
    let sure = match confidence {
        Confidence::Confirmed => "it is shown",
        Confidence::Probable => "hard to explain otherwise",
        Confidence::Possible => "it looks like it",
    };
    let rest = format!(
        "  {}, {} ({sure}); side: {}{}",
        severity.word(),
        confidence.word(),
        side.word(),
        if found.superseded { "; superseded" } else { "" },
    );
    page.spans(
        1,
        vec![(severity_ink(*severity), (*rule).into()), (Ink::Dim, rest)],
    );
}

/// What speaks for a finding, step by step.
pub(super) fn steps(page: &mut Page, finding: &Finding, call: Option<&Call>) {
    let mut step = |at: Option<Timestamp>, kind: &str, detail: &str| {
        let at = at.map_or(String::new(), time);
        let head = format!("{at:>9}  {kind:<16} ");
        page.hanging(
            1,
            29,
            vec![(Ink::Dim, head), (Ink::Plain, capital(&printable(detail)))],
        );
    };
    if let Some(call) = call {
        let what = title(&call.method, call.name.as_deref(), Some(&call.id));
        let who = if call.from == Side::Client {
            "host"
        } else {
            "server"
        };
        step(
            Some(call.sent),
            "request",
            &format!("the {who} sent {what}"),
        );
    }
    for evidence in &finding.evidence {
        step(Some(evidence.at), evidence.kind, &evidence.detail);
    }
    if finding.rule == "abandoned-call" && call.is_some_and(|call| call.cancel.is_none()) {
        step(
            None,
            "no cancellation",
            "no notifications/cancelled was sent for it",
        );
    }
}

/// What is known about a connection, for the pane and the details.
pub(super) fn connection(page: &mut Page, ledger: &Ledger, connection: &Connection) {
    let sides = [
        (
            "host",
            &connection.client,
            &connection.host,
            &connection.client_info,
        ),
        (
            "server",
            &connection.server,
            &connection.tool,
            &connection.server_info,
        ),
    ];
    for (name, party, program, info) in sides {
        let pid = party
            .as_ref()
            .map_or(String::new(), |party| format!("[{}]", party.pid));
        let own = info
            .as_ref()
            .map_or(String::new(), |info| format!(", calls itself {info}"));
        page.pair(name, Ink::Strong, &format!("{program}{pid}{own}"));
        let process = party
            .as_ref()
            .and_then(|party| ledger.processes.get(party.pid));
        if let Some(process) = process {
            let argv: Vec<_> = process.argv.iter().map(|arg| printable(arg)).collect();
            page.pair("", Ink::Dim, &argv.join(" "));
        }
    }
    let revision = connection.revision.as_deref().unwrap_or("not known yet");
    page.pair("revision", Ink::Plain, revision);
    let transport = connection.transport.map_or("?", Word::word);
    let closed = connection
        .closed
        .map_or("open".into(), |at| format!("closed at {}", time(at)));
    let since = time(connection.opened);
    page.pair(
        "transport",
        Ink::Plain,
        &format!("{transport}, since {since}, {closed}"),
    );
    let calls = format!(
        "{}, {} in flight, {} abandoned",
        count(connection.calls.into(), "call"),
        connection.open_calls,
        connection.abandoned
    );
    page.pair("calls", Ink::Plain, &calls);
    let traffic = format!(
        "{}, {}, {} of noise, {}",
        count(connection.messages, "message"),
        size(connection.bytes),
        count(connection.noise.into(), "line"),
        count(connection.gaps.into(), "gap")
    );
    page.pair(
        "traffic",
        if connection.gaps > 0 {
            Ink::Warning
        } else {
            Ink::Plain
        },
        &traffic,
    );
}

pub(crate) const fn state_ink(state: State) -> Ink {
    match state {
        State::Over(Outcome::Abandoned) => Ink::Accent,
        State::Over(Outcome::Failed | Outcome::Unknown) => Ink::Warning,
        State::Over(Outcome::Answered) => Ink::Good,
        State::Running => Ink::Strong,
        State::Over(Outcome::Cancelled | Outcome::TornDown | Outcome::Pending) => Ink::Note,
    }
}

pub(crate) const fn severity_ink(severity: Severity) -> Ink {
    match severity {
        Severity::Error => Ink::Accent,
        Severity::Warning => Ink::Warning,
        Severity::Info => Ink::Note,
    }
}

pub(super) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| {
        first.to_uppercase().chain(chars).collect()
    })
}
