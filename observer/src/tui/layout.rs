//! Where what is on the screen: known to `view`, which draws there, and to `update`, which must
//! know how many rows there are and what the mouse points at.

use ratatui::layout::Rect;

use super::model::{Model, Screen};

/// The parts of the screen. A part that has no room is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Areas {
    pub(crate) header: Rect,
    pub(crate) tabs: Rect,
    pub(crate) banner: Rect,
    /// The names of the columns.
    pub(crate) heads: Rect,
    pub(crate) rows: Rect,
    /// What is known about the row that is looked at.
    pub(crate) pane: Rect,
    /// What the observed command prints.
    pub(crate) printed: Rect,
    pub(crate) keys: Rect,
}

/// From so many lines on there is room for a pane under the list.
const PANE_FROM: u16 = 20;

/// From so many columns on a command's output stands beside the calls.
const BESIDE_FROM: u16 = 110;

pub(crate) fn areas(model: &Model) -> Areas {
    let (columns, lines) = model.size;
    let mut areas = Areas::default();
    let mut top = 0;
    let mut line = |wanted: u16| {
        let height = wanted.min(lines.saturating_sub(1).saturating_sub(top));
        let area = Rect::new(0, top, columns, height);
        top += height;
        area
    };
    areas.header = line(1);
    areas.tabs = line(1);
    areas.keys = Rect::new(0, lines.saturating_sub(1), columns, lines.min(1));
    if !model.pages.is_empty() {
        areas.rows = line(lines);
        return areas;
    }
    areas.banner = line(1);
    areas.heads = line(1);
    let mut body = line(lines);
    if model.printed.is_some() {
        areas.printed = split_printed(&mut body);
    }
    if lines >= PANE_FROM {
        let pane = (lines * 2 / 5).min(body.height / 2);
        areas.pane = Rect {
            y: body.bottom() - pane,
            height: pane,
            ..body
        };
        body.height -= pane;
    }
    areas.heads.width = body.width;
    areas.rows = body;
    areas
}

/// Beside the calls where there is room, under them where there is none.
fn split_printed(body: &mut Rect) -> Rect {
    if body.width >= BESIDE_FROM {
        let width = body.width * 2 / 5;
        body.width -= width;
        Rect {
            x: body.right(),
            width,
            ..*body
        }
    } else {
        let height = body.height / 3;
        body.height -= height;
        Rect {
            y: body.bottom(),
            height,
            ..*body
        }
    }
}

/// The screens' names on the second line, and the columns that each takes.
pub(crate) fn tabs(model: &Model) -> Vec<(Screen, String, u16)> {
    let narrow = model.size.0 < 76;
    let tab = |(at, screen): (usize, Screen)| {
        let count = match screen {
            // It has the rows of the calls.
            Screen::Timeline => None,
            _ => Some(model.list(screen).len()),
        };
        let count = count
            .filter(|_| !narrow)
            .map_or(String::new(), |count| format!(" {count}"));
        let text = format!(" {} {}{count} ", at + 1, screen.title());
        let columns = u16::try_from(text.len()).unwrap_or(u16::MAX);
        (screen, text, columns)
    };
    Screen::ALL.into_iter().enumerate().map(tab).collect()
}
