//! The contract's words for the enums of the layers below: one table each.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::header::{Backend, Payload};
use super::observed::{ActivityKind, ConnectionEvent, ProcessEvent};
use crate::capture::{GapReason, InterruptKind};
use crate::session::{NoiseKind, Side, Transport};
use crate::verdict::{Confidence, Culprit, Outcome, Severity};

/// A value that the audit log writes as one word.
pub trait Word: Copy + 'static {
    /// All words, in the contract's order.
    const WORDS: &'static [&'static str];

    /// The word.
    fn word(self) -> &'static str;

    /// The value of a word.
    fn from_word(word: &str) -> Option<Self>;
}

/// What the message of an error begins with where a word is not known. A `serde_json::Error` keeps
/// nothing of its cause but the message.
const UNKNOWN: &str = "unknown word `";

fn unknown<E: Error>(word: &str, known: &'static [&'static str]) -> E {
    // MCP has two sides: a third is no word of a later version, but damage.
    if known == Side::WORDS {
        return E::unknown_variant(word, known);
    }
    let known = known.join("`, `");
    E::custom(format_args!(
        "{UNKNOWN}{}`, expected one of `{known}`",
        word.escape_debug()
    ))
}

/// Whether all that is wrong with a line is a word that this version does not know.
pub(super) fn is_unknown_word(error: &serde_json::Error) -> bool {
    error.is_data() && error.to_string().starts_with(UNKNOWN)
}

/// The value of a word, or `otherwise` for a word that this version does not know.
fn known_or<'de, D: Deserializer<'de>, T: Word>(
    deserializer: D,
    otherwise: T,
) -> Result<T, D::Error> {
    let word = Cow::<str>::deserialize(deserializer)?;
    Ok(T::from_word(&word).unwrap_or(otherwise))
}

/// Bytes went by unseen, for whatever reason.
pub(super) fn reason<'de, D: Deserializer<'de>>(deserializer: D) -> Result<GapReason, D::Error> {
    known_or(deserializer, GapReason::Unreadable)
}

/// Of a line that is no message in an unknown way, nobody knows what it hides: as of one that was
/// too long to be kept.
pub(super) fn noise<'de, D: Deserializer<'de>>(deserializer: D) -> Result<NoiseKind, D::Error> {
    known_or(deserializer, NoiseKind::Oversized)
}

/// To a reader, a backend that it does not know is as good as a trace of another origin.
pub(super) fn backend<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Backend, D::Error> {
    known_or(deserializer, Backend::Replay)
}

/// In whatever way: it is not all there.
pub(super) fn payload<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Payload, D::Error> {
    known_or(deserializer, Payload::Redacted)
}

/// `None` for what carries a connection in a way that is not known.
pub(super) fn transport<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Transport>, D::Error> {
    let word = Option::<Cow<'_, str>>::deserialize(deserializer)?;
    Ok(word.and_then(|word| Transport::from_word(&word)))
}

macro_rules! words {
    ($($name:ident { $($variant:ident = $word:literal),+ $(,)? })+) => {$(
        impl Word for $name {
            const WORDS: &'static [&'static str] = &[$($word),+];

            fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }

            fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.word())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = Cow::<str>::deserialize(deserializer)?;
                Self::from_word(&word).ok_or_else(|| unknown(&word, Self::WORDS))
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "enum": Self::WORDS })
            }
        }
    )+};
}

words! {
    Backend { Ebpf = "ebpf", Ptrace = "ptrace", Relay = "relay", Replay = "replay" }
    Payload { Full = "full", Redacted = "redacted", None = "none" }
    ProcessEvent { Seen = "seen", Exec = "exec", Exit = "exit" }
    ConnectionEvent { Open = "open", Close = "close" }
    Transport { Pipe = "pipe", Socketpair = "socketpair", Relay = "relay" }
    Side { Client = "client", Server = "server" }
    NoiseKind {
        Text = "text",
        Blank = "blank",
        InvalidJson = "invalid-json",
        InvalidUtf8 = "invalid-utf8",
        ContentLength = "content-length",
        Oversized = "oversized",
        Unterminated = "unterminated",
    }
    GapReason {
        RingFull = "ring-full",
        Unreadable = "unreadable",
        MidStream = "mid-stream",
        Oversized = "oversized",
        UnsupportedSyscall = "unsupported-syscall",
    }
    InterruptKind {
        Sigint = "sigint",
        Sigterm = "sigterm",
        Sigkill = "sigkill",
        Sighup = "sighup",
        KeyEsc = "key-esc",
        KeyCtrlC = "key-ctrl-c",
    }
    ActivityKind { NetSend = "net-send" }
    Outcome {
        Answered = "answered",
        Failed = "failed",
        Cancelled = "cancelled",
        Abandoned = "abandoned",
        TornDown = "torn-down",
        Pending = "pending",
        Unknown = "unknown",
    }
    Severity { Error = "error", Warning = "warning", Info = "info" }
    Confidence { Confirmed = "confirmed", Probable = "probable", Possible = "possible" }
    Culprit { Host = "host", Server = "server", Observer = "observer" }
}
