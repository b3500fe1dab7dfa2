//! How each call ended, and which rules were broken: one file a rule.
//!
//! Sees [`Observed`](crate::session::Observed) events only, so that a replayed log gives the
//! verdicts of the live run. The [`Judge`] relates each event to the request it belongs to and
//! tells the rules; what speaks for an abandonment is gathered by the witnesses. Must not read a
//! clock, a file, or anything of a message that [`READ`] does not name.
//!
//! To add a rule: its file in `rules/`, and its line in the list of `rules/mod.rs`.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod about;
mod call;
mod connection;
mod desk;
mod ending;
mod finding;
mod hearing;
mod host;
mod judge;
mod lane;
mod noise;
mod occurrence;
mod page;
mod process;
mod reading;
mod revision;
mod rules;
#[cfg(test)]
mod script;
mod settings;
mod table;
mod timers;
#[cfg(test)]
mod truth;
mod unseen;
mod witness;

pub use about::About;
pub use finding::{
    CallRecord, Cancellation, Confidence, Culprit, Evidence, Finding, Outcome, Output, Severity,
    Summary,
};
pub use host::{Calls, Conversations, KnownHost, Manners};
pub use judge::Judge;
pub(crate) use page::by_revision;
pub use page::page;
pub use reading::READ;
pub use revision::Revision;
pub use settings::Settings;

/// What every rule says about itself, in the order of `docs/verdicts.md`.
pub fn rules() -> impl ExactSizeIterator<Item = &'static About> {
    rules::ABOUT.iter().copied()
}
