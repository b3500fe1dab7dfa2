//! Which rows the lists show. Goes on a piece at a time; `Idle` comes until nothing is left.

use crate::session::ConnId;
use crate::tui::model::{Call, Column, Facts, Frame, Kind, Ledger, Model, Query};

/// So many entries are looked at in one go: a few milliseconds.
const PIECE: u32 = 20_000;

/// A row whose text must be searched counts for so many.
const TEXT_WEIGHT: u32 = 100;

/// Begins anew: the filter, or what else decides about rows, has changed.
pub(super) fn begin(model: &mut Model) {
    for list in [&mut model.calls, &mut model.findings, &mut model.frames] {
        list.reset();
    }
    go_on(model);
    sort(model);
}

/// Looks at the entries that were not looked at yet, and at the calls that have changed.
pub(super) fn go_on(model: &mut Model) {
    if model.paused && !model.unfinished {
        return;
    }
    let touched = model.ledger.take_touched();
    let Model {
        ledger,
        filter: (_, query),
        only,
        connections,
        calls,
        findings,
        frames,
        ..
    } = model;
    let filter = Filter {
        ledger,
        query,
        only: *only,
    };
    let piece = if query.reads_text() {
        PIECE / TEXT_WEIGHT
    } else {
        PIECE
    };
    for number in touched {
        if !query.is_empty() {
            calls.reconsider(number, filter.wants_call(number));
            let call = ledger.calls.get(number);
            let of_it = call
                .into_iter()
                .flat_map(|call| [call.request, call.answer, call.cancellation]);
            for frame in of_it.flatten() {
                frames.reconsider(frame, filter.wants_frame(frame));
            }
        }
    }
    let count = |length: usize| 0..u32::try_from(length).unwrap_or(u32::MAX);
    let examined = calls.examined() + frames.examined();
    let mut more = calls.choose(&ledger.calls.range(), piece, |row| filter.wants_call(row));
    more |= frames.choose(&ledger.frames.range(), piece, |row| filter.wants_frame(row));
    more |= findings.choose(&count(ledger.findings.len()), piece, |row| {
        filter.wants_finding(row)
    });
    connections.choose(&count(ledger.connections.len()), piece, |_| true);
    // A finding that is superseded is shown no more.
    for (at, found) in ledger
        .findings
        .iter()
        .enumerate()
        .rev()
        .take(PIECE as usize)
    {
        if found.superseded {
            findings.reconsider(u32::try_from(at).unwrap_or(u32::MAX), false);
        }
    }
    model.stale |= calls.examined() + frames.examined() != examined || more != model.unfinished;
    model.unfinished = more;
    // Sorting all calls for each batch of new ones would cost more than anybody sees of it.
    model.unsorted = true;
    if model.sort == (Column::Time, false) {
        sort(model);
    }
}

/// Brings the calls into the order that is asked for.
pub(super) fn sort(model: &mut Model) {
    model.unsorted = false;
    let (column, reverse) = model.sort;
    let Model {
        ledger, calls, now, ..
    } = model;
    let of = |row: &u32| ledger.calls.get(*row);
    match column {
        Column::Time => calls.sort(None::<fn(&u32) -> u32>, reverse),
        Column::Took => calls.sort(
            Some(|row: &u32| of(row).map(|call| call.took(*now))),
            reverse,
        ),
        Column::State => calls.sort(Some(|row: &u32| of(row).map(Call::state)), reverse),
        Column::Name => {
            let key = |row: u32| of(&row).map(|call| (&call.method, &call.name));
            calls.sort_groups(key, reverse);
        }
        Column::Size => {
            let key = |row: &u32| {
                of(row).map(|call| call.request_bytes + call.response_bytes.unwrap_or(0))
            };
            calls.sort(Some(key), reverse);
        }
    }
}

struct Filter<'a> {
    ledger: &'a Ledger,
    query: &'a Query,
    only: Option<ConnId>,
}

impl Filter<'_> {
    fn wants_call(&self, number: u32) -> bool {
        self.ledger.calls.get(number).is_some_and(|call| {
            self.only.is_none_or(|only| only == call.conn)
                && (self.query.is_empty()
                    || self
                        .query
                        .matches(self.ledger, &Facts::of_call(self.ledger, call)))
        })
    }

    fn wants_frame(&self, number: u32) -> bool {
        let wanted = |frame: &Frame| {
            frame.kind != Kind::Quiet
                && self
                    .only
                    .is_none_or(|only| self.ledger.concerns(frame, only))
                && (self.query.is_empty()
                    || self
                        .query
                        .matches(self.ledger, &Facts::of_frame(self.ledger, frame)))
        };
        self.ledger.frames.get(number).is_some_and(wanted)
    }

    fn wants_finding(&self, at: u32) -> bool {
        self.ledger.findings.get(at as usize).is_some_and(|found| {
            !found.superseded
                && self
                    .only
                    .is_none_or(|only| found.finding.conn.is_none_or(|conn| conn == only))
                && (self.query.is_empty()
                    || self
                        .query
                        .matches(self.ledger, &Facts::of_finding(self.ledger, found)))
        })
    }
}
