//! What is due when. No clock: the judge asks with the time in hand.

use std::collections::BTreeMap;

use crate::capture::Timestamp;

/// Things that fall due, in order of time, then of asking.
#[derive(Debug)]
pub(super) struct Timers<T> {
    due: BTreeMap<(Timestamp, u64), T>,
    asked: u64,
}

impl<T> Default for Timers<T> {
    fn default() -> Self {
        Self {
            due: BTreeMap::new(),
            asked: 0,
        }
    }
}

impl<T> Timers<T> {
    pub(super) fn set(&mut self, at: Timestamp, what: T) {
        self.asked += 1;
        self.due.insert((at, self.asked), what);
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.due.first_key_value().map(|((at, _), _)| *at)
    }

    /// Takes the next one that is due at `now`.
    pub(super) fn pop(&mut self, now: Timestamp) -> Option<(Timestamp, T)> {
        let entry = self.due.first_entry()?;
        let at = entry.key().0;
        (at <= now).then(|| (at, entry.remove()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_fall_due_in_order_of_time_then_of_asking() {
        let at = Timestamp::from_nanos;
        let mut timers = Timers::default();
        timers.set(at(20), 'c');
        timers.set(at(10), 'a');
        timers.set(at(10), 'b');
        assert_eq!(timers.next(), Some(at(10)));
        assert_eq!(timers.pop(at(9)), None);
        assert_eq!(timers.pop(at(15)), Some((at(10), 'a')));
        assert_eq!(timers.pop(at(15)), Some((at(10), 'b')));
        assert_eq!(timers.pop(at(15)), None);
        assert_eq!(timers.next(), Some(at(20)));
    }
}
