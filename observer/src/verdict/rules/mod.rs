//! The rules, one file each. To add one: its file, its `mod` line, its place in the list.

use super::Culprit;
use super::about::About;
use super::desk::Desk;
use super::judge::State;
use super::occurrence::Occurrence;
use crate::session::Side;

mod abandoned_call;
mod abandoned_task;
mod bad_framing;
mod batch_not_allowed;
mod cancel_ignored;
mod cancel_initialize;
mod cancel_task_request;
mod cancel_unknown_id;
mod duplicate_id;
mod evidence_gap;
mod late_cancel;
mod malformed_cancel;
mod orphan_server;
mod progress_after_end;
mod response_id_type;
mod restart_pending;
mod reused_id;
mod server_died;
mod stale_cancel;
mod stdout_noise;
mod torn_down_pending;
mod unanswered_server_request;
mod unknown_response_id;

/// Makes the list of rules and the list of what they say about themselves.
macro_rules! list {
    ($($file:ident::$rule:ident,)*) => {
        /// What every rule says about itself, in the order of `docs/verdicts.md`.
        pub(super) static ABOUT: &[&About] = &[$(&$file::ABOUT,)*];

        /// All rules, in the same order; a later one may supersede what an earlier one wrote.
        pub(super) fn all() -> Vec<Box<dyn Rule>> {
            vec![$(Box::<$file::$rule>::default(),)*]
        }
    };
}

list! {
    abandoned_call::AbandonedCall,
    late_cancel::LateCancel,
    torn_down_pending::TornDownPending,
    restart_pending::RestartPending,
    stale_cancel::StaleCancel,
    cancel_unknown_id::CancelUnknownId,
    cancel_initialize::CancelInitialize,
    cancel_task_request::CancelTaskRequest,
    malformed_cancel::MalformedCancel,
    duplicate_id::DuplicateId,
    reused_id::ReusedId,
    abandoned_task::AbandonedTask,
    unanswered_server_request::UnansweredServerRequest,
    cancel_ignored::CancelIgnored,
    unknown_response_id::UnknownResponseId,
    response_id_type::ResponseIdType,
    progress_after_end::ProgressAfterEnd,
    orphan_server::OrphanServer,
    server_died::ServerDied,
    stdout_noise::StdoutNoise,
    bad_framing::BadFraming,
    batch_not_allowed::BatchNotAllowed,
    evidence_gap::EvidenceGap,
}

/// A rule: it sees what occurs and writes findings.
pub(super) trait Rule: Send {
    /// Sees one occurrence.
    fn see(&mut self, seen: &Occurrence<'_>, state: &State, desk: &mut Desk);

    /// Is called at a time that it asked for with [`Desk::wake`].
    fn due(&mut self, _key: u64, _state: &State, _desk: &mut Desk) {}

    /// Is called once, when the log ends.
    fn finish(&mut self, _state: &State, _desk: &mut Desk) {}
}

/// Whose fault something is that a side sent, and what to call that side.
const fn culprit(from: Side) -> (Culprit, &'static str) {
    match from {
        Side::Client => (Culprit::Host, "host"),
        Side::Server => (Culprit::Server, "server"),
    }
}
