//! What can go wrong with the terminal.

use std::io;

use thiserror::Error;

/// The terminal does not do what it should.
#[derive(Debug, Error)]
pub enum TerminalError {
    /// There is none.
    #[error("cannot show the live view: stdout is no terminal")]
    None,
    /// The system refuses.
    #[error("cannot {operation}: {source}")]
    Io {
        /// What was tried.
        operation: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The view itself failed.
    #[error("the live view failed")]
    Panicked,
}

impl TerminalError {
    pub(in crate::tui) const fn thread(source: io::Error) -> Self {
        Self::Io {
            operation: "start the live view",
            source,
        }
    }

    pub(in crate::tui) const fn panicked() -> Self {
        Self::Panicked
    }

    pub(super) const fn draw(source: io::Error) -> Self {
        Self::Io {
            operation: "draw on the terminal",
            source,
        }
    }

    pub(super) const fn read(source: io::Error) -> Self {
        Self::Io {
            operation: "read from the terminal",
            source,
        }
    }
}
