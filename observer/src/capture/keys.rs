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

use super::event::{InterruptKind, Timestamp};

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
mod tests {
    use proptest::prelude::*;

    use super::*;

    const E: InterruptKind = InterruptKind::KeyEsc;
    const C: InterruptKind = InterruptKind::KeyCtrlC;

    fn ms(ms: u64) -> Timestamp {
        Timestamp::from_nanos(ms * 1_000_000)
    }

    /// Reads at these milliseconds, then silence for good.
    fn timed(reads: &[(u64, &[u8])]) -> Vec<(Timestamp, InterruptKind)> {
        let (mut keys, mut out) = (KeyParser::new(), Vec::new());
        for (at, bytes) in reads {
            keys.push(ms(*at), bytes, &mut out);
        }
        while let Some(deadline) = keys.deadline() {
            keys.poll(deadline, &mut out);
        }
        out
    }

    fn keys(bytes: &[u8]) -> Vec<InterruptKind> {
        timed(&[(0, bytes)])
            .into_iter()
            .map(|(_, key)| key)
            .collect()
    }

    /// Every form in which a terminal writes a key, read at once, and byte by byte.
    const TABLE: &[(&str, &[u8], &[InterruptKind])] = &[
        ("nothing", b"", &[]),
        ("text", b"hello \xc3\xa9 \xf0\x9f\x8e\x89\r\t\x7f", &[]),
        ("escape", b"\x1b", &[E]),
        ("escape twice", b"\x1b\x1b", &[E, E]),
        ("escape three times", b"\x1b\x1b\x1b", &[E, E, E]),
        ("escape after text", b"abc\x1b", &[E]),
        ("ctrl-c", b"\x03", &[C]),
        ("ctrl-c twice in text", b"a\x03b\x03c", &[C, C]),
        ("other control keys", b"\x01\x02\x04\x1a\x1c\x1d", &[]),
        ("arrow up", b"\x1b[A", &[]),
        ("arrow up, application mode", b"\x1bOA", &[]),
        ("alt and arrow up, rxvt", b"\x1b\x1b[A", &[]),
        ("alt and F1", b"\x1b\x1bOP", &[]),
        ("arrow, then escape", b"\x1b[A\x1b", &[E]),
        ("arrow, then ctrl-c", b"\x1b[A\x03", &[C]),
        ("shift-tab", b"\x1b[Z", &[]),
        ("control and arrow", b"\x1b[1;5C", &[]),
        ("F1", b"\x1bOP", &[]),
        ("F5", b"\x1b[15~", &[]),
        ("F12 with modifiers", b"\x1b[24;5~", &[]),
        ("linux console F1", b"\x1b[[A", &[]),
        ("delete", b"\x1b[3~", &[]),
        ("alt and a letter", b"\x1bx", &[]),
        ("alt and ctrl-c", b"\x1b\x03", &[]),
        ("alt and backspace", b"\x1b\x7f", &[]),
        ("escape, then alt and a letter", b"\x1b\x1bx", &[E]),
        ("alt and [", b"\x1b[", &[]),
        ("alt and [, then escape", b"\x1b[\x1b", &[E]),
        ("alt and [, then ctrl-c", b"\x1b[\x03", &[C]),
        ("alt and O, then ctrl-c", b"\x1bO\x03", &[C]),
        ("alt and ], then escape", b"\x1b]\x1b", &[E]),
        ("kitty escape", b"\x1b[27u", &[E]),
        ("kitty escape, no modifiers", b"\x1b[27;1u", &[E]),
        ("kitty escape, press", b"\x1b[27;1:1u", &[E]),
        ("kitty escape, repeat", b"\x1b[27;1:2u", &[E]),
        ("kitty escape, release", b"\x1b[27;1:3u", &[]),
        (
            "kitty escape, press and release",
            b"\x1b[27;1:1u\x1b[27;1:3u",
            &[E],
        ),
        ("kitty escape, empty modifiers", b"\x1b[27;:1u", &[E]),
        ("kitty escape, caps lock", b"\x1b[27;65u", &[E]),
        ("kitty escape, num lock", b"\x1b[27;129u", &[E]),
        ("kitty escape, both locks, release", b"\x1b[27;193:3u", &[]),
        ("kitty shift-escape", b"\x1b[27;2u", &[]),
        ("kitty alt-escape", b"\x1b[27;3u", &[]),
        ("kitty escape with text", b"\x1b[27;1;27u", &[E]),
        ("kitty ctrl-c", b"\x1b[99;5u", &[C]),
        ("kitty ctrl-c, press", b"\x1b[99;5:1u", &[C]),
        ("kitty ctrl-c, repeat", b"\x1b[99;5:2u", &[C]),
        ("kitty ctrl-c, release", b"\x1b[99;5:3u", &[]),
        ("kitty ctrl-c, num lock", b"\x1b[99;133u", &[C]),
        ("kitty ctrl-c, caps lock", b"\x1b[99;69u", &[C]),
        ("kitty ctrl-shift-c", b"\x1b[99:67;6u", &[]),
        ("kitty super-c", b"\x1b[99;9u", &[]),
        ("kitty c", b"\x1b[99u", &[]),
        (
            "kitty ctrl-c on a Russian keyboard",
            b"\x1b[1089::99;5u",
            &[C],
        ),
        ("kitty ctrl-d", b"\x1b[100;5u", &[]),
        ("kitty left control", b"\x1b[57442;5u", &[]),
        ("kitty zero modifiers", b"\x1b[27;0u", &[]),
        ("kitty flags reply", b"\x1b[?27u", &[]),
        ("modifyOtherKeys ctrl-c", b"\x1b[27;5;99~", &[C]),
        ("modifyOtherKeys escape", b"\x1b[27;1;27~", &[E]),
        ("modifyOtherKeys ctrl-shift-c", b"\x1b[27;6;67~", &[]),
        ("modifyOtherKeys cut short", b"\x1b[27;5~", &[]),
        ("focus in and out", b"\x1b[I\x1b[O", &[]),
        ("mouse, SGR", b"\x1b[<0;27;5M\x1b[<0;27;5m", &[]),
        (
            "mouse, X10, position of a key's value",
            b"\x1b[M \x1b\x03",
            &[],
        ),
        ("mouse, X10, then escape", b"\x1b[M !!\x1b", &[E]),
        ("mouse, urxvt", b"\x1b[32;27;5M", &[]),
        ("cursor position", b"\x1b[27;5R", &[]),
        ("device attributes", b"\x1b[?64;1;27c", &[]),
        ("colour reply, BEL", b"\x1b]11;rgb:0303/1b1b/0000\x07", &[]),
        ("colour reply, ST", b"\x1b]11;rgb:0303/1b1b/0000\x1b\\", &[]),
        (
            "colour reply, then escape",
            b"\x1b]11;rgb:0/0/0\x1b\\\x1b",
            &[E],
        ),
        ("control bytes in a reply", b"\x1bP1$r\x03\x1b\\", &[]),
        ("version reply", b"\x1bP>|XTerm(390)\x1b\\", &[]),
        ("application reply", b"\x1b_Gi=31;OK\x1b\\", &[]),
        ("paste", b"\x1b[200~a\x03b\x1bc\x1b[27u\x1b[201~", &[]),
        ("paste, then ctrl-c", b"\x1b[200~x\x1b[201~\x03", &[C]),
        (
            "paste with half an end in it",
            b"\x1b[200~\x1b[20\x1b[201\x03\x1b\x1b[201~\x1b",
            &[E],
        ),
        ("stray paste end", b"\x1b[201~\x1b", &[E]),
        ("control sequence cut by a key", b"\x1b[1;\x1b[27u", &[E]),
        ("no digits", b"\x1b[+27u\x1b[ 27u\x1b[;u\x1b[u", &[]),
        (
            "a number too large",
            b"\x1b[99999999999999999999u\x1b",
            &[E],
        ),
        (
            "parameters too long to keep",
            b"\x1b[27;1;27:27:27:27:27:27:27:27:27:27:27:27:27:27:27:27u",
            &[],
        ),
    ];

    #[test]
    fn finds_the_two_keys_and_nothing_else() {
        for (name, bytes, expected) in TABLE {
            assert_eq!(keys(bytes), *expected, "{name}");
            let singly: Vec<_> = bytes.chunks(1).map(|byte| (0, byte)).collect();
            let found: Vec<_> = timed(&singly).into_iter().map(|(_, key)| key).collect();
            assert_eq!(found, *expected, "{name}, byte by byte");
        }
    }

    #[test]
    fn time_tells_a_key_from_a_sequence() {
        assert_eq!(timed(&[(0, b"\x1b"), (49, b"[A")]), []);
        assert_eq!(timed(&[(0, b"\x1b"), (50, b"[A")]), [(ms(0), E)]);
        assert_eq!(
            timed(&[(0, b"\x1b"), (50, b"\x1b")]),
            [(ms(0), E), (ms(50), E)]
        );
        assert_eq!(
            timed(&[(0, b"\x1b"), (20, b"\x1b")]),
            [(ms(0), E), (ms(20), E)]
        );
        assert_eq!(timed(&[(7, b"\x1b[27"), (99, b"u")]), [(ms(99), E)]);
        assert_eq!(timed(&[(0, b"\x1b["), (500, b"27u")]), []);
        assert_eq!(timed(&[(0, b"\x1b]"), (500, b"\x03")]), [(ms(500), C)]);
        assert_eq!(
            timed(&[(0, b"\x1b[200~x"), (1_999, b"\x03"), (3_998, b"\x1b")]),
            []
        );
        assert_eq!(
            timed(&[(0, b"\x1b[200~x"), (2_000, b"\x03")]),
            [(ms(2_000), C)]
        );
    }

    #[test]
    fn waits_only_while_a_key_is_undecided() {
        let (mut keys, mut out) = (KeyParser::new(), Vec::new());
        keys.push(ms(3), b"text", &mut out);
        assert_eq!(keys.deadline(), None);
        keys.push(ms(5), b"\x1b", &mut out);
        assert_eq!(keys.deadline(), Some(ms(55)));
        keys.poll(ms(54), &mut out);
        assert_eq!(out, []);
        keys.poll(ms(55), &mut out);
        assert_eq!(out, [(ms(5), E)]);
        assert_eq!(keys.deadline(), None);
    }

    proptest! {
        #[test]
        fn no_input_finds_more_keys_than_it_has_bytes(input: Vec<u8>) {
            prop_assert!(keys(&input).len() <= input.len());
        }

        /// A program that reads in other portions types the same keys.
        #[test]
        fn any_split_finds_the_same_keys(
            picks in prop::collection::vec(0..TABLE.len(), 0..8),
            cuts in prop::collection::vec(1..9_usize, 1..64),
        ) {
            let input: Vec<u8> = picks.iter().flat_map(|&i| TABLE[i].1).copied().collect();
            let (mut reads, mut rest) = (Vec::new(), &input[..]);
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (head, tail) = rest.split_at((*cut).min(rest.len()));
                reads.push((0, head));
                rest = tail;
            }
            let found: Vec<_> = timed(&reads).into_iter().map(|(_, key)| key).collect();
            prop_assert_eq!(found, keys(&input));
        }
    }
}
