//! The values of a message that are hidden, found where they lie; all else is copied.

use std::borrow::Cow;
use std::ops::Range;

use super::{Redactor, name};
use crate::jsonrpc::{Cursor, as_str, elements, members};
use crate::record::Payload;
use crate::verdict::{READ, READ_RESULT};

/// Values that lie deeper are hidden as a whole.
const DEPTH: usize = 64;

/// The text of a message, or of a batch, without what is hidden; `None` where nothing is.
pub(super) fn redact(redactor: &Redactor, text: &str) -> Option<String> {
    let mut walk = Walk {
        redactor,
        whole: text,
        edits: Vec::new(),
        path: Vec::new(),
        depth: 0,
        unread: false,
    };
    let raw = text.trim_ascii();
    match raw.starts_with('[') {
        true => elements(raw).for_each(|message| walk.message(message)),
        false => walk.message(raw),
    }
    walk.finish()
}

/// A way through a value, and what is to be written in the place of parts of it.
struct Walk<'a> {
    redactor: &'a Redactor,
    whole: &'a str,
    edits: Vec<(Range<usize>, String)>,
    path: Vec<Cow<'a, str>>,
    /// How many values the one at hand lies in.
    depth: usize,
    /// What is read elsewhere is not read here.
    unread: bool,
}

impl<'a> Walk<'a> {
    /// One element of a batch, or all there is.
    fn message(&mut self, raw: &'a str) {
        let mut cursor = Cursor::new(raw);
        if !raw.starts_with('{') {
            return self.value(&mut cursor);
        }
        let mut inside = cursor.enter_object();
        while let Some(key) = cursor.member(&mut inside) {
            // The envelope.
            if matches!(key.as_ref(), "jsonrpc" | "id" | "method") {
                cursor.skip();
                continue;
            }
            let result = key == "result";
            self.path.push(key);
            self.unread = result && is_longer(&cursor, READ_RESULT);
            match self.redactor.payload() {
                Payload::None => cursor.skip().into_iter().for_each(|raw| self.skeleton(raw)),
                Payload::Redacted if result => {
                    cursor.skip().into_iter().for_each(|raw| self.result(raw));
                }
                Payload::Full | Payload::Redacted => self.value(&mut cursor),
            }
            self.unread = false;
            self.path.pop();
        }
    }

    /// A result that is small enough to be read stays so.
    fn result(&mut self, raw: &'a str) {
        let before = self.edits.len();
        self.value(&mut Cursor::new(raw));
        let grown: usize = self.edits[before..]
            .iter()
            .map(|(_, text)| text.len())
            .sum();
        let gone: usize = self.edits[before..]
            .iter()
            .map(|(place, _)| place.len())
            .sum();
        if !self.unread && raw.len() + grown > READ_RESULT + gone {
            self.edits.truncate(before);
            self.skeleton(raw);
        }
    }

    fn skeleton(&mut self, raw: &'a str) {
        let text = self.redactor.skeleton(raw, &mut self.path, self.unread);
        self.edit(raw, text.unwrap_or_else(|| "null".into()));
    }

    fn value(&mut self, cursor: &mut Cursor<'a>) {
        let rest = cursor.rest();
        if self.redactor.is_mark(rest) {
            cursor.skip();
            return;
        }
        self.depth += 1;
        match rest.as_bytes().first() {
            Some(b'{' | b'[') if self.depth > DEPTH => {
                cursor.skip().into_iter().for_each(|raw| self.mark(raw));
            }
            Some(b'{') => {
                let mut inside = cursor.enter_object();
                while let Some(key) = cursor.member(&mut inside) {
                    self.path.push(key);
                    self.member(cursor);
                    self.path.pop();
                }
            }
            Some(b'[') => {
                let mut inside = cursor.enter_array();
                while cursor.element(&mut inside) {
                    self.value(cursor);
                }
            }
            Some(b'"') => cursor.skip().into_iter().for_each(|raw| self.string(raw)),
            _ => {
                cursor.skip();
            }
        }
        self.depth -= 1;
    }

    fn member(&mut self, cursor: &mut Cursor<'a>) {
        let name = self.path.last().map_or("", |name| name);
        let read = || !self.unread && is_read(&self.path);
        if !self.redactor.hides_some(name) || read() {
            return self.value(cursor);
        }
        let Some(raw) = cursor.skip() else { return };
        match self.redactor.hides(name, raw) {
            true if !self.redactor.is_mark(raw) => self.mark(raw),
            true => {}
            false => self.value(&mut Cursor::new(raw)),
        }
    }

    fn string(&mut self, raw: &'a str) {
        let read = !self.unread && is_read(&self.path);
        if self.redactor.payload() == Payload::Redacted && !read {
            return self.mark(raw);
        }
        if let Some(cleaned) = self.redactor.clean_string(raw, &self.path) {
            self.edit(raw, cleaned);
        }
    }

    fn mark(&mut self, raw: &'a str) {
        self.edit(raw, self.redactor.mark_value(raw));
    }

    fn edit(&mut self, raw: &'a str, text: String) {
        let start = raw.as_ptr().addr() - self.whole.as_ptr().addr();
        self.edits.push((start..start + raw.len(), text));
    }

    fn finish(self) -> Option<String> {
        if self.edits.is_empty() {
            return None;
        }
        let (mut out, mut done) = (String::with_capacity(self.whole.len()), 0);
        for (place, text) in self.edits {
            out.push_str(&self.whole[done..place.start]);
            out.push_str(&text);
            done = place.end;
        }
        out.push_str(&self.whole[done..]);
        Some(out)
    }
}

impl Redactor {
    /// Whether values of this name are hidden, but for those that can be none.
    pub(super) fn hides_some(&self, name: &str) -> bool {
        self.is_named(name) || !self.plan.show_secrets && name::is_secret(name)
    }

    /// Whether a member's value is hidden because of its name, of which some are.
    fn hides(&self, name: &str, raw: &str) -> bool {
        let worth = !matches!(raw, "null" | "true" | "false" | "\"\"");
        worth && (self.is_named(name) || !is_schema(raw))
    }

    /// Whether the user wants this name's values hidden.
    pub(super) fn is_named(&self, name: &str) -> bool {
        !self.plan.names.is_empty() && self.plan.names.contains(&name::plain(name))
    }

    /// A JSON string without what looks like a secret; `None` where nothing does.
    pub(super) fn clean_string(&self, raw: &str, path: &[Cow<'_, str>]) -> Option<String> {
        // It must be equal to an id, and ids are in the envelope.
        if path.last().is_some_and(|name| name == "requestId") {
            return None;
        }
        let cleaned = self.clean(&as_str(raw)?)?;
        Some(serde_json::Value::from(cleaned).to_string())
    }
}

/// Whether the verdicts read the strings at this place.
pub(super) fn is_read(path: &[Cow<'_, str>]) -> bool {
    // From the end: that is where they differ.
    READ.iter()
        .any(|read| read.len() == path.len() && path.iter().rev().eq(read.iter().rev()))
}

/// Whether the next value has more bytes than `limit`.
fn is_longer(cursor: &Cursor<'_>, limit: usize) -> bool {
    let mut ahead = cursor.clone();
    // Most are shorter with all that comes after them.
    ahead.rest().len() > limit && ahead.skip().is_some_and(|raw| raw.len() > limit)
}

/// The description of an argument called `password` is none.
fn is_schema(raw: &str) -> bool {
    const WORDS: [&str; 7] = [
        "$ref",
        "anyOf",
        "oneOf",
        "allOf",
        "enum",
        "const",
        "properties",
    ];
    raw.starts_with('{')
        && members(raw).any(|(key, value)| {
            WORDS.contains(&key.as_ref())
                || key == "type"
                    && as_str(value).is_some_and(|kind| {
                        matches!(
                            &*kind,
                            "string" | "object" | "array" | "number" | "integer" | "boolean"
                        )
                    })
        })
}
