//! Lines that are no messages: their shape stays, their words go.

use super::Redactor;
use crate::record::Payload;

/// Words that are no payload, and that tell a message in the wrong frame from other text.
const KEPT: [&str; 12] = [
    "jsonrpc", "method", "params", "result", "error", "id", "true", "false", "null", "Content",
    "Length", "Type",
];

impl Redactor {
    /// The text without what is hidden; `None` where nothing is.
    pub(super) fn noise(&self, text: &[u8]) -> Option<Vec<u8>> {
        match self.plan.payload {
            Payload::Redacted | Payload::None => Some(masked(text)),
            // Of what is no UTF-8 nothing can be said.
            Payload::Full => self
                .clean(str::from_utf8(text).ok()?)
                .map(String::into_bytes),
        }
    }
}

/// Each letter as `x`, each digit as `1`, to the same length. What is JSON, or the beginning of
/// it, still is.
fn masked(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for chunk in text.utf8_chunks() {
        mask(chunk.valid(), &mut out);
        out.extend_from_slice(chunk.invalid());
    }
    out
}

fn mask(text: &str, out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(char) = rest.chars().next() {
        let taken = match char {
            '\\' => escape(rest, out),
            _ if char.is_alphabetic() => word(rest, out),
            '0'..='9' => number(rest, out),
            _ if char.is_numeric() => {
                out.resize(out.len() + char.len_utf8(), b'x');
                char.len_utf8()
            }
            _ => {
                out.extend_from_slice(&rest.as_bytes()[..char.len_utf8()]);
                char.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
}

/// An escape of JSON, of a character that shows nothing of the one that was there.
fn escape(text: &str, out: &mut Vec<u8>) -> usize {
    let hex = text.as_bytes().get(2..6);
    if text.starts_with("\\u") && hex.is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)) {
        out.extend_from_slice(b"\\u0078");
        return 6;
    }
    let next = text[1..].chars().next().map_or(0, char::len_utf8);
    out.extend_from_slice(&text.as_bytes()[..=next]);
    1 + next
}

fn word(text: &str, out: &mut Vec<u8>) -> usize {
    let length = text
        .find(|char: char| !char.is_alphabetic())
        .unwrap_or(text.len());
    match KEPT.contains(&&text[..length]) {
        true => out.extend_from_slice(&text.as_bytes()[..length]),
        false => out.resize(out.len() + length, b'x'),
    }
    length
}

/// `2.0` is the version of JSON-RPC. `1e9` is a number, and stays one.
fn number(text: &str, out: &mut Vec<u8>) -> usize {
    if text.starts_with("2.0\"") {
        out.extend_from_slice(b"2.0");
        return 3;
    }
    let length = text
        .find(|char: char| !char.is_ascii_digit())
        .unwrap_or(text.len());
    // A zero stays: `01` is no number.
    let leading = text[..length].starts_with('0');
    out.resize(out.len() + length, b'1');
    if leading {
        let first = out.len() - length;
        out[first] = b'0';
    }
    let exponent = text[length..].starts_with(['e', 'E']);
    let digits = text[length..].get(1..).is_some_and(|rest| {
        rest.starts_with(|char: char| char.is_ascii_digit() || matches!(char, '+' | '-'))
    });
    if exponent && digits {
        out.push(b'e');
        return length + 1;
    }
    length
}
