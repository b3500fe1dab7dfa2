//! Which bytes that a program reads from its terminal are the key Esc or the keys Ctrl-C.
//!
//! Owns the parsing of one terminal's input, as the program got it. Pure: time is an argument.
//! Must never keep or show what was typed: a byte that is neither key leaves no trace, and the
//! only bytes held back are the parameters of a control sequence that is not over yet.
//!
//! Sources: ECMA-48 5.4 (control sequences) and 5.6 (control strings); xterm's ctlseqs, "Mouse
//! Tracking", "Bracketed Paste Mode" and `modifyOtherKeys`; the kitty keyboard protocol,
//! "An overview".

use std::time::Duration;

use crate::capture::event::{InterruptKind, Timestamp};

/// How long after an ESC byte its sequence may begin. Nothing by then: it was the key.
pub const ESCAPE_WAIT: Duration = Duration::from_millis(50);

/// How long a sequence that has begun may pause; it began with an Alt key otherwise.
const SEQUENCE_WAIT: Duration = Duration::from_millis(500);

/// How long a bracketed paste may pause before its end is taken to be lost.
const PASTE_WAIT: Duration = Duration::from_secs(2);

const ESC: u8 = 0x1b;
const CTRL_C: u8 = 0x03;
const BEL: u8 = 0x07;

/// What the terminal writes after a pasted text.
const PASTE_END: &[u8] = b"\x1b[201~";

/// Finds Esc and Ctrl-C in what one program reads from one terminal.
///
/// ```
/// use std::time::Duration;
/// use observer::capture::{InterruptKind, KeyParser, Timestamp};
///
/// let (mut keys, mut found) = (KeyParser::new(), Vec::new());
/// keys.push(Timestamp::ZERO, b"\x1b", &mut found);
/// assert!(found.is_empty()); // It may be the first byte of an arrow key.
/// keys.poll(Timestamp::ZERO + Duration::from_millis(50), &mut found);
/// assert_eq!(found, [(Timestamp::ZERO, InterruptKind::KeyEsc)]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct KeyParser {
    state: State,
    /// When the last byte was read.
    last: Timestamp,
}

/// Where in its input the terminal is.
#[derive(Clone, Copy, Debug, Default)]
enum State {
    /// Between two keys.
    #[default]
    Ground,
    /// After an ESC byte, or two. `ESC ESC [ A` is Alt and an arrow key, `ESC ESC` is Esc twice.
    Escape {
        first: Timestamp,
        second: Option<Timestamp>,
    },
    /// In a control sequence, after `ESC [`.
    Sequence(Parameters),
    /// After `ESC O`: one byte names a function key.
    Function,
    /// After `ESC [ M`: this many bytes of an X10 mouse report are to come.
    Mouse { left: u8 },
    /// In a terminal's reply (OSC, DCS, SOS, PM, APC), up to BEL or `ESC \`.
    Reply { escape: Option<Timestamp> },
    /// In a pasted text, with so many bytes of [`PASTE_END`] seen.
    Paste { matched: usize },
}

impl KeyParser {
    /// A terminal whose input is between two keys.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in what was read at `at` (not before any earlier read), and appends the keys that
    /// are complete to `out`, each with the time at which it was read.
    pub fn push(&mut self, at: Timestamp, bytes: &[u8], out: &mut Vec<(Timestamp, InterruptKind)>) {
        self.poll(at, out);
        for &byte in bytes {
            self.state = next(self.state, at, byte, out);
        }
        self.last = at;
    }

    /// Decides what has waited long enough at `now`.
    pub fn poll(&mut self, now: Timestamp, out: &mut Vec<(Timestamp, InterruptKind)>) {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        match self.state {
            State::Escape { first, second } => {
                out.push((first, InterruptKind::KeyEsc));
                out.extend(second.map(|at| (at, InterruptKind::KeyEsc)));
            }
            State::Reply { escape: Some(at) } => out.push((at, InterruptKind::KeyEsc)),
            _ => {}
        }
        self.state = State::Ground;
    }

    /// When [`poll`](Self::poll) is due, if no byte is read before.
    pub fn deadline(&self) -> Option<Timestamp> {
        let wait = match self.state {
            State::Ground => return None,
            State::Escape { .. } | State::Reply { escape: Some(_) } => ESCAPE_WAIT,
            State::Paste { .. } => PASTE_WAIT,
            State::Sequence(_) | State::Function | State::Mouse { .. } | State::Reply { .. } => {
                SEQUENCE_WAIT
            }
        };
        Some(self.last + wait)
    }
}

/// The state after `byte`; a key that it completes goes to `out`.
fn next(state: State, at: Timestamp, byte: u8, out: &mut Vec<(Timestamp, InterruptKind)>) -> State {
    match state {
        State::Ground => ground(at, byte, out),
        State::Escape { first, second } => escape(first, second, at, byte, out),
        State::Sequence(parameters) => match byte {
            0x20..=0x3f => State::Sequence(parameters.with(byte)),
            b'M' if parameters.is_empty() => State::Mouse { left: 3 },
            b'~' if parameters.text() == Some(b"200") => State::Paste { matched: 0 },
            0x40..=0x7e => {
                out.extend(parameters.key(byte).map(|key| (at, key)));
                State::Ground
            }
            // No byte of a sequence: it was cut short, or was an Alt key.
            _ => ground(at, byte, out),
        },
        State::Function => match byte {
            0x20..=0x7e => State::Ground,
            _ => ground(at, byte, out),
        },
        State::Mouse { left } if left > 1 => State::Mouse { left: left - 1 },
        State::Mouse { .. } => State::Ground,
        State::Reply { escape: None } => match byte {
            BEL => State::Ground,
            ESC => State::Reply { escape: Some(at) },
            _ => State::Reply { escape: None },
        },
        State::Reply { escape: Some(_) } if byte == b'\\' => State::Ground,
        State::Reply {
            escape: Some(first),
        } => escape(first, None, at, byte, out),
        State::Paste { matched } => paste(matched, byte),
    }
}

fn ground(at: Timestamp, byte: u8, out: &mut Vec<(Timestamp, InterruptKind)>) -> State {
    match byte {
        ESC => {
            return State::Escape {
                first: at,
                second: None,
            };
        }
        CTRL_C => out.push((at, InterruptKind::KeyCtrlC)),
        _ => {}
    }
    State::Ground
}

/// After one ESC byte or two: what does `byte` make of them?
fn escape(
    first: Timestamp,
    second: Option<Timestamp>,
    at: Timestamp,
    byte: u8,
    out: &mut Vec<(Timestamp, InterruptKind)>,
) -> State {
    match (byte, second) {
        (ESC, None) => State::Escape {
            first,
            second: Some(at),
        },
        (ESC, Some(second)) => {
            out.push((first, InterruptKind::KeyEsc));
            State::Escape {
                first: second,
                second: Some(at),
            }
        }
        (b'[', _) => State::Sequence(Parameters::default()),
        (b'O', _) => State::Function,
        (b']' | b'P' | b'X' | b'^' | b'_', None) => State::Reply { escape: None },
        // Alt and a key, after an Esc where there were two.
        (_, second) => {
            out.extend(second.map(|_| (first, InterruptKind::KeyEsc)));
            State::Ground
        }
    }
}

fn paste(matched: usize, byte: u8) -> State {
    // ESC occurs in the end mark only as its first byte, so a mismatch restarts there.
    let matched = match PASTE_END.get(matched) {
        Some(&expected) if expected == byte => matched + 1,
        _ => usize::from(byte == ESC),
    };
    if matched == PASTE_END.len() {
        State::Ground
    } else {
        State::Paste { matched }
    }
}

/// The parameters of a control sequence, as far as a key's can be long. What is longer is read
/// to its end and is no key.
#[derive(Clone, Copy, Debug, Default)]
struct Parameters {
    bytes: [u8; 32],
    len: usize,
}

impl Parameters {
    fn with(mut self, byte: u8) -> Self {
        if let Some(slot) = self.bytes.get_mut(self.len) {
            *slot = byte;
        }
        self.len = self.len.saturating_add(1);
        self
    }

    fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All of them, or `None` where they were too long to keep.
    fn text(&self) -> Option<&[u8]> {
        self.bytes.get(..self.len)
    }

    /// The key that a sequence with these parameters and this last byte stands for.
    fn key(&self, last: u8) -> Option<InterruptKind> {
        // A private marker (`<`, `=`, `>`, `?`) or an intermediate byte is no digit: no key then.
        let mut fields = std::str::from_utf8(self.text()?).ok()?.split(';');
        match last {
            // CSI code:shifted:base ; modifiers:event ; text u
            b'u' => {
                let mut codes = fields.next()?.split(':');
                let code = number(codes.next()?)?;
                let base = codes.nth(1).and_then(number);
                let modifiers = Modifiers::parse(fields.next().unwrap_or_default())?;
                modifiers.key(code).or_else(|| modifiers.key(base?))
            }
            // CSI 27 ; modifiers ; code ~
            b'~' if fields.next()? == "27" => {
                let modifiers = Modifiers::parse(fields.next()?)?;
                modifiers.key(number(fields.next()?)?)
            }
            _ => None,
        }
    }
}

/// The modifiers that matter of a key that was pressed or repeats; locks do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Modifiers(u32);

impl Modifiers {
    const NONE: Self = Self(0);
    const CTRL: Self = Self(0b100);
    /// Caps lock and num lock.
    const LOCKS: u32 = 0b1100_0000;
    const RELEASE: u32 = 3;

    /// From `modifiers:event`, where modifiers are one more than their bits, and both may be
    /// left out. `None` for a key that was released, and for what is no such field.
    fn parse(field: &str) -> Option<Self> {
        let (modifiers, event) = field.split_once(':').unwrap_or((field, ""));
        let or_one = |text: &str| {
            if text.is_empty() {
                Some(1)
            } else {
                number(text)
            }
        };
        if or_one(event)? == Self::RELEASE {
            return None;
        }
        Some(Self(or_one(modifiers)?.checked_sub(1)? & !Self::LOCKS))
    }

    fn key(self, code: u32) -> Option<InterruptKind> {
        const ESCAPE: u32 = 27;
        const LETTER_C: u32 = 'c' as u32;
        match (code, self) {
            (ESCAPE, Self::NONE) => Some(InterruptKind::KeyEsc),
            (LETTER_C, Self::CTRL) => Some(InterruptKind::KeyCtrlC),
            _ => None,
        }
    }
}

fn number(text: &str) -> Option<u32> {
    // `parse` would take a plus sign as well.
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests;
