//! The one place that touches the terminal: takes it, reads keys, draws, and gives it back.
//!
//! Whatever happens (the user leaves, an error, a panic, a signal, Ctrl-Z), the terminal is given
//! back as it was. [`screen`] owns that, [`keyboard`] the waiting for keys, [`signals`] those that
//! would end us, [`effect`] what the view wants done outside, [`log`] what is read back for it.

mod effect;
mod error;
mod keyboard;
mod log;
mod screen;
mod signals;

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::TryRecvError;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, raise};
use ratatui::crossterm::event;

use super::feed::{LiveClock, Messages};
use super::message::{Effect, Message};
use super::model::Model;
use super::update::update;
use super::view::{Theme, view};
use crate::wording::count;
pub use error::TerminalError;
use keyboard::{Keyboard, Waited};
use log::Log;
pub use screen::postpone;
use screen::{Loan, Screen, give_back, take};

/// How long messages are taken in before the screen is looked after again.
const TAKING: Duration = Duration::from_millis(8);

/// The screen is drawn no more often than this while messages come in.
const FRAME: Duration = Duration::from_millis(33);

/// How often the ages of running calls move on.
const TICK: Duration = Duration::from_millis(100);

/// How long a key is waited for where nothing else can come.
const QUIET: Duration = Duration::from_millis(250);

/// How the view is to be.
#[derive(Clone, Debug)]
pub struct Options {
    /// Colours and signs.
    pub theme: Theme,
    /// About so many bytes of memory are used for what was observed.
    pub memory: usize,
    /// The log that frames' places are in.
    pub log: Option<PathBuf>,
}

/// Whether there is a terminal to show anything on.
///
/// # Errors
/// Where there is none.
pub(super) fn check() -> Result<(), TerminalError> {
    if io::stdout().is_terminal() {
        Ok(())
    } else {
        Err(TerminalError::None)
    }
}

/// Shows the model and all that becomes of it, until the user leaves.
pub(super) fn show(
    model: Model,
    options: &Options,
    messages: &Messages,
    clock: Option<LiveClock>,
    leave: &AtomicBool,
) -> Result<(), TerminalError> {
    signals::hear();
    // Even where it cannot be taken altogether.
    let _loan = Loan;
    let mut shown = Shown {
        keyboard: Keyboard::open()?,
        screen: take()?,
        model,
        options,
        log: Log::new(options.log.as_deref()),
        clock,
        drawn: Instant::now() - FRAME,
        ticked: Instant::now(),
        urgent: true,
    };
    shown.resize();
    let result = shown.go_on(messages, leave);
    give_back();
    // Whoever ended us expects to see that it did.
    if let Some(signal) = signals::heard() {
        signals::end_by(signal);
    }
    result
}

struct Shown<'a> {
    keyboard: Keyboard,
    screen: Screen,
    model: Model,
    options: &'a Options,
    log: Log,
    clock: Option<LiveClock>,
    drawn: Instant,
    ticked: Instant,
    /// The user waits for the next picture.
    urgent: bool,
}

impl Shown<'_> {
    fn go_on(&mut self, messages: &Messages, leave: &AtomicBool) -> Result<(), TerminalError> {
        let mut more = true;
        loop {
            let busy = more && self.take_in(messages, &mut more);
            if leave.load(Ordering::Relaxed) || signals::heard().is_some() {
                return Ok(());
            }
            self.tick();
            if self.model.unfinished || self.model.unsorted {
                update(&mut self.model, Message::Idle);
            }
            self.draw()?;
            let wait = match (busy || self.model.unfinished, self.model.ended.is_some()) {
                (true, _) => Duration::ZERO,
                (false, true) => QUIET,
                (false, false) => FRAME,
            };
            if self.read_keys(wait)? {
                return Ok(());
            }
        }
    }

    /// Takes in what the pipeline said, for a while; whether there may be more.
    fn take_in(&mut self, messages: &Messages, more: &mut bool) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < TAKING {
            match messages.try_recv() {
                Ok(message) => {
                    update(&mut self.model, message);
                }
                Err(TryRecvError::Empty) => return false,
                Err(TryRecvError::Disconnected) => {
                    *more = false;
                    return false;
                }
            }
        }
        true
    }

    fn tick(&mut self) {
        if let Some(clock) = self
            .clock
            .as_ref()
            .filter(|_| self.ticked.elapsed() >= TICK)
        {
            self.ticked = Instant::now();
            update(&mut self.model, Message::Tick(clock()));
        }
    }

    /// Draws, where what is on the screen is not what it should be.
    fn draw(&mut self) -> Result<(), TerminalError> {
        if !self.model.stale || (!self.urgent && self.drawn.elapsed() < FRAME) {
            return Ok(());
        }
        let (model, theme) = (&self.model, &self.options.theme);
        let drawn = self.screen.draw(|canvas| view(model, theme, canvas));
        drawn.map_err(TerminalError::draw)?;
        self.model.stale = false;
        self.urgent = false;
        self.drawn = Instant::now();
        Ok(())
    }

    /// Waits for keys, and does what they ask for; whether to leave.
    fn read_keys(&mut self, mut wait: Duration) -> Result<bool, TerminalError> {
        loop {
            if self.keyboard.wait(wait) == Waited::Gone {
                return Ok(true);
            }
            wait = Duration::ZERO;
            if !event::poll(wait).map_err(TerminalError::read)? {
                return Ok(false);
            }
            let message = match event::read().map_err(TerminalError::read)? {
                event::Event::Key(key) => Message::Key(key),
                event::Event::Mouse(mouse) => Message::Mouse(mouse),
                event::Event::Paste(text) => Message::Paste(text),
                event::Event::Resize(columns, lines) => Message::Resize(columns, lines),
                event::Event::FocusGained | event::Event::FocusLost => continue,
            };
            self.urgent = true;
            for effect in update(&mut self.model, message) {
                if self.perform(effect)? {
                    return Ok(true);
                }
            }
        }
    }

    /// Does what is to be done outside; whether to leave.
    fn perform(&mut self, effect: Effect) -> Result<bool, TerminalError> {
        match effect {
            Effect::Quit => return Ok(true),
            Effect::Suspend => self.suspend()?,
            Effect::Redraw => {
                self.screen = take()?;
                self.model.stale = true;
            }
            Effect::Copy(text) => {
                let note = effect::copy(&text)
                    .err()
                    .map(|error| format!("cannot copy: {error}"));
                if let Some(note) = note {
                    update(&mut self.model, Message::Note(note));
                }
            }
            Effect::Fetch(number, place) => {
                let fetched = self.log.event(place);
                update(&mut self.model, Message::Fetched(number, fetched));
            }
            Effect::Save(path, saved) => {
                let mut note = format!("saved to {}, and judged anew", path.display());
                if saved.lost > 0 {
                    let lost = count(saved.lost as u64, "frame");
                    note += &format!("; {lost} had left memory, so it is incomplete");
                }
                let note = effect::save(&path, *saved, &mut self.log)
                    .err()
                    .unwrap_or(note);
                update(&mut self.model, Message::Note(note));
            }
        }
        Ok(false)
    }

    /// Gives the terminal back and stops, until the shell resumes us.
    fn suspend(&mut self) -> Result<(), TerminalError> {
        give_back();
        // Not SIGTSTP: an observation may hold that one back. And not `kill`, which may stop
        // another thread first, while this one goes on.
        let _ = raise(Signal::SIGSTOP);
        self.screen = take()?;
        self.resize();
        Ok(())
    }

    fn resize(&mut self) {
        if let Ok(size) = self.screen.size() {
            update(&mut self.model, Message::Resize(size.width, size.height));
        }
    }
}
