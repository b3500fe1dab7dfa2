//! How times, ids, processes and counters are spelled in JSON.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::capture::{Fate, Loss, Pid, Timestamp};
use crate::jsonrpc::Id;
use crate::session::{ConnId, Party};

const NANOS_PER_MICRO: u64 = 1_000;
const MICROS_PER_SECOND: f64 = 1e6;

/// A length of time, written as seconds with microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

/// Nanoseconds as seconds, cut to microseconds. Exact both ways up to 285 years: a double holds
/// 2^53 whole numbers, and its shortest decimal form has at most six places then.
#[expect(clippy::cast_precision_loss, reason = "see above")]
fn seconds(nanos: u64) -> f64 {
    (nanos / NANOS_PER_MICRO) as f64 / MICROS_PER_SECOND
}

/// The inverse of [`seconds`]; `None` for what is no time: negative, or beyond 570 years.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be within the range"
)]
fn nanos(seconds: f64) -> Option<u64> {
    let micros = (seconds * MICROS_PER_SECOND).round();
    (0.0..1.8e16)
        .contains(&micros)
        .then(|| micros as u64 * NANOS_PER_MICRO)
}

fn deserialize_nanos<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let value = f64::deserialize(deserializer)?;
    nanos(value).ok_or_else(|| D::Error::custom(format_args!("{value} is no time in seconds")))
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(seconds(self.as_nanos()))
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_nanos(deserializer).map(Self::from_nanos)
    }
}

impl JsonSchema for Timestamp {
    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "number",
            "minimum": 0,
            "description": "Seconds since the header's `started`, with microseconds, on a clock \
                            that does not jump.",
        })
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let nanos = u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX);
        serializer.serialize_f64(seconds(nanos))
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_nanos(deserializer).map(|nanos| Self(Duration::from_nanos(nanos)))
    }
}

impl JsonSchema for Span {
    fn schema_name() -> Cow<'static, str> {
        "Span".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "number",
            "minimum": 0,
            "description": "A length of time in seconds, with microseconds.",
        })
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The text as written: a number of any length keeps its digits.
        RawValue::from_string(self.to_string())
            .map_err(S::Error::custom)?
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::from_raw(raw.get())
            .ok_or_else(|| D::Error::custom("an id is a number, a string or null"))
    }
}

impl JsonSchema for Id {
    fn schema_name() -> Cow<'static, str> {
        "Id".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["number", "string", "null"],
            "description": "A request's id, its JSON type kept: 0, \"0\" and 1 are three ids. As written: 1.0 is the id 1.",
        })
    }
}

/// A process (the kernel's tgid), as seen from the observer's own PID namespace.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Pid")]
struct PidForm(u32);

/// A connection's number in its log: 1, 2, ...
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(remote = "ConnId")]
struct ConnIdForm(u32);

/// How a process ended: the status that it returned, or the signal that ended it.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Fate", rename_all = "kebab-case")]
enum FateForm {
    /// It returned this status.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

/// A process that is one side of a connection.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Party")]
struct PartyForm {
    /// The process.
    pid: Pid,
    /// Its executable; null while unknown.
    exe: Option<String>,
}

/// The capture's counters, in bytes of stream content unless said otherwise:
/// `seen = submitted + ring_full + unreadable + filtered`.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Loss")]
struct LossForm {
    /// What the watched processes wrote to streams of the kinds that are watched.
    seen: u64,
    /// What was handed to the observer.
    submitted: u64,
    /// What was lost because the ring buffer was full.
    ring_full: u64,
    /// What could not be read, or moved by an unsupported system call.
    unreadable: u64,
    /// What was left out on purpose: streams that were found to be no MCP.
    filtered: u64,
    /// How many records without content (reads, signals, process events) were lost.
    events_lost: u64,
}

/// Gives a type of a layer below the form that is derived here for it.
macro_rules! forms {
    ($($name:ident as $form:ident: $schema:literal;)+) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $form::serialize(self, serializer)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $form::deserialize(deserializer)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                $schema.into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                $form::json_schema(generator)
            }
        }
    )+};
}

forms! {
    Pid as PidForm: "Pid";
    ConnId as ConnIdForm: "ConnectionNumber";
    Fate as FateForm: "Status";
    Party as PartyForm: "Party";
    Loss as LossForm: "Counters";
}
