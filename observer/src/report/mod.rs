//! Reports: what logs amount to, for people and for machines. One file a format.
//!
//! A [`Report`] takes what the pipeline gives, log by log, and keeps what every format shows, in
//! bounded memory. A [`Rendering`] makes the text of one format out of it; those that list every
//! call write each as it comes. Pure: the caller has the files. Everything observed is made
//! harmless in the model, and quoted by each format's own rules. Must not conclude anything.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod build;
mod calls_csv;
mod github;
mod html;
mod json;
mod junit;
mod lines;
mod markdown;
mod model;
mod perfetto;
mod rendering;
mod sarif;
mod text;

pub use build::{Report, Source};
pub use model::Standing;
pub use rendering::{Format, Rendering};
