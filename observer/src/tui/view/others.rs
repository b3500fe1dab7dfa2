//! The connections, the findings, the frames.

use ratatui::Frame as Canvas;
use ratatui::style::Modifier;

use super::{Row, Theme, lines};
use crate::record::{Word, printable};
use crate::session::Side;
use crate::tui::layout::Areas;
use crate::tui::model::{Ink, Kind, Model, Place, severity_ink, title};
use crate::tui::text::{left, right, width};
use crate::wording::{size, time};

pub(super) fn connections(model: &Model, theme: &Theme, canvas: &mut Canvas<'_>, areas: &Areas) {
    let columns = areas.rows.width;
    let flexible = usize::from(columns).saturating_sub(5 + 12 + 8 + 7 + 7 + 11 + 10);
    let (host, server) = (flexible / 2, flexible - flexible / 2);
    let mut row = Row::new(theme, columns);
    let heads = [
        right("#", 3),
        "  ".into(),
        left("HOST", host),
        left("SERVER", server),
        left("REVISION", 12),
        left("STATE", 8),
        right("OPEN", 7),
        right("CALLS", 7),
        right("ABANDONED", 11),
        right("FINDINGS", 10),
    ];
    row.push(Ink::Dim, &heads.concat());
    row.draw(canvas, areas.heads);
    let window = model.connections.window(usize::from(areas.rows.height));
    for (place, area) in window.clone().zip(lines(areas.rows)) {
        let Some(connection) = model.ledger.connections.values().nth(place) else {
            continue;
        };
        let mut row = Row::new(theme, columns);
        let closed = connection.closed.is_some();
        let plain = if closed { Ink::Dim } else { Ink::Plain };
        row.push(
            Ink::Dim,
            &format!("{}  ", right(&connection.id.to_string(), 3)),
        );
        row.push(
            plain,
            &format!("{} ", left(&connection.host, host.saturating_sub(1))),
        );
        row.push(
            plain,
            &format!("{} ", left(&connection.tool, server.saturating_sub(1))),
        );
        row.push(
            Ink::Dim,
            &left(connection.revision.as_deref().unwrap_or("?"), 12),
        );
        row.push(
            if closed { Ink::Dim } else { Ink::Good },
            &left(connection.word(), 8),
        );
        row.push(Ink::Plain, &right(&connection.open_calls.to_string(), 7));
        row.push(Ink::Plain, &right(&connection.calls.to_string(), 7));
        let ink = if connection.abandoned > 0 {
            Ink::Accent
        } else {
            Ink::Dim
        };
        row.push(ink, &right(&connection.abandoned.to_string(), 11));
        let ink = if connection.findings > 0 {
            Ink::Warning
        } else {
            Ink::Dim
        };
        row.push(ink, &right(&connection.findings.to_string(), 10));
        row.draw_chosen(canvas, area, place == model.connections.cursor());
    }
    if window.is_empty() {
        super::page::empty(model, theme, canvas, areas.rows, "No connections");
    }
}

pub(super) fn findings(model: &Model, theme: &Theme, canvas: &mut Canvas<'_>, areas: &Areas) {
    let columns = areas.rows.width;
    let mut row = Row::new(theme, columns);
    let heads = [
        left("", 2),
        right("FOUND", 9),
        "  ".into(),
        left("SEVERITY", 10),
        left("SURE", 11),
        left("RULE", 20),
        "WHAT".into(),
    ];
    row.push(Ink::Dim, &heads.concat());
    row.draw(canvas, areas.heads);
    let window = model.findings.window(usize::from(areas.rows.height));
    for (place, area) in window.clone().zip(lines(areas.rows)) {
        let at = model.findings.rows().get(place).copied().unwrap_or(0);
        let Some(found) = model.ledger.findings.get(at as usize) else {
            continue;
        };
        let finding = &found.finding;
        let ink = severity_ink(finding.severity);
        let mut row = Row::new(theme, columns);
        row.push(Ink::Plain, "  ");
        row.push(Ink::Dim, &format!("{}  ", right(&time(finding.at), 9)));
        let severity = finding.severity;
        row.push(
            ink,
            &left(
                &format!("{} {}", theme.severity(severity), severity.word()),
                10,
            ),
        );
        row.push(Ink::Plain, &left(finding.confidence.word(), 11));
        row.push(ink, &left(finding.rule, 20));
        let what = match &finding.method {
            Some(method) => title(method, finding.name.as_deref(), finding.id.as_ref()),
            None => printable(&finding.message),
        };
        row.push(Ink::Plain, &what);
        row.draw_chosen(canvas, area, place == model.findings.cursor());
    }
    if window.is_empty() {
        super::page::empty(model, theme, canvas, areas.rows, "No findings");
    }
}

pub(super) fn frames(model: &Model, theme: &Theme, canvas: &mut Canvas<'_>, areas: &Areas) {
    let columns = areas.rows.width;
    let several = model.ledger.connections.len() > 1;
    let conn = if several { 4 } else { 0 };
    let mut row = Row::new(theme, columns);
    let heads = [
        right("TIME", 11),
        "  ".into(),
        left("CON", conn),
        left("", 2),
        left("WHAT", 15),
        right("SIZE", 9),
        "  ".into(),
        "TEXT".into(),
    ];
    row.push(Ink::Dim, &heads.concat());
    row.draw(canvas, areas.heads);
    let window = model.frames.window(usize::from(areas.rows.height));
    for (place, area) in window.clone().zip(lines(areas.rows)) {
        let number = model.frames.rows().get(place).copied().unwrap_or(0);
        let Some(frame) = model.ledger.frames.get(number) else {
            continue;
        };
        let (word, ink) = kind(frame.kind);
        let mut row = Row::new(theme, columns);
        let marked = if model.marked == Some(number) {
            "m"
        } else {
            " "
        };
        row.push(Ink::Key, marked);
        row.push(Ink::Dim, &format!("{}  ", right(&time(frame.at), 10)));
        let of = match frame.place {
            Place::Connection(conn) => conn.to_string(),
            Place::Process(_) | Place::Everything => String::new(),
        };
        row.push(Ink::Dim, &left(&of, conn));
        let arrow = frame
            .from
            .map_or(" ", |from| theme.arrow(from == Side::Client));
        row.push(ink, &format!("{arrow} {}", left(word, 15)));
        let bytes = if frame.bytes > 0 {
            size(frame.bytes)
        } else {
            String::new()
        };
        row.push(Ink::Dim, &format!("{}  ", right(&bytes, 9)));
        row.push(ink, &frame.label);
        if let Some(gist) = frame.gist() {
            let end = gist.floor_char_boundary(usize::from(columns));
            row.push(Ink::Dim, &format!("  {}", printable(&gist[..end])));
        }
        row.draw_chosen(canvas, area, place == model.frames.cursor());
    }
    if window.is_empty() {
        super::page::empty(model, theme, canvas, areas.rows, "No frames");
    }
}

const fn kind(kind: Kind) -> (&'static str, Ink) {
    match kind {
        Kind::Request => ("request", Ink::Plain),
        Kind::Notification => ("notification", Ink::Plain),
        Kind::Answer => ("answer", Ink::Plain),
        Kind::Error => ("error", Ink::Warning),
        Kind::Noise => ("noise", Ink::Warning),
        Kind::Gap => ("GAP", Ink::Accent),
        Kind::Loss => ("LOSS", Ink::Accent),
        Kind::Connection => ("connection", Ink::Note),
        Kind::Process => ("process", Ink::Note),
        Kind::Interrupt => ("interrupt", Ink::Note),
        Kind::Quiet => ("", Ink::Dim),
    }
}

/// A line across, with a title in it.
pub(super) fn rule<'a>(theme: &'a Theme, columns: u16, title: &str, ink: Ink) -> Row<'a> {
    let mut row = Row::new(theme, columns);
    row.push(Ink::Dim, theme.rule());
    row.styled(
        theme.ink(ink).add_modifier(Modifier::BOLD),
        &format!(" {title} "),
    );
    let rest = usize::from(columns).saturating_sub(width(title) + 3);
    row.push(Ink::Dim, &theme.rule().repeat(rest));
    row
}
