//! The calls of a log along its time, as SVG.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::super::model::{Call, Log};
use super::{Escaped, outcome_class};
use crate::capture::Timestamp;
use crate::record::Word;
use crate::session::{ConnId, Side};
use crate::verdict::Outcome;
use crate::wording::{span, time};

/// So many calls are drawn, and so many rows of them a connection.
const CALLS: usize = 500;
const ROWS: usize = 40;
/// So many interrupts and gaps are marked.
const MOMENTS: usize = 100;

/// All in the drawing's own units, which are pixels where it has its full width.
const WIDTH: f64 = 1_160.0;
const LEFT: f64 = 10.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 24.0;
const ROW: f64 = 20.0;
const BAR: f64 = 16.0;
/// A call of no length is still seen.
const NARROWEST: f64 = 2.0;
/// A letter takes about so much.
const LETTER: f64 = 6.2;

/// Where a time is.
struct Scale {
    from: Timestamp,
    seconds: f64,
}

impl Scale {
    fn x(&self, at: Timestamp) -> f64 {
        let seconds = at.since(self.from).as_secs_f64();
        LEFT + (seconds / self.seconds).min(1.0) * (WIDTH - LEFT - RIGHT)
    }
}

/// Where a call is drawn.
struct Placed<'a> {
    call: &'a Call,
    row: usize,
}

pub(super) fn draw(log: &Log, out: &mut String) {
    let calls = drawn(log);
    let Some(first) = calls.iter().map(|call| call.sent).min() else {
        return;
    };
    let last = calls.iter().map(|call| call.until).max();
    let last = last.unwrap_or(first).max(log.summary.at);
    let scale = Scale {
        from: first,
        seconds: last.since(first).as_secs_f64().max(0.001),
    };
    let mut by_conn = BTreeMap::<ConnId, Vec<&Call>>::new();
    for call in &calls {
        by_conn.entry(call.conn).or_default().push(call);
    }
    let mut body = String::new();
    let mut y = TOP;
    for (conn, calls) in by_conn {
        y = lane(log, conn, &calls, &scale, y, &mut body);
    }
    let height = y + 8.0;
    let _ = writeln!(
        out,
        "<h3>Timeline</h3>\n<figure>\n<svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" \
         aria-label=\"The calls along time; the table of calls says the same\">"
    );
    axis(&scale, height, out);
    out.push_str(&body);
    moments(log, &scale, height, out);
    out.push_str("</svg>\n");
    caption(log, calls.len(), out);
    out.push_str("</figure>\n");
}

/// The calls that did not end as they should go first where there are too many.
fn drawn(log: &Log) -> Vec<&Call> {
    let mut calls: Vec<_> = log.calls.iter().collect();
    calls.sort_by_key(|call| (call.outcome == Outcome::Answered, call.sent));
    calls.truncate(CALLS);
    calls.sort_by_key(|call| call.sent);
    calls
}

/// One connection; returns where the next begins.
fn lane(log: &Log, conn: ConnId, calls: &[&Call], scale: &Scale, y: f64, out: &mut String) -> f64 {
    let title = log.sides(conn).unwrap_or_default();
    let base = y + 14.0;
    let _ = writeln!(
        out,
        "<text class=\"lane\" x=\"{LEFT}\" y=\"{base:.0}\">{conn} {}</text>",
        Escaped(&title)
    );
    let placed = place(calls, scale);
    let rows = placed.iter().map(|placed| placed.row + 1).max();
    let top = y + ROW;
    for placed in placed {
        #[expect(clippy::cast_precision_loss, reason = "there are few rows")]
        bar(placed.call, scale, top + placed.row as f64 * ROW, out);
    }
    #[expect(clippy::cast_precision_loss, reason = "there are few rows")]
    let height = rows.unwrap_or(0) as f64 * ROW;
    top + height + 6.0
}

/// Each call in the first row where it fits.
fn place<'a>(calls: &[&'a Call], scale: &Scale) -> Vec<Placed<'a>> {
    let mut ends: Vec<f64> = Vec::new();
    let mut placed = Vec::new();
    for &call in calls {
        let from = scale.x(call.sent);
        let row = ends.iter().position(|end| *end <= from);
        let row = match row {
            Some(row) => row,
            None if ends.len() < ROWS => {
                ends.push(0.0);
                ends.len() - 1
            }
            // One over the other is better than none.
            None => ROWS - 1,
        };
        ends[row] = scale.x(call.until).max(from + NARROWEST) + 2.0;
        placed.push(Placed { call, row });
    }
    placed
}

fn bar(call: &Call, scale: &Scale, y: f64, out: &mut String) {
    let (from, until) = (scale.x(call.sent), scale.x(call.waited));
    let width = (until - from).max(NARROWEST);
    let (class, word) = (outcome_class(call.outcome), call.outcome.word());
    let arrow = match call.from {
        Side::Client => "",
        Side::Server => "← ",
    };
    let title = format!("{arrow}{}", call.title());
    let _ = write!(
        out,
        "<g class=\"{class}\"><title>{}: {word} after {}, sent at {}",
        Escaped(&title),
        span(call.until.since(call.sent)),
        time(call.sent)
    );
    if let Some(wasted) = call.wasted {
        let _ = write!(out, "; the server worked on for {}", span(wasted));
    }
    let _ = write!(
        out,
        "</title><rect class=\"bar\" x=\"{from:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
         height=\"{BAR}\" rx=\"2\"/>"
    );
    let worked = scale.x(call.until);
    if worked > from + width {
        let (x, width) = (from + width, worked - from - width);
        let _ = write!(
            out,
            "<rect class=\"wasted\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{BAR}\"/>"
        );
    }
    let label = format!("{title}: {word}");
    #[expect(clippy::cast_precision_loss, reason = "a label is short")]
    let needs = label.chars().count() as f64 * LETTER + 8.0;
    if needs < worked.max(from + width) - from {
        let (x, y) = (from + 5.0, y + 12.0);
        let _ = write!(
            out,
            "<text x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
            Escaped(&label)
        );
    }
    out.push_str("</g>\n");
}

/// Interrupts and gaps, across all lanes.
fn moments(log: &Log, scale: &Scale, height: f64, out: &mut String) {
    let drawn = log.moments.iter().filter(|moment| moment.at >= scale.from);
    for moment in drawn.take(MOMENTS) {
        let x = scale.x(moment.at);
        let class = match moment.kind {
            "gap" => "warning",
            _ => "error",
        };
        let _ = writeln!(
            out,
            "<g class=\"{class}\"><title>{} {} at {}</title><path class=\"mark\" \
             d=\"M{x:.1} {TOP}V{height:.0}\"/><path class=\"marked\" d=\"M{:.1} {:.0}h10l-5 7z\"/></g>",
            moment.kind,
            Escaped(&moment.text),
            time(moment.at),
            x - 5.0,
            TOP - 4.0
        );
    }
}

/// Round times, five to twelve of them.
fn axis(scale: &Scale, height: f64, out: &mut String) {
    let step = step(scale.seconds);
    let first = (scale.from.as_secs_f64() / step).ceil();
    let end = scale.from.as_secs_f64() + scale.seconds;
    for number in 0..20_u32 {
        let seconds = (first + f64::from(number)) * step;
        if seconds > end {
            break;
        }
        let x =
            LEFT + (seconds - scale.from.as_secs_f64()) / scale.seconds * (WIDTH - LEFT - RIGHT);
        let _ = writeln!(
            out,
            "<path class=\"grid\" d=\"M{x:.1} 16V{height:.0}\"/><text class=\"axis\" x=\"{:.1}\" \
             y=\"12\">{} s</text>",
            x - 4.0,
            plain(seconds, step)
        );
    }
}

fn step(seconds: f64) -> f64 {
    let mut unit = 0.000_1;
    loop {
        for factor in [1.0, 2.0, 5.0] {
            if seconds / (unit * factor) <= 12.0 {
                return unit * factor;
            }
        }
        unit *= 10.0;
    }
}

/// A time with as many digits as its step has.
fn plain(seconds: f64, step: f64) -> String {
    match step {
        step if step >= 1.0 => format!("{seconds:.0}"),
        step if step >= 0.1 => format!("{seconds:.1}"),
        step if step >= 0.01 => format!("{seconds:.2}"),
        step if step >= 0.001 => format!("{seconds:.3}"),
        _ => format!("{seconds:.4}"),
    }
}

fn caption(log: &Log, drawn: usize, out: &mut String) {
    let mut words: Vec<_> = log
        .summary
        .calls
        .iter()
        .filter(|(_, number)| **number > 0)
        .map(|(outcome, _)| {
            format!(
                "<span class=\"{}\">■ {}</span>",
                outcome_class(*outcome),
                outcome.word()
            )
        })
        .collect();
    if log.calls.iter().any(|call| call.wasted.is_some()) {
        words.push("dashed: the server worked on in vain".into());
    }
    if !log.moments.is_empty() {
        words.push("▾ an interrupt, or a gap".into());
    }
    let all = log.call_count();
    if all > drawn as u64 {
        words.push(format!("{drawn} of {all} calls are drawn"));
    }
    let _ = writeln!(out, "<figcaption>{}</figcaption>", words.join(" · "));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_round_steps() {
        for (seconds, expected) in [(0.001, 0.000_1), (1.0, 0.1), (11.0, 1.0), (60.0, 5.0)] {
            let step = step(seconds);
            assert!(
                (step - expected).abs() < expected / 100.0,
                "{seconds}: {step}"
            );
        }
        assert!(step(1e9) >= 1e7);
    }
}
