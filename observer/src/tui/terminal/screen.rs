//! The screen as a loan: taken, and given back on every way out.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::{cursor, event, execute, terminal};

use super::TerminalError;

/// The terminal, as it is drawn on.
pub(super) type Screen = Terminal<CrosstermBackend<io::Stdout>>;

/// Whether the terminal is ours, and is to be given back.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Gives the terminal back when it goes.
pub(super) struct Loan;

impl Drop for Loan {
    fn drop(&mut self) {
        give_back();
    }
}

/// Takes the terminal, or takes it again, with nothing on it.
pub(super) fn take() -> Result<Screen, TerminalError> {
    restore_on_panic();
    terminal::enable_raw_mode().map_err(|source| TerminalError::Io {
        operation: "take the terminal",
        source,
    })?;
    TAKEN.store(true, Ordering::SeqCst);
    let begun = execute!(
        io::stdout(),
        terminal::EnterAlternateScreen,
        event::EnableMouseCapture,
        event::EnableBracketedPaste,
        terminal::Clear(terminal::ClearType::All),
        cursor::Hide
    );
    begun
        .and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())))
        .map_err(TerminalError::draw)
}

/// What is to be printed when the terminal is given back.
static POSTPONED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Keeps a line until the terminal is given back; `false` where it is not ours.
pub fn postpone(line: String) -> bool {
    let taken = TAKEN.load(Ordering::SeqCst);
    if taken {
        POSTPONED
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(line);
    }
    taken
}

/// Gives the terminal back; does nothing where it is not ours.
pub(super) fn give_back() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    // Each on its own, and errors ignored: there is nothing better to be done.
    let _ = execute!(
        io::stdout(),
        event::DisableBracketedPaste,
        event::DisableMouseCapture,
        terminal::LeaveAlternateScreen,
        cursor::Show
    );
    let _ = terminal::disable_raw_mode();
    let postponed = std::mem::take(&mut *POSTPONED.lock().unwrap_or_else(PoisonError::into_inner));
    for line in postponed {
        let _ = writeln!(io::stderr(), "{line}");
    }
}

/// A panic of any thread gives the terminal back before it says what happened.
fn restore_on_panic() {
    static HOOKED: Once = Once::new();
    HOOKED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            give_back();
            before(info);
        }));
    });
}
