//! Which methods are MCP's, and which side sends them.
//!
//! From the schemas of the revisions 2024-11-05 to 2026-07-28. `ping` and unknown methods say
//! nothing: other protocols speak newline-delimited JSON-RPC over stdio too (ACP, for one).

use crate::jsonrpc::{Frame, Kind, Message, as_str, member};

/// Who sends a message with this method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sender {
    /// The host.
    Client,
    /// The tool server.
    Server,
    /// MCP, but both sides may send it.
    Either,
}

const CLIENT: [&str; 9] = [
    "server/discover",
    "notifications/initialized",
    "notifications/roots/list_changed",
    "completion/complete",
    "logging/setLevel",
    "subscriptions/listen",
    "tools/",
    "prompts/",
    "resources/",
];

const SERVER: [&str; 9] = [
    "sampling/",
    "elicitation/",
    "roots/list",
    "notifications/message",
    "notifications/tools/",
    "notifications/prompts/",
    "notifications/resources/",
    "notifications/elicitation/",
    "notifications/subscriptions/",
];

const EITHER: [&str; 4] = [
    "notifications/cancelled",
    "notifications/progress",
    "tasks/",
    "notifications/tasks",
];

/// Who sends this message, if its method is one of MCP's.
pub(super) fn sender(frame: &Frame, message: &Message) -> Option<Sender> {
    let method = match &message.kind {
        Kind::Request { method, .. } | Kind::Notification { method } => &**method,
        Kind::Response { .. } => return None,
    };
    if method == "initialize" {
        // MCP's protocol version is a string; LSP has none, and ACP's is a number.
        let version = frame
            .params(message)
            .and_then(|params| member(params, "protocolVersion"));
        return version.and_then(as_str).map(|_| Sender::Client);
    }
    let among = |names: &[&str]| {
        names.iter().any(|name| {
            if name.ends_with('/') {
                method.starts_with(name)
            } else {
                method == *name
            }
        })
    };
    if among(&CLIENT) {
        Some(Sender::Client)
    } else if among(&SERVER) {
        Some(Sender::Server)
    } else if among(&EITHER) || method.starts_with("notifications/tasks/") {
        Some(Sender::Either)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(method: &str, params: &str) -> Option<Sender> {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        let frame = Frame::parse(line.into()).expect("a frame");
        sender(&frame, &frame.messages()[0])
    }

    #[test]
    fn methods_have_a_direction() {
        assert_eq!(of("tools/call", "{}"), Some(Sender::Client));
        assert_eq!(of("server/discover", "{}"), Some(Sender::Client));
        assert_eq!(of("roots/list", "{}"), Some(Sender::Server));
        assert_eq!(
            of("notifications/tools/list_changed", "{}"),
            Some(Sender::Server)
        );
        assert_eq!(of("notifications/cancelled", "{}"), Some(Sender::Either));
        assert_eq!(of("notifications/tasks/status", "{}"), Some(Sender::Either));
        for other in [
            "ping",
            "session/prompt",
            "textDocument/didOpen",
            "tools",
            "rootsXlist",
        ] {
            assert_eq!(of(other, "{}"), None, "{other}");
        }
    }

    #[test]
    fn initialize_is_mcp_by_its_version() {
        assert_eq!(
            of("initialize", r#"{"protocolVersion":"2025-11-25"}"#),
            Some(Sender::Client)
        );
        assert_eq!(of("initialize", r#"{"protocolVersion":1}"#), None);
        assert_eq!(of("initialize", r#"{"processId":1,"rootUri":null}"#), None);
    }
}
