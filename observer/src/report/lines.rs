//! In which lines of a log a finding and its evidence stand.

use std::collections::VecDeque;

use crate::capture::Timestamp;
use crate::verdict::Finding;

/// So many of the latest events are known by their lines: evidence further back has none.
const KEPT: usize = 1 << 14;

/// The lines of the latest events.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// By time, which does not step back here.
    latest: VecDeque<(Timestamp, u64)>,
    /// The line that was read last; `None` where it is in another file than the first.
    now: Option<u64>,
}

/// The lines of a finding: 1, 2, ...
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    /// That of the first evidence that has one, else that with which it was concluded.
    pub(super) line: Option<u64>,
    /// Those of the evidence, in its order.
    pub(super) evidence: Vec<Option<u64>>,
}

impl Lines {
    /// Says which line is read.
    pub(super) fn begin(&mut self, line: Option<u64>) {
        self.now = line;
    }

    /// Says when what stands in the line happened.
    pub(super) fn note(&mut self, at: Timestamp) {
        let Some(line) = self.now else { return };
        if self.latest.back().is_some_and(|(last, _)| *last >= at) {
            return;
        }
        if self.latest.len() == KEPT {
            self.latest.pop_front();
        }
        self.latest.push_back((at, line));
    }

    pub(super) fn place(&self, finding: &Finding) -> Place {
        let evidence: Vec<_> = finding
            .evidence
            .iter()
            .map(|evidence| self.of(evidence.at))
            .collect();
        Place {
            line: evidence.iter().copied().flatten().next().or(self.now),
            evidence,
        }
    }

    fn of(&self, at: Timestamp) -> Option<u64> {
        let place = self
            .latest
            .binary_search_by_key(&at, |(time, _)| *time)
            .ok()?;
        self.latest.get(place).map(|(_, line)| *line)
    }
}
