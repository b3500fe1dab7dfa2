//! A JSON text as indented lines that can be folded, made as far as they are wanted.
//!
//! The text is valid JSON: a part of a frame. A frame may have 64 MiB, so no more of it is looked
//! at than the lines that are asked for need.

use std::collections::BTreeSet;

use super::doc::Ink;
use crate::record::printable;

/// A string longer than this is shown in part.
const LONGEST: usize = 4 << 10;

/// A line of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JsonLine {
    /// How deep it lies.
    pub(crate) depth: usize,
    pub(crate) spans: Vec<(Ink, String)>,
    /// Where the object or array begins that can be folded here.
    pub(crate) fold: Option<usize>,
}

/// The lines, and whether there are more.
#[derive(Debug, Default)]
pub(crate) struct Pretty {
    pub(crate) lines: Vec<JsonLine>,
    /// How many bytes of the text are not shown.
    pub(crate) rest: usize,
}

/// At most `limit` lines; what begins at a place in `folded` is shown as `{…}`.
pub(crate) fn pretty(text: &str, folded: &BTreeSet<usize>, limit: usize) -> Pretty {
    let mut writer = Writer {
        text,
        at: 0,
        depth: 0,
        lines: Vec::new(),
        line: None,
    };
    while writer.lines.len() < limit && writer.token(folded) {}
    writer.end_line();
    let rest = text.len() - writer.at;
    Pretty {
        lines: writer.lines,
        rest,
    }
}

struct Writer<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    lines: Vec<JsonLine>,
    line: Option<JsonLine>,
}

impl Writer<'_> {
    /// Takes the next token; `false` at the end.
    fn token(&mut self, folded: &BTreeSet<usize>) -> bool {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        let Some(&byte) = bytes.get(self.at) else {
            return false;
        };
        match byte {
            b'{' | b'[' => self.open(byte, folded),
            b'}' | b']' => {
                self.end_line();
                self.depth = self.depth.saturating_sub(1);
                self.push(Ink::Dim, char::from(byte).into());
                self.at += 1;
            }
            b',' => {
                self.push(Ink::Dim, ",".into());
                self.at += 1;
                self.end_line();
            }
            b':' => {
                self.push(Ink::Dim, ": ".into());
                self.at += 1;
            }
            b'"' => self.string(),
            _ => {
                let rest = &self.text[self.at..];
                let end = rest
                    .find([',', '}', ']', ' ', '\n', '\r', '\t'])
                    .unwrap_or(rest.len());
                self.push(Ink::Number, cut(&rest[..end.max(1)]));
                self.at += end.max(1);
            }
        }
        true
    }

    fn open(&mut self, byte: u8, folded: &BTreeSet<usize>) {
        let (start, closing) = (self.at, if byte == b'{' { '}' } else { ']' });
        let rest = self.text[start + 1..].trim_start();
        if rest.starts_with(closing) {
            self.push(Ink::Dim, format!("{}{closing}", char::from(byte)));
            self.at = self.text.len() - rest.len() + 1;
            return;
        }
        if folded.contains(&start) {
            let end = end_of(self.text, start);
            self.push(Ink::Dim, format!("{}…{closing}", char::from(byte)));
            self.note_fold(start);
            self.at = end;
            return;
        }
        self.push(Ink::Dim, char::from(byte).into());
        self.note_fold(start);
        self.at += 1;
        self.end_line();
        self.depth += 1;
    }

    fn note_fold(&mut self, start: usize) {
        if let Some(line) = &mut self.line {
            line.fold.get_or_insert(start);
        }
    }

    fn string(&mut self) {
        let end = string_end(self.text.as_bytes(), self.at);
        let raw = &self.text[self.at..end];
        self.at = end;
        let is_key = self.text[end..].trim_start().starts_with(':');
        self.push(if is_key { Ink::Key } else { Ink::Text }, cut(raw));
    }

    fn push(&mut self, ink: Ink, text: String) {
        let depth = self.depth;
        let line = self.line.get_or_insert_with(|| JsonLine {
            depth,
            spans: Vec::new(),
            fold: None,
        });
        line.spans.push((ink, text));
    }

    fn end_line(&mut self) {
        self.lines.extend(self.line.take());
    }
}

/// Safe to print, and not too long.
fn cut(raw: &str) -> String {
    if raw.len() <= LONGEST {
        return printable(raw);
    }
    let end = raw.floor_char_boundary(LONGEST);
    format!(
        "{}… ({} bytes more)",
        printable(&raw[..end]),
        raw.len() - end
    )
}

/// Where the string that begins at `start` ends.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(found) = memchr::memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

/// Where the object or array that begins at `start` ends.
fn end_of(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (start, 0_usize);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = string_end(bytes, at);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 1 => return at + 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, folded: &[usize], limit: usize) -> Vec<String> {
        let pretty = pretty(text, &folded.iter().copied().collect(), limit);
        let line = |line: &JsonLine| {
            let spans: String = line.spans.iter().map(|(_, text)| text.as_str()).collect();
            "  ".repeat(line.depth) + &spans
        };
        pretty.lines.iter().map(line).collect()
    }

    #[test]
    fn lines_are_indented_and_can_be_folded() {
        let text = r#"{"a":[1,{"b":"x,}\"]"}],"c":{},"d":[ ]}"#;
        let all = [
            "{",
            "  \"a\": [",
            "    1,",
            "    {",
            "      \"b\": \"x,}\\\"]\"",
            "    }",
            "  ],",
            "  \"c\": {},",
            "  \"d\": []",
            "}",
        ];
        assert_eq!(shown(text, &[], 100), all);
        let array = text.find('[').expect("an array");
        assert_eq!(
            shown(text, &[array], 100),
            ["{", "  \"a\": […],", "  \"c\": {},", "  \"d\": []", "}"]
        );
        assert_eq!(shown(text, &[0], 100), ["{…}"]);
    }

    #[test]
    fn no_more_is_made_than_is_wanted() {
        let text = format!("[{}0]", "0,".repeat(1_000_000));
        let pretty = pretty(&text, &BTreeSet::new(), 10);
        assert_eq!((pretty.lines.len(), pretty.rest), (10, text.len() - 19));
        let long = format!("\"{}\"", "ä".repeat(LONGEST));
        let line = shown(&long, &[], 10).remove(0);
        let bytes = long.len() - line.find('…').expect("a cut");
        assert!(line.ends_with(&format!("ä… ({bytes} bytes more)")));
    }

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        assert_eq!(
            shown("\"\u{9b}31m\u{202e}\"", &[], 9),
            [r#""\u{9b}31m\u{202e}""#]
        );
    }
}
