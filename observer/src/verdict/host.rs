//! What is known of the hosts of this world, from a data file that is part of the program.
//!
//! It ranks evidence and never makes any: a rule that needs this file to convict is wrong.

use std::cmp::Ordering;
use std::sync::LazyLock;
use std::time::Duration;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Serialize};

use super::reading::ClientInfo;
use super::settings::seconds_or_none;

/// A host, by the name and version in its `clientInfo`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct KnownHost {
    /// `clientInfo.name`.
    pub name: String,
    /// What people call it.
    pub title: String,
    /// The first version that this holds for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The first version that it does not hold for any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Its default time limit for a tool call.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "seconds_or_none"
    )]
    #[schemars(with = "Option<f64>")]
    pub limit: Option<Duration>,
    /// Whether progress starts that limit anew; unknown counts as true.
    #[serde(default = "yes")]
    pub progress_resets: bool,
    /// How it calls several tools in one turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<Calls>,
    /// Whether conversations share a connection.
    #[serde(default)]
    pub conversations: Conversations,
    /// What it does when its time limit is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<Manners>,
    /// What it does when the user interrupts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_interrupt: Option<Manners>,
    /// How often Esc must be pressed to interrupt.
    #[serde(default = "once")]
    pub escapes: u8,
    /// Whether a call may go on in the background.
    #[serde(default)]
    pub background: bool,
    /// Whether it sends a cancellation after each answer as a habit.
    #[serde(default)]
    pub cancels_answered: bool,
}

/// How a host calls several tools in one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Calls {
    /// One after the other.
    Serial,
    /// Several at once.
    Parallel,
}

/// How many conversations share a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Conversations {
    /// One.
    #[default]
    One,
    /// More than one, and nothing on the wire tells them apart.
    Several,
}

/// What a host does on giving up a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Manners {
    /// It sends the cancellation.
    Cancels,
    /// It sends nothing.
    Silent,
}

/// How a reason in a cancellation begins, and what it means.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Reason {
    text: String,
    cause: Cause,
    /// Who gives it; for the reader of the file.
    #[serde(rename = "by")]
    _by: String,
}

/// Why a host cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Cause {
    /// Its time limit was over.
    Timeout,
    /// Its user, or the program around it, wanted so.
    Caller,
    /// One of the two.
    Either,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Book {
    host: Vec<KnownHost>,
    #[serde(default)]
    reason: Vec<Reason>,
}

/// A file's hosts as they are written.
#[derive(Debug, Deserialize)]
struct Tables {
    host: Vec<toml::Table>,
}

/// What a file may say of a host.
const KEYS: [&str; 13] = [
    "name",
    "title",
    "since",
    "before",
    "limit",
    "progress-resets",
    "calls",
    "conversations",
    "on-timeout",
    "on-interrupt",
    "escapes",
    "background",
    "cancels-answered",
];

static BOOK: LazyLock<Book> = LazyLock::new(|| {
    #[expect(
        clippy::expect_used,
        reason = "part of the program, and read by a test"
    )]
    toml::from_str(include_str!("hosts.toml")).expect("hosts.toml is well-formed")
});

const fn yes() -> bool {
    true
}

const fn once() -> u8 {
    1
}

impl KnownHost {
    /// The hosts that a file in the form of the observer's own `hosts.toml` describes.
    ///
    /// # Errors
    /// Where it is no TOML, or not of that form; the error names line and field.
    pub fn read_all(text: &str) -> Result<Vec<Self>, toml::de::Error> {
        let hosts = toml::from_str::<Book>(text)?.host;
        // A log's reader passes over fields that it does not know; in a file they are mistakes.
        let tables: Tables = toml::from_str(text)?;
        let mut keys = tables.host.iter().flat_map(toml::Table::keys);
        match keys.find(|key| !KEYS.contains(&key.as_str())) {
            Some(key) => Err(toml::de::Error::custom(format_args!(
                "unknown field `{key}`"
            ))),
            None => Ok(hosts),
        }
    }

    /// The first of `more`, then of the built-in hosts, that this is.
    pub(super) fn find(client: &ClientInfo, more: &[Self]) -> Option<Self> {
        more.iter()
            .chain(&BOOK.host)
            .find(|host| host.is(client))
            .cloned()
    }

    fn is(&self, client: &ClientInfo) -> bool {
        let newer = |bound: &str| compare(&client.version, bound) != Ordering::Less;
        self.named(&client.name)
            && self.since.as_deref().is_none_or(newer)
            && !self.before.as_deref().is_some_and(newer)
    }

    /// Some hosts add the server's own name to theirs.
    fn named(&self, name: &str) -> bool {
        name.strip_prefix(self.name.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    }
}

/// Why a cancellation was sent, by its reason, where that is known.
pub(super) fn cause(reason: &str) -> Option<Cause> {
    BOOK.reason
        .iter()
        .find(|known| reason.starts_with(&known.text))
        .map(|known| known.cause)
}

/// Compares versions by their numbers: `0.9.1` is older than `0.10`.
fn compare(one: &str, other: &str) -> Ordering {
    let numbers = |version: &str| -> Vec<u64> {
        let plain = version.trim_start_matches('v');
        plain
            .split(['.', '-', '+'])
            .map_while(|part| part.parse().ok())
            .collect()
    };
    numbers(one).cmp(&numbers(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(name: &str, version: &str) -> Option<String> {
        let client = ClientInfo {
            name: name.into(),
            version: version.into(),
        };
        KnownHost::find(&client, &[]).map(|host| host.title)
    }

    #[test]
    fn hosts_are_known_by_name_and_version() {
        assert_eq!(
            find("codex-mcp-client", "0.163.0").as_deref(),
            Some("Codex CLI before 0.165.0")
        );
        assert_eq!(
            find("codex-mcp-client", "0.165.0").as_deref(),
            Some("Codex CLI")
        );
        assert_eq!(
            find("codex-mcp-client", "1.2.0-beta.1").as_deref(),
            Some("Codex CLI")
        );
        assert_eq!(
            find("qwen-cli-mcp-client-lab", "0").as_deref(),
            Some("Qwen Code")
        );
        assert_eq!(find("opencodex", "1"), None);
    }

    #[test]
    fn versions_compare_by_their_numbers() {
        assert_eq!(compare("0.9.1", "0.10"), Ordering::Less);
        assert_eq!(compare("v1.0", "1.0"), Ordering::Equal);
        assert_eq!(compare("1.0.1", "1.0"), Ordering::Greater);
    }

    #[test]
    fn the_users_hosts_come_first_and_mistakes_are_named() {
        let own = "[[host]]\nname = \"opencode\"\ntitle = \"mine\"\nlimit = 2.5\n";
        let hosts = KnownHost::read_all(own).unwrap();
        assert_eq!(hosts[0].limit, Some(Duration::from_millis(2500)));
        let client = ClientInfo {
            name: "opencode".into(),
            version: "1".into(),
        };
        assert_eq!(KnownHost::find(&client, &hosts).unwrap().title, "mine");
        let error = KnownHost::read_all("[[host]]\nname = \"x\"\ntitle = \"x\"\nlimits = 2\n");
        assert!(error.unwrap_err().to_string().contains("limits"));
    }

    #[test]
    fn known_reasons_say_who_gave_up() {
        assert_eq!(cause("timed out after 2.0s"), Some(Cause::Timeout));
        assert_eq!(cause("AbortError: user-cancel"), Some(Cause::Caller));
        assert_eq!(cause("turn interrupted"), None);
    }
}
