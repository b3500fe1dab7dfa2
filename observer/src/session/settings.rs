//! How a session observes.

use std::time::Duration;

/// How a session observes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The longest line that is taken for a message, in bytes without its `\n`.
    pub max_frame: usize,
    /// Whose events are passed on.
    pub processes: Visibility,
    /// How long a connection is held for its parties to become known.
    pub hold: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_frame: 64 * 1024 * 1024,
            processes: Visibility::All,
            hold: Duration::from_secs(1),
        }
    }
}

/// Which processes' events (life, signals, keys, traffic) are passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// All of the scope: for a scope that the user chose (`run`, `attach`).
    All,
    /// The parties of connections and those who started them: for the whole machine (`watch`).
    Connected,
}
