//! The one place that touches the terminal: takes it, reads keys, draws, and gives it back.
//!
//! Whatever happens (the user leaves, an error, a panic, a signal, Ctrl-Z), the terminal is given
//! back as it was.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::TryRecvError;
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, raise, sigaction};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::{cursor, event, execute, terminal};
use thiserror::Error;

use super::feed::{LiveClock, Messages};
use super::message::{Effect, Message, SavedLine};
use super::model::{LogPlace, Model};
use super::update::update;
use super::view::{Theme, view};
use crate::record::parse_line;
use crate::session::Event;

/// How long messages are taken in before the screen is looked after again.
const TAKING: Duration = Duration::from_millis(8);

/// The screen is drawn no more often than this while messages come in.
const FRAME: Duration = Duration::from_millis(33);

/// How often the ages of running calls move on.
const TICK: Duration = Duration::from_millis(100);

/// How long a key is waited for where nothing else can come.
const QUIET: Duration = Duration::from_millis(250);

/// More than this is not put into a clipboard: terminals drop it.
const CLIPBOARD: usize = 1 << 20;

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
    pub(super) const fn thread(source: io::Error) -> Self {
        Self::Io {
            operation: "start the live view",
            source,
        }
    }

    pub(super) const fn panicked() -> Self {
        Self::Panicked
    }

    const fn draw(source: io::Error) -> Self {
        Self::Io {
            operation: "draw on the terminal",
            source,
        }
    }

    const fn read(source: io::Error) -> Self {
        Self::Io {
            operation: "read from the terminal",
            source,
        }
    }
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
    hear_signals();
    // Even where it cannot be taken altogether.
    let _loan = Loan;
    let mut shown = Shown {
        keyboard: Keyboard::open()?,
        screen: take()?,
        model,
        options,
        clock,
        drawn: Instant::now() - FRAME,
        ticked: Instant::now(),
        urgent: true,
    };
    shown.resize();
    let result = shown.go_on(messages, leave);
    give_back();
    // Whoever ended us expects to see that it did.
    if let Some(signal) = heard() {
        end_by(signal);
    }
    result
}

struct Shown<'a> {
    keyboard: Keyboard,
    screen: Screen,
    model: Model,
    options: &'a Options,
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
            if leave.load(Ordering::Relaxed) || heard().is_some() {
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
                let note = copy(&text)
                    .err()
                    .map(|error| format!("cannot copy: {error}"));
                if let Some(note) = note {
                    update(&mut self.model, Message::Note(note));
                }
            }
            Effect::Fetch(number, place) => {
                let fetched = fetch(self.options.log.as_deref(), place);
                update(&mut self.model, Message::Fetched(number, fetched));
            }
            Effect::Save(path, lines) => {
                let note = match save(&path, &lines, self.options.log.as_deref()) {
                    Ok(()) => format!("saved {} records to {}", lines.len(), path.display()),
                    Err(error) => format!("cannot write {}: {error}", path.display()),
                };
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

type Screen = Terminal<CrosstermBackend<io::Stdout>>;

/// Where keys come from.
enum Keyboard {
    Stdin(io::Stdin),
    /// Stdin is something else: the log that is read, say.
    Terminal(File),
}

/// See [`Keyboard::wait`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waited {
    /// There may be a key.
    Perhaps,
    /// The terminal is gone. crossterm must not be asked any more: it would read nothing for ever.
    Gone,
}

impl Keyboard {
    fn open() -> Result<Self, TerminalError> {
        let stdin = io::stdin();
        if stdin.is_terminal() {
            return Ok(Self::Stdin(stdin));
        }
        File::open("/dev/tty").map(Self::Terminal).map_err(TerminalError::read)
    }

    /// Waits for a key, no longer than `wait`.
    fn wait(&self, wait: Duration) -> Waited {
        let terminal = match self {
            Self::Stdin(stdin) => stdin.as_fd(),
            Self::Terminal(file) => file.as_fd(),
        };
        let mut fds = [PollFd::new(terminal, PollFlags::POLLIN)];
        let timeout = PollTimeout::try_from(wait).unwrap_or(PollTimeout::ZERO);
        let gone = PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL;
        match poll(&mut fds, timeout) {
            Ok(_) if fds[0].revents().is_some_and(|events| events.intersects(gone)) => Waited::Gone,
            // A signal that interrupts the wait is looked after by the caller.
            Ok(_) | Err(_) => Waited::Perhaps,
        }
    }
}

/// Whether the terminal is ours, and is to be given back.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Gives the terminal back when it goes.
struct Loan;

impl Drop for Loan {
    fn drop(&mut self) {
        give_back();
    }
}

/// Takes the terminal, or takes it again, with nothing on it.
fn take() -> Result<Screen, TerminalError> {
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
fn give_back() {
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

/// The signal that wants us to end; 0 for none.
static HEARD: AtomicI32 = AtomicI32::new(0);

const ENDING: [Signal; 3] = [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT];

extern "C" fn hear(signal: i32) {
    HEARD.store(signal, Ordering::SeqCst);
}

/// Takes note of signals that would end us with the terminal in disorder. Where an observation
/// holds them back for itself, they never come here.
fn hear_signals() {
    let action = SigAction::new(SigHandler::Handler(hear), SaFlags::empty(), SigSet::empty());
    for signal in ENDING {
        // SAFETY: the handler only stores to an atomic.
        let _ = unsafe { sigaction(signal, &action) };
    }
}

fn heard() -> Option<Signal> {
    Signal::try_from(HEARD.load(Ordering::SeqCst)).ok()
}

/// Ends by the signal, as if it had not been heard.
fn end_by(signal: Signal) {
    let action = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: the default action runs no code of ours.
    let _ = unsafe { sigaction(signal, &action) };
    let mut set = SigSet::empty();
    set.add(signal);
    let _ = set.thread_unblock();
    let _ = raise(signal);
}

/// Puts a text into the clipboard of whoever sits at the terminal: OSC 52.
fn copy(text: &str) -> io::Result<()> {
    if text.len() > CLIPBOARD {
        return Err(io::Error::other("the message is too long for a clipboard"));
    }
    let mut out = io::stdout().lock();
    write!(out, "\x1b]52;c;{}\x07", base64(text.as_bytes()))?;
    out.flush()
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let at = (bits >> (18 - 6 * digit)) & 63;
            text.push(if digit > chunk.len() {
                '='
            } else {
                char::from(DIGITS[at as usize])
            });
        }
    }
    text
}

fn fetch(log: Option<&Path>, place: LogPlace) -> Result<Event, String> {
    let line = read_at(log, place).map_err(|error| format!("cannot read the log: {error}"))?;
    let record = parse_line(line.trim_ascii_end());
    let observed = record
        .ok()
        .flatten()
        .and_then(crate::record::Record::into_observed);
    observed
        .map(|observed| observed.event)
        .ok_or_else(|| "the log has changed".into())
}

fn read_at(log: Option<&Path>, place: LogPlace) -> io::Result<Vec<u8>> {
    let path = log.ok_or_else(|| io::Error::other("there is none"))?;
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(place.offset))?;
    let mut line = Vec::new();
    file.take(place.bytes).read_to_end(&mut line)?;
    Ok(line)
}

/// Writes a log that nobody else may read, and that was not there.
fn save(path: &Path, lines: &[SavedLine], log: Option<&Path>) -> io::Result<()> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    let mut file = io::BufWriter::new(file);
    for line in lines {
        match line {
            SavedLine::Text(line) => file.write_all(line)?,
            SavedLine::InLog(place) => file.write_all(&read_at(log, *place)?)?,
        }
    }
    file.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
