//! The connections: who talks to whom. The names have room whatever else has none.

use ratatui::Frame as Canvas;

use super::{Row, Theme, lines};
use crate::tui::layout::Areas;
use crate::tui::model::{Connection, Ink, Model};
use crate::tui::text::{left, right, width};

/// A column beside the names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Revision,
    State,
    Open,
    Calls,
    Abandoned,
    Findings,
}

/// In their order on the screen.
const COLUMNS: [Column; 6] = [
    Column::Revision,
    Column::State,
    Column::Open,
    Column::Calls,
    Column::Abandoned,
    Column::Findings,
];

/// What is left out first where there is no room comes last.
const BY_WEIGHT: [Column; 6] = [
    Column::Abandoned,
    Column::Calls,
    Column::Open,
    Column::State,
    Column::Findings,
    Column::Revision,
];

/// The connection's number, with blanks.
const NUMBER: usize = 5;

/// The names of host and server have at least this much room together.
const NAMES: usize = 32;

impl Column {
    const fn head(self) -> &'static str {
        match self {
            Self::Revision => "REVISION",
            Self::State => "STATE",
            Self::Open => "OPEN",
            Self::Calls => "CALLS",
            Self::Abandoned => "ABANDONED",
            Self::Findings => "FINDINGS",
        }
    }

    const fn width(self) -> usize {
        match self {
            Self::Revision => 12,
            Self::State => 8,
            Self::Open | Self::Calls => 7,
            Self::Abandoned => 11,
            Self::Findings => 10,
        }
    }

    fn cell(self, text: &str) -> String {
        match self {
            Self::Revision | Self::State => left(text, self.width()),
            _ => right(text, self.width()),
        }
    }

    fn of(self, connection: &Connection) -> (Ink, String) {
        let or_dim = |ink, wanted| if wanted { ink } else { Ink::Dim };
        let open = connection.closed.is_none();
        match self {
            Self::Revision => {
                let revision = connection.revision.as_deref().unwrap_or("?");
                (Ink::Dim, revision.into())
            }
            Self::State => (or_dim(Ink::Good, open), connection.word().into()),
            Self::Open => (Ink::Plain, connection.open_calls.to_string()),
            Self::Calls => (Ink::Plain, connection.calls.to_string()),
            Self::Abandoned => (
                or_dim(Ink::Accent, connection.abandoned > 0),
                connection.abandoned.to_string(),
            ),
            Self::Findings => (
                or_dim(Ink::Warning, connection.findings > 0),
                connection.findings.to_string(),
            ),
        }
    }
}

/// The columns that there is room for, and the room that is left for the names.
fn fitting(columns: u16) -> (Vec<Column>, usize) {
    let mut room = usize::from(columns).saturating_sub(NUMBER);
    let mut shown = Vec::new();
    for column in BY_WEIGHT {
        if room < NAMES + column.width() {
            break;
        }
        room -= column.width();
        shown.push(column);
    }
    let in_order = COLUMNS.into_iter().filter(|column| shown.contains(column));
    (in_order.collect(), room)
}

/// The room for a host's name, of that for both: half of it, or what the other can spare.
fn host_width(model: &Model, room: usize) -> usize {
    let longest = |name: fn(&Connection) -> &str| {
        let connections = model.ledger.connections.values();
        connections
            .map(|connection| width(name(connection)))
            .max()
            .unwrap_or(0)
    };
    let host = longest(|connection| &connection.host).max("HOST".len()) + 1;
    let server = longest(|connection| &connection.tool).max("SERVER".len()) + 1;
    host.min((room / 2).max(room.saturating_sub(server)))
}

pub(super) fn connections(model: &Model, theme: &Theme, canvas: &mut Canvas<'_>, areas: &Areas) {
    let columns = areas.rows.width;
    let (shown, room) = fitting(columns);
    let host = host_width(model, room);
    let server = room - host;
    let name = |text: &str, columns: usize| format!("{} ", left(text, columns.saturating_sub(1)));

    let mut row = Row::new(theme, columns);
    row.push(Ink::Dim, &format!("{}  ", right("#", NUMBER - 2)));
    row.push(Ink::Dim, &left("HOST", host));
    row.push(Ink::Dim, &left("SERVER", server));
    for column in &shown {
        row.push(Ink::Dim, &column.cell(column.head()));
    }
    row.draw(canvas, areas.heads);

    let window = model.connections.window(usize::from(areas.rows.height));
    for (place, area) in window.clone().zip(lines(areas.rows)) {
        let Some(connection) = model.ledger.connections.values().nth(place) else {
            continue;
        };
        let mut row = Row::new(theme, columns);
        let plain = match connection.closed {
            Some(_) => Ink::Dim,
            None => Ink::Plain,
        };
        let number = connection.id.to_string();
        row.push(Ink::Dim, &format!("{}  ", right(&number, NUMBER - 2)));
        row.push(plain, &name(&connection.host, host));
        row.push(plain, &name(&connection.tool, server));
        for column in &shown {
            let (ink, text) = column.of(connection);
            row.push(ink, &column.cell(&text));
        }
        row.draw_chosen(canvas, area, place == model.connections.cursor());
    }
    if window.is_empty() {
        super::page::empty(model, theme, canvas, areas.rows, "No connections");
    }
}
