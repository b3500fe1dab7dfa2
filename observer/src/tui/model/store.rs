//! A list whose oldest entries can leave, while the others keep their numbers.

use std::collections::VecDeque;
use std::ops::Range;

/// Entries numbered from 0 on.
#[derive(Clone, Debug)]
pub(crate) struct Store<T> {
    entries: VecDeque<T>,
    first: u32,
}

impl<T> Default for Store<T> {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            first: 0,
        }
    }
}

impl<T> Store<T> {
    /// Appends an entry; returns its number.
    pub(crate) fn push(&mut self, entry: T) -> u32 {
        self.entries.push_back(entry);
        self.range().end - 1
    }

    pub(crate) fn pop_first(&mut self) -> Option<T> {
        let entry = self.entries.pop_front()?;
        self.first += 1;
        Some(entry)
    }

    pub(crate) fn first(&self) -> Option<&T> {
        self.entries.front()
    }

    /// `None` where it has left.
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.entries.get(number.checked_sub(self.first)? as usize)
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.entries
            .get_mut(number.checked_sub(self.first)? as usize)
    }

    /// The numbers of the entries that are there.
    pub(crate) fn range(&self) -> Range<u32> {
        // More than u32 holds would not fit into the memory that the ledger may take.
        self.first..self.first + u32::try_from(self.entries.len()).unwrap_or(u32::MAX - self.first)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (u32, &T)> {
        self.range().zip(&self.entries)
    }
}
