//! What the judge reads in a message: the few fields that a verdict depends on.
//!
//! The redaction of a log keeps exactly these; see [`READ`].

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use memchr::memmem;

use super::Revision;
use crate::jsonrpc::{Id, as_i64, as_str, elements, member, members, path};

/// The string fields under `params` and `result` that the verdicts read, as paths of member
/// names, and what says which host and server it was; a redacted log keeps them. Arguments are compared with each other only, so equal hashes
/// serve as well as the texts.
pub const READ: [&[&str]; 32] = [
    &["params", "name"],
    &["params", "uri"],
    &["params", "taskId"],
    &["params", "status"],
    &["params", "requestId"],
    &["params", "reason"],
    &["params", "progressToken"],
    &["params", "protocolVersion"],
    &["params", "clientInfo", "name"],
    &["params", "clientInfo", "version"],
    &["params", "notifications", "taskIds"],
    &["params", "taskIds"],
    &["params", "_meta", "progressToken"],
    &["params", "_meta", "callId"],
    &["params", "_meta", "claudecode/toolUseId"],
    &["params", "_meta", "x-codex-turn-metadata", "thread_id"],
    &["params", "_meta", "x-codex-turn-metadata", "turn_id"],
    &["params", "_meta", "io.modelcontextprotocol/protocolVersion"],
    &[
        "params",
        "_meta",
        "io.modelcontextprotocol/clientInfo",
        "name",
    ],
    &[
        "params",
        "_meta",
        "io.modelcontextprotocol/clientInfo",
        "version",
    ],
    &[
        "params",
        "_meta",
        "io.modelcontextprotocol/related-task",
        "taskId",
    ],
    &["result", "protocolVersion"],
    &["result", "resultType"],
    &["result", "taskId"],
    &["result", "status"],
    &["result", "task", "taskId"],
    &["result", "task", "status"],
    &["result", "serverInfo", "name"],
    &["result", "serverInfo", "version"],
    &[
        "result",
        "_meta",
        "io.modelcontextprotocol/related-task",
        "taskId",
    ],
    &[
        "result",
        "_meta",
        "io.modelcontextprotocol/serverInfo",
        "name",
    ],
    &[
        "result",
        "_meta",
        "io.modelcontextprotocol/serverInfo",
        "version",
    ],
];

/// Nothing is read in a result of more bytes.
pub const READ_RESULT: usize = 64 << 10;

const PREFIX: &str = "io.modelcontextprotocol/";
/// Longer names are cut: they are for people to read.
const NAME: usize = 256;
/// Larger arguments are compared by their text; the retry of one program is written alike.
const CANONICAL: usize = 64 << 10;
/// Deeper values are compared by their text.
const DEPTH: u8 = 24;

/// A host's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClientInfo {
    pub(super) name: Box<str>,
    pub(super) version: Box<str>,
}

/// Which part of which conversation a call belongs to, where the host says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) thread: Option<Box<str>>,
    pub(super) turn: Option<Box<str>>,
    pub(super) call: Option<Box<str>>,
}

/// What a request's params say.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    pub(super) name: Option<Box<str>>,
    /// From `_meta`, or the one that `initialize` asks for.
    pub(super) revision: Option<Revision>,
    pub(super) client: Option<ClientInfo>,
    pub(super) token: Option<Id>,
    pub(super) turn: Turn,
    /// It asks for a task (2025-11-25).
    pub(super) as_task: bool,
    /// It goes on with a request that the server answered with `input_required` (2026-07-28).
    pub(super) continues: bool,
    /// The task that it is about.
    pub(super) task: Option<Box<str>>,
    /// The tasks that it wants to hear of (`subscriptions/listen`).
    pub(super) listens: Vec<Box<str>>,
    /// What it asks for, without `_meta`: equal for equal calls.
    pub(super) fingerprint: Option<u64>,
}

impl Asked {
    pub(super) fn read(method: &str, params: Option<&str>) -> Self {
        let mut asked = Self::default();
        let Some(params) = params else {
            asked.fingerprint = repeatable(method).then(|| fingerprint(method, "{}"));
            return asked;
        };
        for (key, value) in members(params) {
            match key.as_ref() {
                "name" | "uri" => asked.name = text(value),
                "taskId" => {
                    asked.task = text(value);
                    asked.name = text(value);
                }
                "task" => asked.as_task = value.starts_with('{'),
                "inputResponses" | "requestState" => asked.continues = true,
                "protocolVersion" => asked.revision = revision(value),
                "clientInfo" => asked.client = client(value),
                "taskIds" => asked.listens = task_ids(value),
                "notifications" => {
                    asked.listens = member(value, "taskIds").map(task_ids).unwrap_or_default();
                }
                "_meta" => asked.read_meta(value),
                _ => {}
            }
        }
        if repeatable(method) && !asked.continues {
            asked.fingerprint = Some(fingerprint(method, params));
        }
        asked
    }

    fn read_meta(&mut self, meta: &str) {
        for (key, value) in members(meta) {
            match key.as_ref() {
                "progressToken" => self.token = Id::from_raw(value).filter(|id| *id != Id::Null),
                "callId" | "claudecode/toolUseId" => self.turn.call = text(value),
                "x-codex-turn-metadata" => {
                    self.turn.thread = member(value, "thread_id").and_then(text);
                    self.turn.turn = member(value, "turn_id").and_then(text);
                }
                key => match key.strip_prefix(PREFIX) {
                    Some("protocolVersion") => self.revision = revision(value),
                    Some("clientInfo") => self.client = client(value),
                    Some("related-task") => {
                        self.task = member(value, "taskId").and_then(text).or(self.task.take());
                    }
                    _ => {}
                },
            }
        }
    }
}

/// What an answer says of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TaskNote {
    pub(super) id: Box<str>,
    /// The answer creates it, rather than tells of it.
    pub(super) created: bool,
    pub(super) status: Option<Box<str>>,
    /// For how long the receiver keeps it.
    pub(super) ttl: Option<Duration>,
    /// How often it wants to be asked.
    pub(super) poll: Option<Duration>,
}

impl TaskNote {
    /// The task that a result creates, or that it tells of; `None` in any other result. Until
    /// 2025-11-25 a result creates a task only where the request asked for one.
    pub(super) fn read(result: &str, as_task: bool) -> Option<Self> {
        // Most results hold none, and some are megabytes.
        memmem::find(result.as_bytes(), b"taskId")?;
        let task = member(result, "task").filter(|task| task.starts_with('{'));
        let by_server = member(result, "resultType").and_then(as_str).as_deref() == Some("task");
        let mut note = Self::fields(task.unwrap_or(result))?;
        note.created = task.is_some() && as_task || by_server;
        Some(note)
    }

    /// The task that a notification tells of.
    pub(super) fn fields(task: &str) -> Option<Self> {
        let millis = |names: [&str; 2]| {
            let value = names.iter().find_map(|name| as_i64(member(task, name)?))?;
            u64::try_from(value).ok().map(Duration::from_millis)
        };
        Some(Self {
            id: text(member(task, "taskId")?)?,
            created: false,
            status: member(task, "status").and_then(text),
            ttl: millis(["ttl", "ttlMs"]),
            poll: millis(["pollInterval", "pollIntervalMs"]),
        })
    }

    /// Whether the task is over.
    pub(super) fn is_terminal(&self) -> bool {
        matches!(
            self.status.as_deref(),
            Some("completed" | "failed" | "cancelled")
        )
    }
}

/// The revision that the answer to `initialize` settles.
pub(super) fn negotiated(result: &str) -> Option<Revision> {
    revision(member(result, "protocolVersion")?)
}

/// The name that a server gives itself in the answer to `initialize` or `server/discover`.
pub(super) fn server_name(result: &str) -> Option<Box<str>> {
    let info = path(result, &["serverInfo", "name"]).or_else(|| {
        path(
            result,
            &["_meta", "io.modelcontextprotocol/serverInfo", "name"],
        )
    })?;
    text(info)
}

/// A cancellation's params: the id as far as it is usable, and the reason.
pub(super) fn cancellation(params: Option<&str>) -> (Option<Id>, Option<String>) {
    let Some(params) = params else {
        return (None, None);
    };
    let id = member(params, "requestId")
        .and_then(Id::from_raw)
        .filter(|id| *id != Id::Null);
    let reason = member(params, "reason").and_then(text).map(String::from);
    (id, reason)
}

/// The token of a progress notification.
pub(super) fn progress_token(params: Option<&str>) -> Option<Id> {
    Id::from_raw(member(params?, "progressToken")?).filter(|id| *id != Id::Null)
}

/// Requests that a model's turn waits for, so that sending one again means something.
pub(super) fn repeatable(method: &str) -> bool {
    matches!(method, "tools/call" | "prompts/get" | "resources/read")
}

fn text(raw: &str) -> Option<Box<str>> {
    let text = as_str(raw)?;
    let cut = text.floor_char_boundary(NAME);
    Some(text[..cut].into())
}

fn revision(raw: &str) -> Option<Revision> {
    Revision::parse(&as_str(raw)?)
}

fn client(raw: &str) -> Option<ClientInfo> {
    Some(ClientInfo {
        name: text(member(raw, "name")?)?,
        version: member(raw, "version").and_then(text).unwrap_or_default(),
    })
}

fn task_ids(raw: &str) -> Vec<Box<str>> {
    elements(raw).filter_map(text).take(1024).collect()
}

/// Equal for requests that ask for the same: method, and all params but `_meta`, whatever the
/// order of members. That `arguments` are left out or empty makes no difference.
fn fingerprint(method: &str, params: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    method.hash(&mut hasher);
    let mut sum = 0_u64;
    for (key, value) in members(params) {
        if key == "_meta" || (key == "arguments" && members(value).next().is_none()) {
            continue;
        }
        sum = sum.wrapping_add(of_member(&key, value, DEPTH));
    }
    sum.hash(&mut hasher);
    hasher.finish()
}

fn of_member(key: &str, value: &str, depth: u8) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    canonical(value, depth, &mut hasher);
    hasher.finish()
}

/// Hashes a value so that order of members, blanks and escapes do not count.
fn canonical(raw: &str, depth: u8, hasher: &mut DefaultHasher) {
    let raw = raw.trim_ascii();
    let first = raw.as_bytes().first().copied();
    first.hash(hasher);
    match first {
        Some(b'{') if depth > 0 && raw.len() <= CANONICAL => {
            // A sum does not depend on the order.
            let sum = members(raw)
                .map(|(key, value)| of_member(&key, value, depth - 1))
                .fold(0, u64::wrapping_add);
            sum.hash(hasher);
        }
        Some(b'[') if depth > 0 && raw.len() <= CANONICAL => {
            for element in elements(raw) {
                canonical(element, depth - 1, hasher);
            }
            b']'.hash(hasher);
        }
        Some(b'"') => as_str(raw).hash(hasher),
        _ => raw.hash(hasher),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(params: &str) -> u64 {
        Asked::read("tools/call", Some(params))
            .fingerprint
            .expect("a call has one")
    }

    #[test]
    fn equal_calls_have_equal_fingerprints_however_they_are_written() {
        let one = print(r#"{"name":"t","arguments":{"a":1,"b":[{"c":"x"},2]},"_meta":{"n":1}}"#);
        let other =
            print(r#"{"_meta":{"n":2}, "arguments":{"b":[{"c":"\u0078"}, 2],"a":1},"name":"t"}"#);
        assert_eq!(one, other);
        assert_eq!(
            print(r#"{"name":"t"}"#),
            print(r#"{"name":"t","arguments":{}}"#)
        );
    }

    #[test]
    fn different_calls_have_different_fingerprints() {
        let all = [
            r#"{"name":"t","arguments":{"a":1}}"#,
            r#"{"name":"t","arguments":{"a":2}}"#,
            r#"{"name":"t","arguments":{"a":"1"}}"#,
            r#"{"name":"t","arguments":{"a":[1]}}"#,
            r#"{"name":"t","arguments":{"b":1}}"#,
            r#"{"name":"u","arguments":{"a":1}}"#,
            r#"{"name":"t","arguments":{"a":[[1],2]}}"#,
            r#"{"name":"t","arguments":{"a":[[1,2]]}}"#,
        ];
        let mut prints: Vec<_> = all.map(print).to_vec();
        prints.sort_unstable();
        prints.dedup();
        assert_eq!(prints.len(), all.len());
    }

    #[test]
    fn a_call_that_goes_on_with_an_earlier_one_is_never_its_retry() {
        for params in [
            r#"{"name":"t","inputResponses":{}}"#,
            r#"{"name":"t","requestState":"s"}"#,
        ] {
            assert_eq!(Asked::read("tools/call", Some(params)).fingerprint, None);
        }
        assert_eq!(Asked::read("ping", None).fingerprint, None);
    }

    #[test]
    fn what_hosts_put_into_meta_is_read() {
        let asked = Asked::read(
            "tools/call",
            Some(
                r#"{"name":"t","_meta":{"progressToken":0,"callId":"c","x-codex-turn-metadata":
                {"thread_id":"th","turn_id":"tu"},"io.modelcontextprotocol/protocolVersion":
                "2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"h","version":"1"}}}"#,
            ),
        );
        assert_eq!(asked.token, Some(Id::Number("0".into())));
        assert_eq!(asked.revision, Some(Revision::R20260728));
        assert_eq!(asked.turn.thread.as_deref(), Some("th"));
        assert_eq!(asked.turn.turn.as_deref(), Some("tu"));
        assert_eq!(asked.client.map(|client| client.name), Some("h".into()));
    }

    #[test]
    fn tasks_are_read_in_both_revisions() {
        let old = TaskNote::read(
            r#"{"task":{"taskId":"a","status":"working","ttl":60000}}"#,
            true,
        );
        let new = TaskNote::read(
            r#"{"resultType":"task","taskId":"b","status":"completed","pollIntervalMs":500}"#,
            false,
        );
        let (old, new) = (old.unwrap(), new.unwrap());
        assert_eq!((&*old.id, old.ttl), ("a", Some(Duration::from_secs(60))));
        assert_eq!(
            (&*new.id, new.poll),
            ("b", Some(Duration::from_millis(500)))
        );
        assert!(old.created && new.created);
        assert!(new.is_terminal() && !old.is_terminal());
        assert_eq!(TaskNote::read(r#"{"content":[]}"#, true), None);
    }

    #[test]
    fn unusable_cancellations_have_no_id() {
        for params in [
            None,
            Some("{}"),
            Some(r#"{"requestId":null}"#),
            Some(r#"{"requestId":{}}"#),
        ] {
            assert_eq!(cancellation(params).0, None);
        }
        let (id, reason) = cancellation(Some(r#"{"requestId":0,"reason":"r"}"#));
        assert_eq!(
            (id, reason.as_deref()),
            (Some(Id::Number("0".into())), Some("r"))
        );
    }
}
