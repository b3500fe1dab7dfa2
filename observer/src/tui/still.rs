//! The view without a terminal: for pictures, and to measure it.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::message::{Arrival, Message};
use super::model::{Model, Source};
use super::update::update;
use super::view::{Theme, view};

/// A view of so many columns and lines that is drawn into a buffer.
pub struct Still {
    model: Model,
    theme: Theme,
    terminal: Terminal<TestBackend>,
}

impl Still {
    /// A view of what comes from `source`, that keeps to about `memory` bytes.
    pub fn new(source: Source, theme: Theme, memory: usize, (columns, lines): (u16, u16)) -> Self {
        let mut model = Model::new(source, memory);
        update(&mut model, Message::Resize(columns, lines));
        let Ok(terminal) = Terminal::new(TestBackend::new(columns, lines));
        Self {
            model,
            theme,
            terminal,
        }
    }

    /// Takes in what the pipeline said.
    pub fn arrive(&mut self, arrivals: Vec<Arrival>) {
        update(&mut self.model, Message::Arrived(arrivals));
    }

    /// Says that there will be no more.
    pub fn end(&mut self) {
        update(&mut self.model, Message::Ended(None));
        self.finish();
    }

    /// Presses a key.
    pub fn press(&mut self, key: KeyCode) {
        update(
            &mut self.model,
            Message::Key(KeyEvent::new(key, KeyModifiers::NONE)),
        );
    }

    /// Presses keys for characters; a newline is Enter.
    pub fn type_in(&mut self, keys: &str) {
        for char in keys.chars() {
            self.press(if char == '\n' {
                KeyCode::Enter
            } else {
                KeyCode::Char(char)
            });
        }
    }

    /// Does all that a filter has left to be done; how many pieces that took.
    pub fn finish(&mut self) -> u32 {
        let mut pieces = 0;
        while self.model.unfinished || self.model.unsorted {
            update(&mut self.model, Message::Idle);
            pieces += 1;
        }
        pieces
    }

    /// Goes on with what a filter has left to be done, as far as one frame of the screen allows.
    pub fn go_on(&mut self) {
        update(&mut self.model, Message::Idle);
    }

    /// Draws.
    pub fn draw(&mut self) -> &Buffer {
        let Self {
            model,
            theme,
            terminal,
        } = self;
        let Ok(_) = terminal.draw(|canvas| view(model, theme, canvas));
        self.terminal.backend().buffer()
    }
}
