//! The calls: what was asked, how it stands, for how long.

use ratatui::Frame as Canvas;

use super::{Row, Theme, fitting_title, lines};
use crate::record::Word;
use crate::session::Side;
use crate::tui::layout::Areas;
use crate::tui::model::{Call, Column, Ink, Model, State, state_ink};
use crate::tui::text::{left, right};
use crate::verdict::Outcome;
use crate::wording::{size, span, time};

/// How wide the columns are: those that stay the same.
const TIME: usize = 10;
const STATE: usize = 14;
const TOOK: usize = 9;
const SIZE: usize = 9;

/// From so many columns on there is room for the connection's name.
const NAMES_FROM: u16 = 116;

const NAMES: usize = 30;

pub(super) fn calls(model: &Model, theme: &Theme, canvas: &mut Canvas<'_>, areas: &Areas) {
    let columns = areas.rows.width;
    let several = model.ledger.connections.len() > 1;
    let sizes = columns >= 76;
    let names = match (several, columns >= NAMES_FROM) {
        (_, true) => NAMES,
        (true, false) => 4,
        (false, false) => 0,
    };
    let fixed = 2 + TIME + 3 + names + STATE + TOOK + if sizes { 2 * SIZE } else { 0 } + 1;
    let flexible = usize::from(columns).saturating_sub(fixed).max(8);

    let (sort, reverse) = model.sort;
    let head = |name: &str, column: Column| match (sort == column, reverse) {
        (true, false) => format!("{name}↑"),
        (true, true) => format!("{name}↓"),
        (false, _) => name.to_owned(),
    };
    let mut row = Row::new(theme, columns);
    row.push(Ink::Dim, &left("", 2));
    row.push(Ink::Dim, &right(&head("SENT", Column::Time), TIME));
    row.push(Ink::Dim, "   ");
    row.push(
        Ink::Dim,
        &left(if names > 4 { "CONNECTION" } else { "CON" }, names),
    );
    row.push(Ink::Dim, &left(&head("CALL", Column::Name), flexible));
    row.push(Ink::Dim, &left(&head("STATE", Column::State), STATE));
    row.push(Ink::Dim, &right(&head("TOOK", Column::Took), TOOK));
    if sizes {
        row.push(Ink::Dim, &right(&head("SENT B", Column::Size), SIZE));
        row.push(Ink::Dim, &right("GOT B", SIZE));
    }
    row.draw(canvas, areas.heads);

    let window = model.calls.window(usize::from(areas.rows.height));
    for (place, area) in window.zip(lines(areas.rows)) {
        let Some(call) = model
            .calls
            .rows()
            .get(place)
            .and_then(|row| model.ledger.calls.get(*row))
        else {
            continue;
        };
        let mut row = Row::new(theme, columns);
        let state = call.state();
        let ink = state_ink(state);
        row.push(
            ink,
            if call.findings.is_empty() {
                "  "
            } else {
                " •"
            },
        );
        row.push(Ink::Dim, &right(&time(call.sent), TIME));
        row.push(
            Ink::Dim,
            &format!(" {} ", theme.arrow(call.from == Side::Client)),
        );
        connection(&mut row, model, call, names);
        let (name, room) = (call.name.as_deref(), flexible.saturating_sub(1));
        let what = fitting_title(&call.method, name, Some(&call.id), room);
        let quiet = call.name.is_none() && call.findings.is_empty();
        row.push(
            if quiet { Ink::Dim } else { Ink::Plain },
            &format!("{} ", left(&what, room)),
        );
        let doubt = if call.is_doubtful() { "?" } else { "" };
        row.push(
            ink,
            &left(
                &format!("{} {}{doubt}", theme.sign(state), state.word()),
                STATE,
            ),
        );
        row.push(Ink::Plain, &right(&span(call.took(model.now)), TOOK));
        if sizes {
            row.push(Ink::Dim, &right(&size(call.request_bytes), SIZE));
            let got = call.response_bytes.map_or("–".into(), size);
            row.push(Ink::Dim, &right(&got, SIZE));
        }
        row.draw_chosen(canvas, area, place == model.calls.cursor());
    }
    if model.calls.len() == 0 {
        super::page::empty(model, theme, canvas, areas.rows, "No calls");
    }
}

fn connection(row: &mut Row<'_>, model: &Model, call: &Call, columns: usize) {
    let text = match model.ledger.connections.get(&call.conn) {
        Some(connection) if columns > 4 => {
            let server = &connection.tool;
            let host = &connection.host;
            format!("{} {host} → {server}", call.conn)
        }
        _ => call.conn.to_string(),
    };
    if columns > 0 {
        row.push(Ink::Dim, &format!("{} ", left(&text, columns - 1)));
    } else {
        row.push(Ink::Dim, "");
    }
}

/// What a state is called, with its sign.
pub(super) fn state(theme: &Theme, call: &Call) -> String {
    let state = call.state();
    let sure = match (call.abandoned, state) {
        (None, _) => String::new(),
        (Some(sure), State::Over(Outcome::Abandoned)) => format!(" ({})", sure.word()),
        (Some(sure), _) => format!(", and abandoned? ({})", sure.word()),
    };
    format!("{} {}{sure}", theme.sign(state), state.word())
}
