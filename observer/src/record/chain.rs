//! The chain: what makes a log stand up later.
//!
//! Every so many lines, and at its end, a log says what it held so far: a [`Seal`], the SHA-256 of
//! every byte of the file before it. [`Chain`] writes the lines of a log and their seals,
//! [`Seals`](super::Seals) looks whether they still hold. Must not touch a file.

use std::fmt;
use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use super::{Header, Part, Record};
use crate::capture::Timestamp;

/// A seal comes after so many lines, at the latest.
pub const SEALED_EVERY: u64 = 64;

/// What stands between a sealing record's own fields and its seal.
const OPENING: &[u8] = b",\"chain\":";

/// A SHA-256, written as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest that `text` spells; `None` where it spells none.
    pub fn parse(text: &str) -> Option<Self> {
        let mut digest = [0; 32];
        if text.len() != 2 * digest.len() {
            return None;
        }
        for (byte, pair) in digest.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let pair = str::from_utf8(pair).ok()?;
            let lower = !pair.starts_with('+') && !pair.contains(char::is_uppercase);
            *byte = u8::from_str_radix(pair, 16).ok().filter(|_| lower)?;
        }
        Some(Self(digest))
    }
}

impl From<Sha256> for Digest {
    /// Of what the hasher was given.
    fn from(hasher: Sha256) -> Self {
        Self(hasher.finalize().into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("a SHA-256 has 64 digits"))
    }
}

impl JsonSchema for Digest {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Sha256".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[0-9a-f]{64}$" })
    }
}

/// What a file held so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Seal {
    /// How many lines come before the one with this seal.
    pub lines: u64,
    /// How many bytes come before `,"chain":` of this line.
    pub bytes: u64,
    /// The SHA-256 of these bytes.
    pub sha256: Digest,
}

/// Says what the file held so far. A replay passes it over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChainRecord {
    /// The time of the record before it.
    pub t: Timestamp,
    /// The name of the file in which the log goes on; the last line of a part has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The seal. It is always there, and the last field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<Seal>,
}

/// Writes a log's lines, and seals them.
#[derive(Clone, Debug)]
pub struct Chain {
    held: Held,
    /// Lines since the last seal.
    open: u64,
    /// The time of the latest record.
    latest: Timestamp,
    part: u32,
}

impl Default for Chain {
    fn default() -> Self {
        Self::new()
    }
}

impl Chain {
    /// A log that has no line yet.
    pub fn new() -> Self {
        Self {
            held: Held::default(),
            open: 0,
            latest: Timestamp::ZERO,
            part: 1,
        }
    }

    /// Appends the record's line to `out`, and a seal where one is due. Returns the length of the
    /// record's own line.
    pub fn write_line(&mut self, record: &Record, out: &mut Vec<u8>) -> usize {
        self.latest = record.t();
        let start = out.len();
        record.write_line(out);
        if let Record::Summary(_) = record {
            self.seal(start, out);
            return out.len() - start;
        }
        let end = out.len();
        self.held.add_line(&out[start..]);
        self.open += 1;
        if self.open >= SEALED_EVERY {
            self.write_seal(out);
        }
        end - start
    }

    /// Whether there are lines that no seal covers.
    pub const fn is_open(&self) -> bool {
        self.open > 0
    }

    /// Appends a line with a seal to `out`.
    pub fn write_seal(&mut self, out: &mut Vec<u8>) {
        self.write_end(None, out);
    }

    /// Ends this file with a seal that says where the log goes on, and gives the header to begin
    /// that file with. The lines to come belong there.
    pub fn rotate(&mut self, header: &Header, next: &str, out: &mut Vec<u8>) -> Header {
        let sha256 = self.write_end(Some(next.to_owned()), out);
        let (part, latest) = (self.part + 1, self.latest);
        *self = Self {
            part,
            latest,
            ..Self::new()
        };
        let part = Part {
            number: part,
            previous: sha256,
        };
        Header {
            part: Some(part),
            ..header.clone()
        }
    }

    fn write_end(&mut self, next: Option<String>, out: &mut Vec<u8>) -> Digest {
        let start = out.len();
        let record = ChainRecord {
            t: self.latest,
            next,
            chain: None,
        };
        Record::Chain(record).write_line(out);
        self.seal(start, out)
    }

    /// Puts the seal into the line at the end of `out`, which begins at `start`.
    fn seal(&mut self, start: usize, out: &mut Vec<u8>) -> Digest {
        // Opens the object again: `}\n`.
        out.truncate(out.len() - 2);
        let opened = out.len();
        self.held.add(&out[start..]);
        let seal = self.held.seal();
        out.extend_from_slice(OPENING);
        #[expect(clippy::expect_used, reason = "a Vec takes every write")]
        serde_json::to_writer(&mut *out, &seal).expect("a seal serialises");
        out.extend_from_slice(b"}\n");
        self.held.add_line(&out[opened..]);
        self.open = 0;
        seal.sha256
    }
}

/// What a file held so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    hasher: Sha256,
    pub(super) lines: u64,
    pub(super) bytes: u64,
}

impl Held {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    pub(super) fn add_line(&mut self, line: &[u8]) {
        self.add(line);
        self.lines += 1;
    }

    pub(super) fn seal(&self) -> Seal {
        Seal {
            lines: self.lines,
            bytes: self.bytes,
            sha256: self.hasher.clone().into(),
        }
    }
}

/// Where the seal of a line (without its newline) stands, its opening included; `None` for a line
/// of another type than those that are sealed.
pub(super) fn seal_in(line: &[u8]) -> Option<Range<usize>> {
    let sealing = [b"{\"type\":\"chain\"".as_slice(), b"{\"type\":\"summary\""];
    if !sealing.iter().any(|opening| line.starts_with(opening)) {
        return None;
    }
    let start = memchr::memmem::rfind(line, OPENING)?;
    Some(start..line.len())
}

/// The seal that stands at such a place: `,"chain":{...}}`.
pub(super) fn read_seal(text: &[u8]) -> Option<Seal> {
    let object = text.strip_prefix(OPENING)?.strip_suffix(b"}")?;
    serde_json::from_slice(object).ok()
}
