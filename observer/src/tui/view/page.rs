//! Pages of text, and the panes beside the lists.

use ratatui::Frame as Canvas;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::others::rule;
use super::{Row, Theme, calls, lines};
use crate::tui::model::{Connection, Ink, Line, Model, Screen, brief, state_ink, title};
use crate::tui::text::{width, wrap};

/// A page that fills the screen: its title, its lines, how much of it is seen.
pub(super) fn page(model: &Model, theme: &Theme, canvas: &mut Canvas<'_>, area: Rect) {
    let Some((_, reading)) = model.pages.last() else {
        return;
    };
    let shown = reading.lines.iter().enumerate().skip(reading.top);
    for ((at, line), area) in shown.zip(lines(area)) {
        let mut row = draw(theme, area.width, line);
        if !reading.search.is_empty() && line.contains(&reading.search) {
            for span in &mut row.spans {
                span.style = span
                    .style
                    .add_modifier(Modifier::BOLD | Modifier::UNDERLINED);
            }
        }
        row.draw_chosen(canvas, area, at == reading.cursor);
    }
}

fn draw<'a>(theme: &'a Theme, columns: u16, line: &Line) -> Row<'a> {
    let mut row = Row::new(theme, columns);
    row.push(Ink::Plain, " ");
    for (ink, text) in &line.spans {
        row.push(*ink, text);
    }
    row
}

/// What is known about the row that is looked at, in short.
pub(super) fn pane(model: &Model, theme: &Theme, canvas: &mut Canvas<'_>, area: Rect) {
    if area.height < 2 {
        return;
    }
    let (heading, ink) = heading(model, theme);
    let (first, rest) = (
        Rect { height: 1, ..area },
        Rect {
            y: area.y + 1,
            height: area.height - 1,
            ..area
        },
    );
    rule(theme, area.width, &heading, ink).draw(canvas, first);
    let page = brief(model, usize::from(area.width).saturating_sub(2));
    let left_out = page.len() > usize::from(rest.height);
    for (line, area) in page.iter().zip(lines(rest)) {
        draw(theme, area.width, line).draw(canvas, area);
    }
    if left_out {
        let more = " Enter: more ";
        let wide = u16::try_from(width(more)).unwrap_or(0).min(area.width);
        let corner = Rect {
            x: area.right() - wide,
            width: wide,
            ..first
        };
        let mut row = Row::new(theme, wide);
        row.push(Ink::Dim, more);
        row.draw(canvas, corner);
    }
}

fn heading(model: &Model, theme: &Theme) -> (String, Ink) {
    match (model.screen, model.current_call()) {
        (Screen::Calls | Screen::Timeline | Screen::Findings, Some((_, call))) => {
            let what = title(&call.method, call.name.as_deref(), Some(&call.id));
            (
                format!("{what}  {}", calls::state(theme, call)),
                state_ink(call.state()),
            )
        }
        (Screen::Frames, _) => {
            let frame = model.current_frame();
            (
                frame.map_or(String::new(), |(_, frame)| frame.label.to_string()),
                Ink::Plain,
            )
        }
        (Screen::Connections, _) => {
            let connection = model.current_connection();
            (
                connection.map_or(String::new(), Connection::title),
                Ink::Plain,
            )
        }
        (Screen::Findings, None) => {
            let found = model.current_finding();
            (
                found.map_or(String::new(), |(_, found)| found.finding.rule.to_owned()),
                Ink::Warning,
            )
        }
        _ => (String::new(), Ink::Plain),
    }
}

/// The last lines that the observed command has printed.
pub(super) fn printed(model: &Model, theme: &Theme, canvas: &mut Canvas<'_>, area: Rect) {
    let Some(printed) = model.printed.as_ref().filter(|_| area.height > 1) else {
        return;
    };
    let beside = area.x > 0;
    let area = if beside {
        Rect {
            x: area.x + 1,
            width: area.width.saturating_sub(1),
            ..area
        }
    } else {
        area
    };
    rule(theme, area.width, "the command's output", Ink::Plain)
        .draw(canvas, Rect { height: 1, ..area });
    let rest = Rect {
        y: area.y + 1,
        height: area.height - 1,
        ..area
    };
    let open = Some(printed.open()).filter(|line| !line.is_empty());
    let height = usize::from(rest.height);
    let newest = printed.lines.iter().cloned().chain(open);
    let newest: Vec<String> = newest.rev().take(height).collect();
    let columns = usize::from(area.width);
    let all = newest.iter().rev().flat_map(|line| wrap(line, columns));
    let all: Vec<String> = all.collect();
    let from = all.len().saturating_sub(height);
    for (text, area) in all[from..].iter().zip(lines(rest)) {
        let mut row = Row::new(theme, area.width);
        row.push(Ink::Plain, text);
        row.draw(canvas, area);
    }
}

/// Why there are no rows.
pub(super) fn empty(model: &Model, theme: &Theme, canvas: &mut Canvas<'_>, area: Rect, what: &str) {
    let filtered = !model.filter.1.is_empty() || model.only.is_some();
    let why = match (filtered, model.source.live && model.ended.is_none()) {
        (true, _) => format!("{what} that the filter shows. Esc drops it."),
        (false, true) => format!("{what} yet. Hosts and servers that talk will turn up here."),
        (false, false) => format!("{what}."),
    };
    if let Some(line) = lines(area).nth(1) {
        let mut row = Row::new(theme, area.width);
        row.push(Ink::Dim, &format!("  {why}"));
        row.draw(canvas, line);
    }
}
