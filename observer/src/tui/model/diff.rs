//! Two messages side by side, line by line.

use std::collections::BTreeSet;

use super::doc::{Ink, Page};
use super::json::pretty;
use super::ledger::Ledger;
use crate::wording::time;

/// So many lines of each are compared.
const LINES: usize = 2_000;

/// A line of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change<'a> {
    Same(&'a str),
    Removed(&'a str),
    Added(&'a str),
}

pub(super) fn compare(page: &mut Page, ledger: &Ledger, one: u32, other: u32) {
    for (sign, ink, number) in [("-", Ink::Removed, one), ("+", Ink::Added, other)] {
        if let Some(frame) = ledger.frames.get(number) {
            page.prose(
                0,
                ink,
                &format!("{sign} {}  {}", time(frame.at), frame.label),
            );
        }
    }
    page.blank();
    let lines = |number: u32| {
        let text = ledger.frames.get(number).and_then(|frame| frame.text());
        text.map(|text| {
            let shown = pretty(text, &BTreeSet::new(), LINES);
            let lines = shown.lines.iter().map(|line| {
                let text: String = line.spans.iter().map(|(_, text)| text.as_str()).collect();
                "  ".repeat(line.depth) + &text
            });
            (lines.collect::<Vec<_>>(), shown.rest)
        })
    };
    let (Some((one, rest)), Some((other, other_rest))) = (lines(one), lines(other)) else {
        page.prose(
            0,
            Ink::Dim,
            "One of the two is no message, or its text has left memory.",
        );
        return;
    };
    let mut equal = true;
    for change in diff(&one, &other) {
        let (ink, sign, text) = match change {
            Change::Same(text) => (Ink::Plain, ' ', text),
            Change::Removed(text) => (Ink::Removed, '-', text),
            Change::Added(text) => (Ink::Added, '+', text),
        };
        equal &= ink == Ink::Plain;
        let indent = text.len() - text.trim_start().len();
        let spans = vec![(ink, format!("{sign} {text}"))];
        page.hanging(0, indent + 4, spans);
    }
    if rest + other_rest > 0 {
        page.prose(
            0,
            Ink::Note,
            &format!("Only the first {LINES} lines of each are compared."),
        );
    } else if equal {
        page.prose(0, Ink::Good, "They say the same.");
    }
}

/// What must be taken away and added to make one into the other; the common beginning and end
/// first, so that long messages with small differences cost little.
fn diff<'a>(one: &'a [String], other: &'a [String]) -> Vec<Change<'a>> {
    let head = one
        .iter()
        .zip(other)
        .take_while(|(one, other)| one == other)
        .count();
    let (one_rest, other_rest) = (&one[head..], &other[head..]);
    let tail = one_rest.iter().rev().zip(other_rest.iter().rev());
    let tail = tail.take_while(|(one, other)| one == other).count();
    let (one_middle, end) = one_rest.split_at(one_rest.len() - tail);
    let other_middle = &other_rest[..other_rest.len() - tail];
    let mut changes: Vec<_> = one[..head].iter().map(|line| Change::Same(line)).collect();
    changes.extend(middle(one_middle, other_middle));
    changes.extend(end.iter().map(|line| Change::Same(line)));
    changes
}

/// The longest common subsequence, by the textbook.
fn middle<'a>(one: &'a [String], other: &'a [String]) -> Vec<Change<'a>> {
    let columns = other.len() + 1;
    let mut common = vec![0_u16; (one.len() + 1) * columns];
    for (row, line) in one.iter().enumerate().rev() {
        for (column, with) in other.iter().enumerate().rev() {
            let at = row * columns + column;
            common[at] = match line == with {
                true => common[at + columns + 1] + 1,
                false => common[at + columns].max(common[at + 1]),
            };
        }
    }
    let (mut row, mut column, mut changes) = (0, 0, Vec::new());
    loop {
        let at = row * columns + column;
        match (one.get(row), other.get(column)) {
            (Some(line), Some(with)) if line == with => {
                changes.push(Change::Same(line));
                (row, column) = (row + 1, column + 1);
            }
            (Some(line), with) if with.is_none() || common[at + columns] >= common[at + 1] => {
                changes.push(Change::Removed(line));
                row += 1;
            }
            (_, Some(with)) => {
                changes.push(Change::Added(with));
                column += 1;
            }
            (_, None) => return changes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_told() {
        let lines = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let (one, other) = (lines("a b c d e"), lines("a c x d e f"));
        assert_eq!(
            diff(&one, &other),
            [
                Change::Same("a"),
                Change::Removed("b"),
                Change::Same("c"),
                Change::Added("x"),
                Change::Same("d"),
                Change::Same("e"),
                Change::Added("f"),
            ]
        );
        assert_eq!(diff(&one, &one).len(), 5);
        assert_eq!(diff(&[], &one).len(), 5);
    }
}
