//! What the mouse does: the wheel moves, a click looks at a row, another one opens it.

use ratatui::crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use super::{command, show};
use crate::tui::keys::Action;
use crate::tui::layout::{areas, tabs};
use crate::tui::message::Effect;
use crate::tui::model::Model;

/// So many rows at a turn of the wheel.
const WHEEL: isize = 3;

pub(super) fn mouse(model: &mut Model, event: MouseEvent) -> Vec<Effect> {
    match event.kind {
        MouseEventKind::ScrollDown => command::step(model, WHEEL),
        MouseEventKind::ScrollUp => command::step(model, -WHEEL),
        MouseEventKind::Down(MouseButton::Left) => {
            model.stale = true;
            model.touched = true;
            return click(model, Position::new(event.column, event.row));
        }
        _ => return Vec::new(),
    }
    model.stale = true;
    model.touched = true;
    Vec::new()
}

fn click(model: &mut Model, at: Position) -> Vec<Effect> {
    let areas = areas(model);
    if areas.tabs.contains(at) {
        let mut left = 0;
        for (screen, _, columns) in tabs(model) {
            if (left..left + columns).contains(&at.x) {
                show(model, screen);
            }
            left += columns;
        }
        return Vec::new();
    }
    if !areas.rows.contains(at) || model.prompt.is_some() {
        return Vec::new();
    }
    let line = usize::from(at.y - areas.rows.y);
    if let Some((_, reading)) = model.pages.last_mut() {
        let place = reading.top + line;
        let again = reading.cursor == place;
        reading.go(place);
        return if again {
            command::act(model, Action::Fold)
        } else {
            Vec::new()
        };
    }
    let height = usize::from(areas.rows.height);
    let list = model.list_mut(model.screen);
    let window = list.window(height);
    let place = window.start + line;
    if !window.contains(&place) {
        return Vec::new();
    }
    let again = list.cursor() == place;
    list.follow = false;
    list.go(place);
    if again {
        command::open_row(model)
    } else {
        Vec::new()
    }
}
