//! The findings, the frames.

use ratatui::Frame as Canvas;
use ratatui::style::Modifier;

use super::{Row, Theme, fitting_title, lines};
use crate::record::{Word, printable};
use crate::session::Side;
use crate::tui::layout::Areas;
use crate::tui::model::{Ink, Kind, Model, Place, severity_ink};
use crate::tui::text::{left, right, width};
use crate::wording::{size, time};

/// With fewer columns than this, what the pane tells as well is left out.
const NARROW: u16 = 76;

/// How wide the word is that says how sure a finding is.
const SURE: usize = 11;

pub(super) fn findings(model: &Model, theme: &Theme, canvas: &mut Canvas<'_>, areas: &Areas) {
    let columns = areas.rows.width;
    let narrow = columns < NARROW;
    // Where there is little room, the sign must do for the severity.
    let (found_at, severity_wide) = if narrow { (0, 2) } else { (11, 10) };
    let rule_wide = if columns < 100 { 20 } else { 27 };
    let fixed = 2 + found_at + severity_wide + SURE + rule_wide;
    let mut row = Row::new(theme, columns);
    let heads = [
        left("", 2),
        left(&right("FOUND", 9), found_at),
        left(if narrow { "" } else { "SEVERITY" }, severity_wide),
        left("SURE", SURE),
        left("RULE", rule_wide),
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
        row.push(Ink::Dim, &left(&right(&time(finding.at), 9), found_at));
        let severity = finding.severity;
        let word = if narrow { "" } else { severity.word() };
        let severity = format!("{} {word}", theme.severity(severity));
        row.push(ink, &left(&severity, severity_wide));
        row.push(Ink::Plain, &left(finding.confidence.word(), SURE));
        row.push(ink, &format!("{} ", left(finding.rule, rule_wide - 1)));
        let room = usize::from(columns).saturating_sub(fixed);
        let what = match &finding.method {
            Some(method) => {
                let (name, id) = (finding.name.as_deref(), finding.id.as_ref());
                fitting_title(method, name, id, room)
            }
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
    let (word_wide, size_wide) = if columns < NARROW { (13, 0) } else { (15, 11) };
    let mut row = Row::new(theme, columns);
    let heads = [
        right("TIME", 11),
        "  ".into(),
        left("CON", conn),
        left("", 2),
        left("WHAT", word_wide),
        left(&right("SIZE", 9), size_wide),
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
        row.push(ink, &format!("{arrow} {}", left(word, word_wide)));
        let bytes = if frame.bytes > 0 {
            size(frame.bytes)
        } else {
            String::new()
        };
        row.push(Ink::Dim, &left(&right(&bytes, 9), size_wide));
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
    if title.is_empty() {
        row.push(Ink::Dim, &theme.rule().repeat(usize::from(columns)));
        return row;
    }
    row.push(Ink::Dim, theme.rule());
    row.styled(
        theme.ink(ink).add_modifier(Modifier::BOLD),
        &format!(" {title} "),
    );
    let rest = usize::from(columns).saturating_sub(width(title) + 3);
    row.push(Ink::Dim, &theme.rule().repeat(rest));
    row
}
