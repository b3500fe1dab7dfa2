//! What a user writes into a host's configuration to have a server relayed.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

/// The hosts whose configuration is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Host {
    /// Codex: `config.toml`.
    Codex,
    /// Claude Code: `.mcp.json`.
    ClaudeCode,
    /// Gemini CLI: `settings.json`.
    GeminiCli,
    /// Visual Studio Code: `mcp.json`.
    Vscode,
    /// Cursor: `mcp.json`.
    Cursor,
}

impl Host {
    /// The snippet, ready to be pasted.
    pub(super) fn snippet(self, name: &str, observer: &str, args: &[String]) -> String {
        let server = |kind| Server {
            kind,
            command: observer,
            args,
        };
        match self {
            Self::Codex => toml(name, observer, args),
            Self::ClaudeCode => json("mcpServers", name, &server(Some("stdio"))),
            Self::GeminiCli | Self::Cursor => json("mcpServers", name, &server(None)),
            Self::Vscode => json("servers", name, &server(Some("stdio"))),
        }
    }

    /// The file that it goes into.
    pub(super) const fn place(self) -> &'static str {
        match self {
            Self::Codex => "~/.codex/config.toml",
            Self::ClaudeCode => ".mcp.json in the project's folder",
            Self::GeminiCli => {
                "~/.gemini/settings.json, or .gemini/settings.json in the project's folder"
            }
            Self::Vscode => {
                ".vscode/mcp.json in the workspace, or the user's (MCP: Open User Configuration)"
            }
            Self::Cursor => "~/.cursor/mcp.json, or .cursor/mcp.json in the project's folder",
        }
    }
}

/// A server in a host's JSON.
#[derive(Serialize)]
struct Server<'a> {
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
    command: &'a str,
    args: &'a [String],
}

fn json(root: &str, name: &str, server: &Server<'_>) -> String {
    let servers = BTreeMap::from([(name, server)]);
    #[expect(
        clippy::expect_used,
        reason = "text and keys that are text always serialise"
    )]
    let text = serde_json::to_string_pretty(&BTreeMap::from([(root, servers)]))
        .expect("a snippet serialises");
    text + "\n"
}

/// As TOML: quoted keys and basic strings, which hold any text.
fn toml(name: &str, observer: &str, args: &[String]) -> String {
    let mut toml = format!(
        "[mcp_servers.{}]\ncommand = {}\nargs = [",
        quoted(name),
        quoted(observer)
    );
    for (index, arg) in args.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        let _ = write!(toml, "{comma}{}", quoted(arg));
    }
    toml.push_str("]\n");
    toml
}

/// A TOML basic string. JSON's escapes are a subset of TOML's, but for DEL, which TOML wants
/// escaped and JSON does not.
fn quoted(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NAME: &str = "my.files \"x\"";

    fn args() -> Vec<String> {
        [
            "relay",
            "--name",
            NAME,
            "--",
            "npx",
            "-y",
            "a b\\c\t\u{7f}é",
            "",
        ]
        .map(String::from)
        .into()
    }

    #[test]
    fn json_snippets_hold_the_words_as_they_are() {
        for (host, root, typed) in [
            (Host::ClaudeCode, "mcpServers", true),
            (Host::GeminiCli, "mcpServers", false),
            (Host::Vscode, "servers", true),
            (Host::Cursor, "mcpServers", false),
        ] {
            let snippet: Value =
                serde_json::from_str(&host.snippet(NAME, "/opt/observer", &args())).unwrap();
            let server = &snippet[root][NAME];
            assert_eq!(server["command"], "/opt/observer", "{host:?}");
            assert_eq!(server["args"], json!(args()), "{host:?}");
            assert_eq!(server.get("type").is_some(), typed, "{host:?}");
        }
    }

    #[test]
    fn the_toml_snippet_holds_the_words_as_they_are() {
        let snippet = Host::Codex.snippet(NAME, "/opt/observer", &args());
        let config: toml::Table = snippet.parse().unwrap();
        let server = &config["mcp_servers"][NAME];
        assert_eq!(server["command"].as_str(), Some("/opt/observer"));
        let words: Vec<_> = server["args"]
            .as_array()
            .unwrap()
            .iter()
            .map(|word| word.as_str().unwrap())
            .collect();
        assert_eq!(words, args());
    }
}
