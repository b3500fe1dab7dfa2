//! What things look like: the terminal's own sixteen colours, so that light and dark ones both
//! fit, or no colours at all. A state has a sign and a word too; colour alone says nothing.

use ratatui::style::{Color, Modifier, Style};

use crate::tui::model::{Ink, State};
use crate::verdict::{Outcome, Severity};

/// Colours and signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    /// Whether there are colours.
    pub colors: bool,
    /// Whether there is more than ASCII.
    pub unicode: bool,
    /// Whether the background is light: yellow and cyan can hardly be read on one.
    pub light: bool,
}

impl Theme {
    pub(crate) fn ink(self, ink: Ink) -> Style {
        let plain = Style::new();
        let color = |color: Color| if self.colors { plain.fg(color) } else { plain };
        match ink {
            Ink::Plain => plain,
            Ink::Dim => plain.add_modifier(Modifier::DIM),
            Ink::Strong => plain.add_modifier(Modifier::BOLD),
            Ink::Heading => plain.add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
            Ink::Accent => color(Color::Red).add_modifier(Modifier::BOLD),
            Ink::Warning if self.light => color(Color::Magenta),
            Ink::Warning => color(Color::Yellow),
            Ink::Good | Ink::Text | Ink::Added => color(Color::Green),
            Ink::Note | Ink::Key if self.light => color(Color::Blue),
            Ink::Note | Ink::Key => color(Color::Cyan),
            Ink::Number => color(Color::Magenta),
            Ink::Removed => color(Color::Red),
        }
    }

    /// The row that is looked at.
    pub(crate) fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// The sign of a state.
    pub(crate) const fn sign(self, state: State) -> &'static str {
        match (state, self.unicode) {
            (State::Running, true) => "◌",
            (State::Over(Outcome::Answered), true) => "✓",
            (State::Over(Outcome::Cancelled), true) => "⊘",
            (State::Over(Outcome::Abandoned), true) => "✗",
            (State::Over(Outcome::TornDown), true) => "┴",
            (State::Running, false) => ">",
            (State::Over(Outcome::Answered), false) => "+",
            (State::Over(Outcome::Cancelled), false) => "-",
            (State::Over(Outcome::Abandoned), false) => "X",
            (State::Over(Outcome::TornDown), false) => "T",
            (State::Over(Outcome::Failed), _) => "!",
            (State::Over(Outcome::Pending), _) => ".",
            (State::Over(Outcome::Unknown), _) => "?",
        }
    }

    pub(crate) const fn severity(self, severity: Severity) -> &'static str {
        match (severity, self.unicode) {
            (Severity::Error, true) => "✗",
            (Severity::Error, false) => "X",
            (Severity::Warning, _) => "!",
            (Severity::Info, _) => "i",
        }
    }

    /// Signs of a timeline: a bar, wasted work, a cancellation, an interrupt, what goes on.
    pub(crate) const fn bar(self) -> &'static str {
        if self.unicode { "━" } else { "=" }
    }

    pub(crate) const fn waste(self) -> &'static str {
        if self.unicode { "╱" } else { "/" }
    }

    pub(crate) const fn mark(self) -> &'static str {
        if self.unicode { "┊" } else { "|" }
    }

    /// Which way a message went.
    pub(crate) const fn arrow(self, from_client: bool) -> &'static str {
        match (from_client, self.unicode) {
            (true, true) => "→",
            (false, true) => "←",
            (true, false) => ">",
            (false, false) => "<",
        }
    }

    pub(crate) const fn rule(self) -> &'static str {
        if self.unicode { "─" } else { "-" }
    }
}
