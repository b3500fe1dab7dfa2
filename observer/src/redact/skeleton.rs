//! What is left of a message without its payload: what the verdicts read, and marks where they
//! compare.

use std::borrow::Cow;

use super::Redactor;
use super::json::is_read;
use crate::jsonrpc::{elements, members};
use crate::verdict::READ;

impl Redactor {
    /// What is left of the value at `path`; `None` where that is nothing. Where it is `unread`,
    /// no string is read in it.
    pub(super) fn skeleton<'a>(
        &self,
        raw: &'a str,
        path: &mut Vec<Cow<'a, str>>,
        unread: bool,
    ) -> Option<String> {
        if self.is_mark(raw) {
            return Some(raw.into());
        }
        // What is asked for is compared; of all else only what is read counts.
        let compared = path.len() == 1 || path.len() == 2 && path[0] == "params";
        let marked = || compared.then(|| self.mark_value(raw));
        match raw.as_bytes().first()? {
            b'{' if leads_to_read(path) => {
                let mut left = Vec::new();
                for (key, value) in members(raw) {
                    let name = serde_json::Value::from(key.as_ref()).to_string();
                    path.push(key);
                    let value = self.skeleton(value, path, unread);
                    path.pop();
                    left.extend(value.map(|value| format!("{name}:{value}")));
                }
                Some(format!("{{{}}}", left.join(",")))
            }
            b'[' if is_read(path) => {
                let strings = elements(raw).filter(|element| element.starts_with('"'));
                let cleaned = strings
                    .map(|text| self.clean_string(text, path).unwrap_or_else(|| text.into()));
                Some(format!("[{}]", cleaned.collect::<Vec<_>>().join(",")))
            }
            b'{' | b'[' => marked(),
            b'"' if !unread && is_read(path) => {
                Some(self.clean_string(raw, path).unwrap_or_else(|| raw.into()))
            }
            b'"' => marked(),
            _ => Some(raw.into()),
        }
    }
}

/// Whether something is read below this place; of an error that is its code.
fn leads_to_read(path: &[Cow<'_, str>]) -> bool {
    let begins = |read: &&[&str]| read.len() > path.len() && path.iter().eq(&read[..path.len()]);
    path == ["error"] || READ.iter().any(begins)
}
