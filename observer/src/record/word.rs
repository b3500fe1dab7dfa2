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
                Self::from_word(&word).ok_or_else(|| D::Error::unknown_variant(&word, Self::WORDS))
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
