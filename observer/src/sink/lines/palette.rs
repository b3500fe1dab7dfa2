//! The few styles of the human lines.

use anstyle::{AnsiColor, Style};

use crate::verdict::{Outcome, Severity};

/// A style for each role. All of them are empty where colour is off.
#[derive(Clone, Copy, Debug)]
pub(super) struct Palette {
    /// Times and other things that step back.
    pub(super) dim: Style,
    /// What went well.
    pub(super) good: Style,
    /// What is worth a look.
    pub(super) note: Style,
    /// What is worth mending.
    pub(super) warning: Style,
    /// What is wrong.
    pub(super) error: Style,
    /// Names that the eye looks for.
    pub(super) strong: Style,
}

impl Palette {
    pub(super) const PLAIN: Self = Self {
        dim: Style::new(),
        good: Style::new(),
        note: Style::new(),
        warning: Style::new(),
        error: Style::new(),
        strong: Style::new(),
    };

    pub(super) const ANSI: Self = Self {
        dim: Style::new().dimmed(),
        good: AnsiColor::Green.on_default(),
        note: AnsiColor::Cyan.on_default(),
        warning: AnsiColor::Yellow.on_default().bold(),
        error: AnsiColor::Red.on_default().bold(),
        strong: Style::new().bold(),
    };

    pub(super) const fn outcome(&self, outcome: Outcome) -> Style {
        match outcome {
            Outcome::Answered => self.good,
            Outcome::Failed | Outcome::Unknown => self.warning,
            Outcome::Abandoned => self.error,
            Outcome::Cancelled | Outcome::TornDown | Outcome::Pending => self.note,
        }
    }

    pub(super) const fn severity(&self, severity: Severity) -> Style {
        match severity {
            Severity::Info => self.note,
            Severity::Warning => self.warning,
            Severity::Error => self.error,
        }
    }
}
