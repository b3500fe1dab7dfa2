//! The live view: MCP while it happens, and afterwards.
//!
//! Elm's split: `model` is what is shown, `message` what can happen, `update` what that
//! changes, `view` the picture of it. All four are pure. Only `terminal` touches the terminal,
//! and only `feed` the thread that the pipeline runs on. Must never write to what is observed.

mod feed;
mod keys;
mod layout;
mod message;
mod model;
mod still;
mod terminal;
mod text;
mod update;
mod view;

#[cfg(test)]
mod tests;

pub use feed::{Feed, LiveClock, Pace};
pub use keys::markdown as keys_markdown;
pub use message::Arrival;
pub use model::{LogPlace, Source, fields_markdown};
pub use still::Still;
pub use terminal::{Options, TerminalError, postpone};
pub use view::Theme;
