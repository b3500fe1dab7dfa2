//! How each call ended, and which rules were broken: one file a rule.
//!
//! Sees [`Observed`](crate::session::Observed) events only, so that a replayed log gives the
//! verdicts of the live run.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod finding;

pub use finding::{
    CallRecord, Cancellation, Confidence, Culprit, Evidence, Finding, Outcome, Output, Severity,
    Summary,
};
