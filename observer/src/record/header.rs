//! The first line of a log: what observed, and how.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::word;
use crate::capture::{Pid, Timestamp};
use crate::verdict::Settings;

/// The first line of a log. A reader needs `schema`; everything else may be missing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Header {
    /// Zero: all times count from `started`.
    pub t: Timestamp,
    /// The format's name and major version: `observer/1`.
    pub schema: String,
    /// The version of the observer that wrote the log.
    #[serde(default)]
    pub observer: String,
    /// When the capture began: RFC 3339, UTC, nanoseconds.
    #[serde(default)]
    pub started: String,
    /// What saw the bytes.
    #[serde(
        default = "Backend::default_of_a_log",
        deserialize_with = "word::backend"
    )]
    pub backend: Backend,
    /// Where the backend hooks in: the tracepoints or system calls that it watches.
    #[serde(default)]
    pub hooks: Vec<String>,
    /// Operating system and architecture: `linux-x86_64`.
    #[serde(default)]
    pub platform: Option<String>,
    /// The kernel's release.
    #[serde(default)]
    pub kernel: Option<String>,
    /// How much of the messages' content is kept.
    #[serde(default, deserialize_with = "word::payload")]
    pub payload: Payload,
    /// What is observed.
    #[serde(default, deserialize_with = "known_scope")]
    pub scope: Option<Scope>,
    /// All that changes a verdict.
    #[serde(default)]
    pub settings: Option<Settings>,
}

/// `None` for a scope of an unknown kind.
fn known_scope<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Scope>, D::Error> {
    let scope = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(scope).ok())
}

/// What saw the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The kernel probe.
    Ebpf,
    /// The ptrace backend.
    Ptrace,
    /// `observer relay`.
    Relay,
    /// Another log, or a trace of another origin.
    Replay,
}

impl Backend {
    /// A log that names no backend was made by something else: a trace.
    const fn default_of_a_log() -> Self {
        Self::Replay
    }
}

/// How much of the messages' content is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Payload {
    /// All of it.
    #[default]
    Full,
    /// Strings that no verdict needs are replaced by their hash and size.
    Redacted,
    /// Strings that no verdict needs are dropped.
    None,
}

/// What is observed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Scope {
    /// A command and all that it starts.
    Run {
        /// The command and its arguments.
        command: Vec<String>,
    },
    /// Processes that ran already, and all that they start.
    Attach {
        /// The processes.
        pids: Vec<Pid>,
    },
    /// The whole machine.
    Watch,
}
