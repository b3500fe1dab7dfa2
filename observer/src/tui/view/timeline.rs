//! The calls over time: a bar each, marks where something cut in, wasted work hatched.

use ratatui::Frame as Canvas;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::{Row, Theme, fitting_title, lines};
use crate::capture::Timestamp;
use crate::session::Event;
use crate::tui::layout::Areas;
use crate::tui::model::{Body, Call, Ink, Kind, Model, interrupt, state_ink};
use crate::tui::text::{left, width};
use crate::wording::{span, time};

/// Marks of this many interrupts are drawn.
const MARKS: usize = 64;

/// Frames that are looked through for interrupts.
const REACH: usize = 20_000;

/// Columns from one tick to the next.
const TICK: usize = 14;

/// Time on columns.
struct Scale {
    start: u64,
    span: u64,
    columns: u64,
}

impl Scale {
    /// The column of a moment; `None` where it is out of view.
    fn column(&self, at: Timestamp) -> Option<usize> {
        let since = at.as_nanos().checked_sub(self.start)?;
        if since > self.span {
            return None;
        }
        let column = u128::from(since) * u128::from(self.columns.saturating_sub(1));
        usize::try_from(column / u128::from(self.span.max(1))).ok()
    }

    /// The moment of a column.
    fn moment(&self, column: u64) -> Timestamp {
        let last = self.columns.saturating_sub(1).max(1);
        let since = u128::from(self.span) * u128::from(column) / u128::from(last);
        let since = u64::try_from(since).unwrap_or(u64::MAX);
        Timestamp::from_nanos(self.start.saturating_add(since))
    }

    /// The columns from one moment to another, as far as they are in view.
    fn columns(&self, from: Timestamp, to: Timestamp) -> Option<(usize, usize)> {
        let end = Timestamp::from_nanos(self.start.saturating_add(self.span));
        let start = Timestamp::from_nanos(self.start);
        if to < start || from > end {
            return None;
        }
        Some((self.column(from.max(start))?, self.column(to.min(end))?))
    }
}

pub(super) fn timeline(model: &Model, theme: &Theme, canvas: &mut Canvas<'_>, areas: &Areas) {
    let columns = areas.rows.width;
    let names = (usize::from(columns) * 3 / 10).clamp(12, 40);
    let (start, end) = model.window.unwrap_or_else(|| model.whole());
    let scale = Scale {
        start: start.as_nanos(),
        span: end.as_nanos().saturating_sub(start.as_nanos()),
        columns: u64::from(columns).saturating_sub(names as u64 + 1),
    };
    axis(theme, canvas, areas.heads, names, &scale);
    let marks = interrupts(model, &scale);
    let window = model.calls.window(usize::from(areas.rows.height));
    for (place, area) in window.clone().zip(lines(areas.rows)) {
        let Some(call) = model
            .calls
            .rows()
            .get(place)
            .and_then(|row| model.ledger.calls.get(*row))
        else {
            continue;
        };
        let mut row = Row::new(theme, columns);
        let ink = state_ink(call.state());
        let name = call.name.as_deref();
        let what = fitting_title(&call.method, name, Some(&call.id), names - 2);
        row.push(ink, &format!("{} ", theme.sign(call.state())));
        row.push(Ink::Plain, &left(&what, names - 2));
        row.push(Ink::Dim, " ");
        for (style, cell) in bar(model, theme, call, &scale, &marks) {
            row.styled(style, cell);
        }
        row.draw_chosen(canvas, area, place == model.calls.cursor());
    }
    let legend = Rect {
        y: areas.rows.bottom().saturating_sub(1),
        height: 1,
        ..areas.rows
    };
    if window.len() < usize::from(areas.rows.height) {
        self::legend(theme, canvas, legend, &marks);
    }
    if model.calls.len() == 0 {
        super::page::empty(model, theme, canvas, areas.rows, "No calls");
    }
}

/// The cells of a call's line.
fn bar(
    model: &Model,
    theme: &Theme,
    call: &Call,
    scale: &Scale,
    marks: &[(usize, &'static str)],
) -> Vec<(Style, &'static str)> {
    let count = usize::try_from(scale.columns).unwrap_or(0);
    let mut cells = vec![(Style::new(), " "); count];
    for (column, _) in marks {
        if let Some(cell) = cells.get_mut(*column) {
            *cell = (theme.ink(Ink::Dim), theme.mark());
        }
    }
    let mut paint = |from, to, style: Style, sign| {
        if let Some((first, last)) = scale.columns(from, to) {
            for cell in cells.iter_mut().take(last + 1).skip(first) {
                *cell = (style, sign);
            }
        }
    };
    let end = call.end(model.now);
    let style = theme.ink(state_ink(call.state()));
    paint(call.sent, end, style, theme.bar());
    if let Some((from, until)) = call.waste(model.now) {
        paint(from, until, theme.ink(Ink::Accent), theme.waste());
        paint(from, from, theme.ink(Ink::Accent), "x");
    }
    if let Some(cancel) = &call.cancel {
        paint(cancel.at, cancel.at, theme.ink(Ink::Note), "c");
    }
    if call.is_open() && model.ended.is_none() {
        paint(end, end, style, ">");
    }
    cells
}

fn axis(theme: &Theme, canvas: &mut Canvas<'_>, area: Rect, names: usize, scale: &Scale) {
    let mut row = Row::new(theme, area.width);
    let shown = format!(
        "{} in view",
        span(std::time::Duration::from_nanos(scale.span))
    );
    row.push(Ink::Dim, &left(&shown, names + 1));
    row.push(Ink::Dim, &ticks(scale));
    row.draw(canvas, area);
}

/// A tick in each [`TICK`] columns, and one at the right end.
fn ticks(scale: &Scale) -> String {
    let last = scale.columns.saturating_sub(1);
    let end = format!("{}|", time(scale.moment(last)));
    let columns = usize::try_from(scale.columns).unwrap_or(0);
    let room = columns.saturating_sub(width(&end));
    let mut text = String::new();
    for column in (0..scale.columns).step_by(TICK) {
        let tick = format!("|{}", time(scale.moment(column)));
        if width(&text) + width(&tick) >= room {
            break;
        }
        text += &left(&tick, TICK.min(room - width(&text)));
    }
    left(&text, room) + &end
}

/// Where signals and keys cut in, and what they were.
fn interrupts(model: &Model, scale: &Scale) -> Vec<(usize, &'static str)> {
    let frames = model.ledger.frames.iter().rev().take(REACH);
    frames
        .filter(|(_, frame)| frame.kind == Kind::Interrupt)
        .filter_map(|(_, frame)| {
            let what = match &frame.body {
                Body::Here(event) => match &**event {
                    Event::Interrupt { kind, .. } => interrupt(*kind),
                    _ => "a pause",
                },
                Body::InLog(_) | Body::Gone => "an interrupt",
            };
            Some((scale.column(frame.at)?, what))
        })
        .take(MARKS)
        .collect()
}

fn legend(theme: &Theme, canvas: &mut Canvas<'_>, area: Rect, marks: &[(usize, &'static str)]) {
    let mut row = Row::new(theme, area.width);
    row.push(Ink::Accent, &format!(" x{} ", theme.waste().repeat(3)));
    row.push(Ink::Dim, "work for nobody   ");
    row.push(Ink::Note, "c ");
    row.push(Ink::Dim, "cancelled   ");
    let mut kinds: Vec<_> = marks.iter().map(|(_, what)| *what).collect();
    kinds.sort_unstable();
    kinds.dedup();
    if !kinds.is_empty() {
        let text = format!("{} {}", theme.mark(), kinds.join(", "));
        row.push(Ink::Dim, &text);
    }
    row.draw(canvas, area);
}
