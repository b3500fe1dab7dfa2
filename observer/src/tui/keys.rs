//! The one table of keys: `update` obeys it, the help shows it, `docs/tui.md` is checked against it.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::model::Screen;

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
    Open,
    Back,
    NextScreen,
    PreviousScreen,
    Screen(Screen),
    NextFinding,
    PreviousFinding,
    Pause,
    Follow,
    Filter,
    Only,
    Sort,
    Reverse,
    Mark,
    Compare,
    Copy,
    Save,
    Fold,
    Search,
    NextMatch,
    PreviousMatch,
    ZoomIn,
    ZoomOut,
    PanLeft,
    PanRight,
    Fit,
    Help,
    Redraw,
    Suspend,
    Quit,
}

/// A key of the keyboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Plain(KeyCode),
    Ctrl(char),
}

/// Where a key means this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Everywhere,
    Lists,
    Calls,
    Timeline,
    Page,
}

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Binding {
    pub(crate) keys: &'static [Key],
    pub(crate) place: Place,
    pub(crate) action: Action,
    /// In one word, for the bottom line; empty for what need not stand there.
    pub(crate) hint: &'static str,
    pub(crate) help: &'static str,
}

const fn char(char: char) -> Key {
    Key::Plain(KeyCode::Char(char))
}

macro_rules! table {
    ($($place:ident $action:expr, [$($key:expr),+], $hint:literal, $help:literal;)+) => {
        &[$(Binding {
            keys: &[$($key),+],
            place: Place::$place,
            action: $action,
            hint: $hint,
            help: $help,
        }),+]
    };
}

/// The table. The first row that fits is obeyed.
pub(crate) static KEYS: &[Binding] = table! {
    Page Action::Back, [Key::Plain(KeyCode::Esc), Key::Plain(KeyCode::Backspace), char('q')],
        "back", "back to where you came from";
    Page Action::Search, [char('/')], "search", "search in the page";
    Page Action::NextMatch, [char('n')], "next", "go to the next match of the search";
    Page Action::PreviousMatch, [char('N')], "", "go to the match before";
    Page Action::Fold, [char(' '), Key::Plain(KeyCode::Enter)],
        "fold", "fold, unfold, show more; on a call: open it";
    Lists Action::Open, [Key::Plain(KeyCode::Enter)], "details", "show all that is known about the row";
    Lists Action::NextFinding, [char('n')], "finding", "go to the next finding";
    Lists Action::PreviousFinding, [char('N')], "", "go to the finding before";
    Lists Action::Filter, [char('/')], "filter", "filter all lists; empty shows everything again";
    Lists Action::Only, [char('o')], "", "show this row's connection only, or all again";
    Calls Action::Sort, [char('s')], "sort", "sort by the next column";
    Calls Action::Reverse, [char('S')], "", "sort the other way round";
    Timeline Action::ZoomIn, [char('+'), char('=')], "zoom", "look at less time";
    Timeline Action::ZoomOut, [char('-')], "", "look at more time";
    Timeline Action::PanLeft, [char('h'), Key::Plain(KeyCode::Left)], "", "look at earlier";
    Timeline Action::PanRight, [char('l'), Key::Plain(KeyCode::Right)], "pan", "look at later";
    Timeline Action::Fit, [char('0')], "all", "look at all the time there is";
    Lists Action::Back, [Key::Plain(KeyCode::Esc)], "", "drop the filter";
    Lists Action::Pause, [char('p')], "pause", "hold the lists still; what comes in is kept";
    Lists Action::Follow, [char('f')], "follow", "keep the newest row in view";
    Lists Action::Save, [char('w')], "", "save what the filter shows as an audit log";
    Everywhere Action::NextScreen, [Key::Plain(KeyCode::Tab)], "screen", "next screen";
    Everywhere Action::PreviousScreen, [Key::Plain(KeyCode::BackTab)], "", "screen before";
    Everywhere Action::Screen(Screen::Connections), [char('1')], "", "connections";
    Everywhere Action::Screen(Screen::Calls), [char('2')], "", "calls";
    Everywhere Action::Screen(Screen::Findings), [char('3')], "", "findings";
    Everywhere Action::Screen(Screen::Frames), [char('4')], "", "frames, with noise and gaps in their place";
    Everywhere Action::Screen(Screen::Timeline), [char('5')], "", "timeline";
    Everywhere Action::Down, [char('j'), Key::Plain(KeyCode::Down)], "", "one row down";
    Everywhere Action::Up, [char('k'), Key::Plain(KeyCode::Up)], "", "one row up";
    Everywhere Action::PageDown, [Key::Plain(KeyCode::PageDown), Key::Ctrl('d'), Key::Ctrl('f')],
        "", "a page down";
    Everywhere Action::PageUp, [Key::Plain(KeyCode::PageUp), Key::Ctrl('u'), Key::Ctrl('b')],
        "", "a page up";
    Everywhere Action::First, [char('g'), Key::Plain(KeyCode::Home)], "", "to the first row";
    Everywhere Action::Last, [char('G'), Key::Plain(KeyCode::End)], "", "to the last row";
    Everywhere Action::Mark, [char('m')], "", "mark this message, to compare another with it";
    Everywhere Action::Compare, [char('c')], "", "compare this message with the marked one";
    Everywhere Action::Copy, [char('y')], "", "copy this message, or finding, to the clipboard (OSC 52)";
    Everywhere Action::Help, [char('?'), Key::Plain(KeyCode::F(1))], "help", "all keys, and the filter's language";
    Everywhere Action::Redraw, [Key::Ctrl('l')], "", "draw the screen anew";
    Everywhere Action::Suspend, [Key::Ctrl('z')], "", "back to the shell until fg; nothing is taken in meanwhile";
    Everywhere Action::Quit, [char('q'), Key::Ctrl('c')], "quit", "leave; ends a command that run --tui has started";
};

impl Place {
    /// A title for the help.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Everywhere => "Everywhere",
            Self::Lists => "In the lists",
            Self::Calls => "On the calls",
            Self::Timeline => "On the timeline",
            Self::Page => "In details, a comparison, this help",
        }
    }

    /// In the order of the help.
    pub(crate) const ALL: [Self; 5] = [
        Self::Everywhere,
        Self::Lists,
        Self::Calls,
        Self::Timeline,
        Self::Page,
    ];

    fn holds(self, screen: Option<Screen>) -> bool {
        match (self, screen) {
            (Self::Everywhere, _) | (Self::Page, None) | (Self::Lists, Some(_)) => true,
            (Self::Calls, Some(screen)) => screen == Screen::Calls,
            (Self::Timeline, Some(screen)) => screen == Screen::Timeline,
            (_, None) | (Self::Page, Some(_)) => false,
        }
    }
}

/// What a key asks for on a screen; `None` as the screen is a page of text.
pub(crate) fn action(event: KeyEvent, screen: Option<Screen>) -> Option<Action> {
    let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
    let key = match event.code {
        KeyCode::Char(char) if ctrl => Key::Ctrl(char.to_ascii_lowercase()),
        code => Key::Plain(code),
    };
    bindings(screen)
        .find(|binding| binding.keys.contains(&key))
        .map(|binding| binding.action)
}

/// What can be done there, in the order of the table.
pub(crate) fn bindings(screen: Option<Screen>) -> impl Iterator<Item = &'static Binding> {
    KEYS.iter()
        .filter(move |binding| binding.place.holds(screen))
}

impl Key {
    /// What stands on it.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Ctrl(char) => format!("Ctrl-{}", char.to_ascii_uppercase()),
            Self::Plain(KeyCode::Char(' ')) => "Space".into(),
            Self::Plain(KeyCode::BackTab) => "Shift-Tab".into(),
            Self::Plain(KeyCode::Up) => "↑".into(),
            Self::Plain(KeyCode::Down) => "↓".into(),
            Self::Plain(KeyCode::Left) => "←".into(),
            Self::Plain(KeyCode::Right) => "→".into(),
            Self::Plain(KeyCode::PageUp) => "PgUp".into(),
            Self::Plain(KeyCode::PageDown) => "PgDn".into(),
            Self::Plain(code) => code.to_string(),
        }
    }
}

impl Binding {
    /// `j ↓`.
    pub(crate) fn names(&self) -> String {
        self.keys
            .iter()
            .map(|key| key.name())
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// The table as Markdown, for the documentation.
pub fn markdown() -> String {
    let mut text = String::new();
    for place in Place::ALL {
        text += &format!("### {}\n\n| keys | |\n|---|---|\n", place.title());
        for binding in KEYS.iter().filter(|binding| binding.place == place) {
            let names: Vec<_> = binding
                .keys
                .iter()
                .map(|key| format!("`{}`", key.name()))
                .collect();
            text += &format!("| {} | {} |\n", names.join(" "), binding.help);
        }
        text += "\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: [Option<Screen>; 4] = [
        None,
        Some(Screen::Calls),
        Some(Screen::Timeline),
        Some(Screen::Findings),
    ];

    #[test]
    fn no_key_means_two_things_in_one_place() {
        for screen in PLACES {
            let mut seen: Vec<(Key, Place)> = Vec::new();
            for binding in bindings(screen) {
                for key in binding.keys {
                    let again = seen.contains(&(*key, binding.place));
                    assert!(!again, "{} in {:?}", key.name(), binding.place);
                    seen.push((*key, binding.place));
                }
            }
        }
    }

    #[test]
    fn every_binding_can_be_reached() {
        for binding in KEYS {
            let reached = binding.keys.iter().all(|key| {
                PLACES.iter().any(|screen| {
                    let first = bindings(*screen).find(|other| other.keys.contains(key));
                    first.is_some_and(|first| std::ptr::eq(first, binding))
                })
            });
            assert!(reached, "{}", binding.help);
        }
    }
}
