//! A page of text that can be scrolled, folded and searched: details, a comparison, the help.

use std::collections::BTreeSet;

use super::query::contains;
use crate::tui::text::{width, wrap};

/// What a piece of text is; the theme says what it looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    Plain,
    Dim,
    Strong,
    Heading,
    /// Abandoned: the one accent.
    Accent,
    Warning,
    Good,
    Note,
    /// A member's name in JSON, or a key of the keyboard.
    Key,
    /// A string in JSON.
    Text,
    /// A number or word in JSON.
    Number,
    Added,
    Removed,
}

/// Something on a page that can be folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fold {
    /// The part under a heading.
    Part(&'static str),
    /// An object or array of a frame's JSON: the frame, and where it begins.
    Json(u32, usize),
    /// More lines of a frame's JSON are wanted.
    More(u32),
}

/// A line of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) spans: Vec<(Ink, String)>,
    pub(crate) fold: Option<Fold>,
    /// The frame that it shows a part of.
    pub(crate) frame: Option<u32>,
    /// The call that it names.
    pub(crate) call: Option<u32>,
}

/// A page under construction, so many columns wide.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    pub(crate) lines: Vec<Line>,
    columns: usize,
}

/// Where a reader is on a page.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading {
    pub(crate) lines: Vec<Line>,
    pub(crate) cursor: usize,
    pub(crate) top: usize,
    pub(crate) folded: BTreeSet<Fold>,
    pub(crate) search: String,
}

impl Line {
    /// Whether a word stands in it; the case of ASCII letters does not count.
    pub(crate) fn contains(&self, word: &str) -> bool {
        contains(&self.text(), word)
    }

    pub(crate) fn text(&self) -> String {
        self.spans.iter().map(|(_, text)| text.as_str()).collect()
    }
}

impl Page {
    pub(crate) fn new(columns: usize) -> Self {
        Self {
            lines: Vec::new(),
            columns,
        }
    }

    pub(crate) fn blank(&mut self) {
        self.lines.push(Line::default());
    }

    pub(crate) fn heading(&mut self, text: &str) {
        if !self.lines.is_empty() {
            self.blank();
        }
        self.spans(0, vec![(Ink::Heading, text.into())]);
    }

    /// Words, broken into lines where they must.
    pub(crate) fn prose(&mut self, indent: usize, ink: Ink, text: &str) {
        self.spans(indent, vec![(ink, text.into())]);
    }

    /// A name and what it is, with the names in a column.
    pub(crate) fn pair(&mut self, name: &str, ink: Ink, value: &str) {
        let mut spans = vec![(Ink::Dim, format!("{name:<12}"))];
        spans.push((ink, value.into()));
        self.hanging(2, 14, spans);
    }

    /// Pieces of text; lines after the first one are indented alike.
    pub(crate) fn spans(&mut self, indent: usize, spans: Vec<(Ink, String)>) {
        self.hanging(indent, indent, spans);
    }

    /// Pieces of text; lines after the first one are indented by `hang`.
    pub(crate) fn hanging(&mut self, indent: usize, hang: usize, spans: Vec<(Ink, String)>) {
        let mut line = Line::default();
        let mut used = indent.min(self.columns / 2);
        line.spans.push((Ink::Plain, " ".repeat(used)));
        let hang = hang.min(self.columns / 2);
        for (ink, text) in spans {
            // What is before it on the line is blanks to the wrapping.
            let mut parts = wrap_after(&text, used, self.columns, hang).into_iter();
            if let Some(first) = parts.next() {
                used += width(&first);
                line.spans.push((ink, first));
            }
            for part in parts {
                self.lines.push(std::mem::take(&mut line));
                used = hang + width(&part);
                line.spans = vec![(Ink::Plain, " ".repeat(hang)), (ink, part)];
            }
        }
        self.lines.push(line);
    }

    /// The lines that `add` adds get what `mark` sets.
    pub(crate) fn marked(&mut self, mark: impl Fn(&mut Line), add: impl FnOnce(&mut Self)) {
        let first = self.lines.len();
        add(self);
        self.lines[first..].iter_mut().for_each(mark);
    }
}

/// The text on lines of `columns`, the first of which has `used` columns taken already, and the
/// others `hang`.
fn wrap_after(text: &str, used: usize, columns: usize, hang: usize) -> Vec<String> {
    let first = columns.saturating_sub(used);
    if text.len() <= first || width(text) <= first {
        return vec![text.into()];
    }
    let room = columns.saturating_sub(hang).max(8);
    let lines = wrap(text, if first < 8 { room } else { first });
    if first < 8 {
        return [String::new()].into_iter().chain(lines).collect();
    }
    let head = lines[0].clone();
    let rest = text.get(head.len()..).unwrap_or_default().trim_start();
    let rest = if rest.is_empty() {
        Vec::new()
    } else {
        wrap(rest, room)
    };
    [head].into_iter().chain(rest).collect()
}

impl Reading {
    /// Shows other lines, and keeps the place as far as that is possible.
    pub(crate) fn show(&mut self, lines: Vec<Line>) {
        self.lines = lines;
        self.go(self.cursor);
    }

    pub(crate) fn go(&mut self, line: usize) {
        self.cursor = line.min(self.lines.len().saturating_sub(1));
    }

    pub(crate) fn step(&mut self, by: isize) {
        self.go(self.cursor.saturating_add_signed(by));
    }

    /// Keeps the line that is looked at in view.
    pub(crate) fn settle(&mut self, height: usize) {
        let least = (self.cursor + 1).saturating_sub(height);
        let most = self.lines.len().saturating_sub(height);
        self.top = self
            .top
            .clamp(least, self.cursor.max(least))
            .min(most.max(least));
    }

    /// Folds or unfolds what is on the line that is looked at.
    pub(crate) fn toggle(&mut self) -> bool {
        let Some(fold) = self.lines.get(self.cursor).and_then(|line| line.fold) else {
            return false;
        };
        if !self.folded.remove(&fold) {
            self.folded.insert(fold);
        }
        true
    }

    /// Shows more of each message that is cut; whether there is one.
    pub(crate) fn show_all(&mut self) -> bool {
        let before = self.folded.len();
        let cut = self.lines.iter().filter_map(|line| line.fold);
        self.folded
            .extend(cut.filter(|fold| matches!(fold, Fold::More(_))));
        self.folded.len() > before
    }

    /// Goes to the next line that has what is searched for; `false` where none has.
    pub(crate) fn find(&mut self, backwards: bool) -> bool {
        let count = self.lines.len();
        if self.search.is_empty() || count == 0 {
            return false;
        }
        let at = |step: usize| match backwards {
            false => (self.cursor + step) % count,
            true => (self.cursor + count - step) % count,
        };
        let found = (1..=count)
            .map(at)
            .find(|at| self.lines[*at].contains(&self.search));
        found.inspect(|at| self.cursor = *at).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_hang_under_the_first() {
        let mut page = Page::new(30);
        page.pair("sent", Ink::Plain, "at the time when it was sent");
        let text: Vec<_> = page.lines.iter().map(Line::text).collect();
        assert_eq!(
            text,
            [
                "  sent        at the time when",
                "              it was sent"
            ]
        );
    }

    #[test]
    fn a_search_goes_round() {
        let mut page = Page::new(30);
        for text in ["one", "two", "Once"] {
            page.prose(0, Ink::Plain, text);
        }
        let mut reading = Reading {
            search: "on".into(),
            ..Reading::default()
        };
        reading.show(page.lines);
        assert!(reading.find(false) && reading.cursor == 2);
        assert!(reading.find(false) && reading.cursor == 0);
        assert!(reading.find(true) && reading.cursor == 2);
        reading.search = "no such".into();
        assert!(!reading.find(false));
    }
}
