//! The rows of a screen: which entries are shown, in which order, and which one is looked at.
//!
//! Rows are entries' numbers. Choosing them goes on a piece at a time, so that a key never waits
//! for a hundred thousand of them.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::ops::Range;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct List {
    /// Those chosen, by number.
    chosen: Vec<u32>,
    /// The same in another order, where one is wanted.
    sorted: Option<Vec<u32>>,
    /// Entries before this one have been looked at.
    examined: u32,
    cursor: usize,
    top: usize,
    /// Whether the newest row is kept in view.
    pub(crate) follow: bool,
}

impl List {
    pub(crate) fn following() -> Self {
        Self {
            follow: true,
            ..Self::default()
        }
    }

    /// Begins to choose anew; the row that is looked at is kept where it is chosen again.
    pub(crate) fn reset(&mut self) {
        self.chosen.clear();
        self.sorted = None;
        self.examined = 0;
        self.top = 0;
    }

    /// Goes on choosing among `entries`, looking at no more than `budget` of them. Whether more
    /// are left to be looked at.
    pub(crate) fn choose(
        &mut self,
        entries: &Range<u32>,
        budget: u32,
        mut is_wanted: impl FnMut(u32) -> bool,
    ) -> bool {
        let left = self.chosen.partition_point(|row| *row < entries.start);
        if left > 0 {
            self.chosen.drain(..left);
            self.cursor = self.cursor.saturating_sub(left);
            self.top = self.top.saturating_sub(left);
        }
        let from = self.examined.max(entries.start);
        let until = entries.end.min(from.saturating_add(budget));
        self.chosen
            .extend((from..until).filter(|row| is_wanted(*row)));
        self.examined = self.examined.max(until);
        if self.follow {
            self.cursor = self.chosen.len().saturating_sub(1);
        }
        until < entries.end
    }

    /// An entry has changed: it may be wanted now, or not any more.
    pub(crate) fn reconsider(&mut self, row: u32, wanted: bool) {
        if row >= self.examined {
            return;
        }
        match (self.chosen.binary_search(&row), wanted) {
            (Ok(at), false) => {
                self.chosen.remove(at);
                if at < self.cursor {
                    self.cursor -= 1;
                }
            }
            (Err(at), true) => {
                self.chosen.insert(at, row);
                if at <= self.cursor && self.chosen.len() > 1 {
                    self.cursor += 1;
                }
            }
            _ => {}
        }
    }

    /// Orders the rows by a key; `None` for the order in which they came.
    pub(crate) fn sort<K: Ord>(&mut self, key: Option<impl FnMut(&u32) -> K>, reverse: bool) {
        let rows = match key {
            None if !reverse => None,
            None => Some(self.chosen.clone()),
            Some(key) => {
                let mut rows = self.chosen.clone();
                rows.sort_by_cached_key(key);
                Some(rows)
            }
        };
        self.arrange(rows, reverse);
    }

    /// As [`Self::sort`], for keys that many rows share and that are slow to compare: each is
    /// compared once, for all its rows.
    pub(crate) fn sort_groups<K: Ord + Hash>(&mut self, key: impl Fn(u32) -> K, reverse: bool) {
        let mut groups: HashMap<K, Vec<u32>> = HashMap::new();
        for &row in &self.chosen {
            groups.entry(key(row)).or_default().push(row);
        }
        let groups: BTreeMap<K, Vec<u32>> = groups.into_iter().collect();
        self.arrange(Some(groups.into_values().flatten().collect()), reverse);
    }

    /// Takes over an order. Who looks at a row looks at it still.
    fn arrange(&mut self, mut rows: Option<Vec<u32>>, reverse: bool) {
        let looked_at = self.current();
        if let Some(rows) = rows.as_mut().filter(|_| reverse) {
            rows.reverse();
        }
        self.sorted = rows;
        if let Some(row) = looked_at.filter(|_| !self.follow) {
            self.select(row);
        }
    }

    pub(crate) fn rows(&self) -> &[u32] {
        self.sorted.as_ref().unwrap_or(&self.chosen)
    }

    pub(crate) fn len(&self) -> usize {
        self.rows().len()
    }

    pub(crate) fn examined(&self) -> u32 {
        self.examined
    }

    /// The place of the row that is looked at.
    pub(crate) fn cursor(&self) -> usize {
        self.cursor.min(self.len().saturating_sub(1))
    }

    /// The row that is looked at.
    pub(crate) fn current(&self) -> Option<u32> {
        self.rows().get(self.cursor()).copied()
    }

    /// Looks at this row; `false` where it is not among them.
    pub(crate) fn select(&mut self, row: u32) -> bool {
        let at = match &self.sorted {
            None => self.chosen.binary_search(&row).ok(),
            Some(rows) => rows.iter().position(|other| *other == row),
        };
        if let Some(at) = at {
            self.cursor = at;
        }
        at.is_some()
    }

    /// Looks at the row that is so many further on.
    pub(crate) fn step(&mut self, by: isize) {
        self.go(self.cursor().saturating_add_signed(by));
    }

    /// Looks at the row in this place, or the last one.
    pub(crate) fn go(&mut self, place: usize) {
        self.cursor = place.min(self.len().saturating_sub(1));
    }

    /// The rows that fit on so many lines, with the one that is looked at among them.
    pub(crate) fn window(&self, lines: usize) -> Range<usize> {
        let cursor = self.cursor();
        let top = self
            .top
            .clamp((cursor + 1).saturating_sub(lines.max(1)), cursor);
        let top = top.min(self.len().saturating_sub(lines));
        top..self.len().min(top + lines)
    }

    /// Remembers which rows are in view, so that the next window is near it.
    pub(crate) fn settle(&mut self, lines: usize) {
        self.top = self.window(lines).start;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(rows: u32) -> List {
        let mut list = List::default();
        assert!(!list.choose(&(0..rows), u32::MAX, |_| true));
        list
    }

    #[test]
    fn rows_are_chosen_a_piece_at_a_time() {
        let mut list = List::default();
        assert!(list.choose(&(0..10), 4, |row| row % 2 == 0));
        assert_eq!(list.rows(), [0, 2]);
        assert!(!list.choose(&(0..10), 100, |row| row % 2 == 0));
        assert_eq!(list.rows(), [0, 2, 4, 6, 8]);
        assert!(!list.choose(&(3..12), 100, |row| row % 2 == 0));
        assert_eq!(list.rows(), [4, 6, 8, 10]);
    }

    #[test]
    fn the_row_that_is_looked_at_stays_when_others_come_and_go() {
        let mut list = list(5);
        list.go(3);
        list.reconsider(1, false);
        assert_eq!(list.current(), Some(3));
        list.reconsider(1, true);
        assert_eq!(list.current(), Some(3));
        list.choose(&(2..9), 100, |_| true);
        assert_eq!((list.current(), list.rows().len()), (Some(3), 7));
        list.sort(Some(|row: &u32| u32::MAX - row), false);
        assert_eq!(list.current(), Some(3));
        assert_eq!(list.rows(), [8, 7, 6, 5, 4, 3, 2]);
    }

    #[test]
    fn groups_are_sorted_as_rows_are() {
        let names = ["b", "a", "b", "c", "a"];
        let name = |row: u32| names[row as usize];
        for reverse in [false, true] {
            let (mut one, mut other) = (list(5), list(5));
            one.go(3);
            other.go(3);
            one.sort(Some(|row: &u32| name(*row)), reverse);
            other.sort_groups(name, reverse);
            assert_eq!(one.rows(), other.rows());
            assert_eq!(other.current(), Some(3));
        }
    }

    #[test]
    fn the_newest_row_is_followed() {
        let mut list = List::following();
        list.choose(&(0..5), 100, |_| true);
        assert_eq!(list.current(), Some(4));
        list.choose(&(0..7), 100, |_| true);
        assert_eq!(list.current(), Some(6));
        list.reconsider(2, false);
        list.reconsider(2, true);
        list.choose(&(0..7), 100, |_| true);
        assert_eq!(list.current(), Some(6));
    }

    #[test]
    fn the_window_moves_no_more_than_it_must() {
        let mut list = list(100);
        assert_eq!(list.window(10), 0..10);
        list.go(9);
        list.settle(10);
        assert_eq!(list.window(10), 0..10);
        list.step(1);
        list.settle(10);
        assert_eq!(list.window(10), 1..11);
        list.step(-5);
        list.settle(10);
        assert_eq!(list.window(10), 1..11);
        list.go(1000);
        assert_eq!(list.window(10), 90..100);
        assert_eq!(List::default().window(10), 0..0);
        assert_eq!(list.window(0).len(), 0);
    }
}
