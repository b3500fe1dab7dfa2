//! The rules, one file each. To add one: its file, and its line in [`all`].

use super::about::About;
use super::desk::Desk;
use super::judge::State;
use super::occurrence::Occurrence;

mod abandoned_call;
mod cancel_ignored;
mod evidence_gap;
mod stale_cancel;
mod stdout_noise;
mod torn_down_pending;

/// A rule: it sees what occurs and writes findings.
pub(super) trait Rule: Send {
    /// What it says about itself.
    fn about(&self) -> &'static About;

    /// Sees one occurrence.
    fn see(&mut self, seen: &Occurrence<'_>, state: &State, desk: &mut Desk);

    /// Is called at a time that it asked for with [`Desk::wake`].
    fn due(&mut self, _key: u64, _state: &State, _desk: &mut Desk) {}

    /// Is called once, when the log ends.
    fn finish(&mut self, _state: &State, _desk: &mut Desk) {}
}

/// All rules, in the order of `docs/verdicts.md`.
pub(super) fn all() -> Vec<Box<dyn Rule>> {
    vec![
        Box::<abandoned_call::AbandonedCall>::default(),
        Box::<torn_down_pending::TornDownPending>::default(),
        Box::<stale_cancel::StaleCancel>::default(),
        Box::<cancel_ignored::CancelIgnored>::default(),
        Box::<stdout_noise::StdoutNoise>::default(),
        Box::<evidence_gap::EvidenceGap>::default(),
    ]
}
