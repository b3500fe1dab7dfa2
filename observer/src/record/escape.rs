//! Bytes of any origin as text that is safe to print and can be turned back.
//!
//! Used for the text of noise in the log, and for everything observed on a terminal.

use std::fmt::Write;

/// The bytes as printable text, without loss: what is not printable becomes an escape.
///
/// `\xff` is a byte that is no UTF-8; `\n`, `\r`, `\t`, `\u{1b}` are control characters, and so
/// are characters that change the direction of text or show nothing; `\\` is a backslash.
pub fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for char in chunk.valid().chars() {
            push_escaped(&mut out, char);
        }
        for byte in chunk.invalid() {
            // Writing into a String cannot fail.
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

/// The text as it may be printed: what a terminal would obey, or would not show, as an escape.
///
/// Unlike [`escape`] leaves backslashes alone, so that it reads well and cannot be turned back.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\\' => out.push(char),
            _ => push_escaped(&mut out, char),
        }
    }
    out
}

/// The bytes that [`escape`] was given. What is no escape stands for itself.
pub fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at..];
        let taken = unescape_one(rest, &mut out);
        rest = &rest[taken..];
    }
    out.extend_from_slice(rest.as_bytes());
    out
}

fn push_escaped(out: &mut String, char: char) {
    match char {
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        _ if is_unprintable(char) => out.extend(char.escape_unicode()),
        _ => out.push(char),
    }
}

/// Control characters, and the characters that reorder or hide text (Unicode's bidirectional
/// controls, zero-width and format characters, line and paragraph separators, tags).
fn is_unprintable(char: char) -> bool {
    char.is_control()
        || matches!(char,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// Takes the escape at the start of `text` (a backslash); returns how many bytes it was long.
fn unescape_one(text: &str, out: &mut Vec<u8>) -> usize {
    let simple = match text.as_bytes().get(1) {
        Some(b'\\') => Some(b'\\'),
        Some(b'n') => Some(b'\n'),
        Some(b'r') => Some(b'\r'),
        Some(b't') => Some(b'\t'),
        _ => None,
    };
    if let Some(byte) = simple {
        out.push(byte);
        return 2;
    }
    if let Some(byte) = text
        .strip_prefix("\\x")
        .and_then(|hex| hex.get(..2))
        .and_then(|hex| u8::from_str_radix(hex, 16).ok())
    {
        out.push(byte);
        return 4;
    }
    if let Some((hex, _)) = text
        .strip_prefix("\\u{")
        .and_then(|rest| rest.split_once('}'))
        && let Some(char) = u32::from_str_radix(hex, 16).ok().and_then(char::from_u32)
    {
        out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
        return "\\u{}".len() + hex.len();
    }
    out.push(b'\\');
    1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        assert_eq!(escape(b"\x1b[31mred\x07"), r"\u{1b}[31mred\u{7}");
        assert_eq!(escape("a\u{202e}b\u{9b}c".as_bytes()), r"a\u{202e}b\u{9b}c");
        assert_eq!(escape(b"C:\\x41\r\n"), r"C:\\x41\r\n");
        assert_eq!(escape(b"\xff\xc3"), r"\xff\xc3");
        assert_eq!(escape("grüße 你好".as_bytes()), "grüße 你好");
    }

    #[test]
    fn what_is_no_escape_stands_for_itself() {
        assert_eq!(
            unescape(r"\q \xg0 \u{110000} \u{12 \"),
            br"\q \xg0 \u{110000} \u{12 \"
        );
    }

    proptest! {
        #[test]
        fn escaping_loses_nothing(bytes: Vec<u8>) {
            let text = escape(&bytes);
            prop_assert!(!text.chars().any(is_unprintable));
            prop_assert_eq!(unescape(&text), bytes);
        }

        #[test]
        fn what_is_printed_is_printable(text: String) {
            prop_assert!(!printable(&text).chars().any(is_unprintable));
        }

        #[test]
        fn unescaping_takes_any_text(text in r"(\\[nrtxu\\{}0-9a-f]{0,5}|\PC){0,20}") {
            unescape(&text);
        }
    }
}
