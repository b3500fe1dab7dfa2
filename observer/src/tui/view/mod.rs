//! The model as a picture. Pure: the same model gives the same picture, and nothing changes.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod calls;
mod chrome;
mod connections;
mod others;
mod page;
mod theme;
mod timeline;

use ratatui::Frame as Canvas;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::layout::areas;
use super::model::{Ink, Model, Screen, title};
use super::text::{cut, width};
use crate::jsonrpc::Id;
pub use theme::Theme;

/// Draws everything.
pub(crate) fn view(model: &Model, theme: &Theme, canvas: &mut Canvas<'_>) {
    let areas = areas(model);
    chrome::header(model, theme, canvas, areas.header);
    chrome::tabs(model, theme, canvas, areas.tabs);
    chrome::bottom(model, theme, canvas, areas.keys);
    if model.pages.is_empty() {
        chrome::banner(model, theme, canvas, areas.banner);
        match model.screen {
            Screen::Connections => connections::connections(model, theme, canvas, &areas),
            Screen::Calls => calls::calls(model, theme, canvas, &areas),
            Screen::Findings => others::findings(model, theme, canvas, &areas),
            Screen::Frames => others::frames(model, theme, canvas, &areas),
            Screen::Timeline => timeline::timeline(model, theme, canvas, &areas),
        }
        page::pane(model, theme, canvas, areas.pane);
        page::printed(model, theme, canvas, areas.printed);
    } else {
        page::page(model, theme, canvas, areas.rows);
    }
    if !theme.unicode {
        to_ascii(canvas);
    }
}

/// Puts something that every terminal can show in the place of all others.
fn to_ascii(canvas: &mut Canvas<'_>) {
    for cell in &mut canvas.buffer_mut().content {
        let plain = match cell.symbol() {
            symbol if symbol.is_ascii() => continue,
            "…" => "~",
            "–" => "-",
            "•" => "*",
            "→" | "▸" => ">",
            "←" => "<",
            "↑" => "^",
            "↓" | "▾" => "v",
            _ => "?",
        };
        cell.set_symbol(plain);
    }
}

/// Pieces of text in their styles, cut to the width of their line.
struct Row<'a> {
    theme: &'a Theme,
    spans: Vec<Span<'static>>,
    room: usize,
}

impl<'a> Row<'a> {
    fn new(theme: &'a Theme, columns: u16) -> Self {
        Self {
            theme,
            spans: Vec::new(),
            room: usize::from(columns),
        }
    }

    fn push(&mut self, ink: Ink, text: &str) -> &mut Self {
        let style = self.theme.ink(ink);
        self.styled(style, text)
    }

    fn styled(&mut self, style: Style, text: &str) -> &mut Self {
        let text = cut(text, self.room);
        self.room -= width(&text).min(self.room);
        self.spans.push(Span::styled(text, style));
        self
    }

    /// What comes next stands at the right end.
    fn fill(&mut self, columns: usize) -> &mut Self {
        let blanks = self.room.saturating_sub(columns);
        self.push(Ink::Plain, &" ".repeat(blanks))
    }

    fn draw(self, canvas: &mut Canvas<'_>, area: Rect) {
        canvas.render_widget(Line::from(self.spans), area);
    }

    /// Draws it as the row that is looked at: over its whole width, and in one colour, since some
    /// of the others can hardly be read when they are turned round.
    fn draw_chosen(mut self, canvas: &mut Canvas<'_>, area: Rect, chosen: bool) {
        if chosen {
            self.fill(0);
            for span in &mut self.spans {
                span.style = self.theme.chosen();
            }
        }
        self.draw(canvas, area);
    }
}

/// What a call is called: without its method where there is no room for that, since its name and
/// id are what tells it from others.
fn fitting_title(method: &str, name: Option<&str>, id: Option<&Id>, columns: usize) -> String {
    let whole = title(method, name, id);
    match name {
        Some(name) if width(&whole) > columns => title(name, None, id),
        _ => whole,
    }
}

/// The lines of an area, from its top.
fn lines(area: Rect) -> impl Iterator<Item = Rect> {
    (area.top()..area.bottom()).map(move |y| Rect {
        y,
        height: 1,
        ..area
    })
}
