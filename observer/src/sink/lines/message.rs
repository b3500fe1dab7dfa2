//! Messages, and how the calls among them end.

use std::fmt::Write;

use anstyle::Style;

use super::Detail;
use super::view::View;
use crate::capture::Timestamp;
use crate::jsonrpc::{Frame, Id, Kind, Message, Outcome as Answer, as_str, path};
use crate::record::{Word, escape};
use crate::session::{ConnId, Noise, Side};
use crate::verdict::{CallRecord, Outcome};
use crate::wording::{observed, size, span};

/// Names of tools, methods, versions are cut to this many characters.
const NAME: usize = 80;

/// A message's or a noisy line's text is cut to this many characters.
const TEXT: usize = 160;

/// So many noisy lines of a connection are shown, unless in detail.
const NOISE: u32 = 20;

/// Requests that users wait for. Others are shown only when they end badly, or in detail.
const WORK: [&str; 5] = [
    "tools/call",
    "prompts/get",
    "resources/read",
    "sampling/createMessage",
    "elicitation/create",
];

const MODERN_VERSION: [&str; 2] = ["_meta", "io.modelcontextprotocol/protocolVersion"];
const MODERN_CLIENT: [&str; 2] = ["_meta", "io.modelcontextprotocol/clientInfo"];

/// When, where and by whom a message was sent.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) at: Timestamp,
    pub(super) conn: ConnId,
    pub(super) from: Side,
}

impl View {
    pub(super) fn message(
        &mut self,
        place: Place,
        bytes: u64,
        frame: &Frame,
        message: &Message,
        out: &mut String,
    ) {
        if self.detail == Detail::Quiet {
            return;
        }
        let arrow = match place.from {
            Side::Client => "->",
            Side::Server => "<-",
        };
        let params = frame.params(message);
        let (word, detail, what) = match &message.kind {
            Kind::Request { id, method } => {
                let work = WORK.contains(&&**method);
                let detail = if work {
                    Detail::Normal
                } else {
                    Detail::Verbose
                };
                (
                    "request",
                    detail,
                    title(method, target(params).as_deref(), Some(id)),
                )
            }
            Kind::Notification { method } => {
                ("notification", Detail::Verbose, title(method, None, None))
            }
            Kind::Response { id, outcome } => {
                let id = id
                    .as_ref()
                    .map_or("?".into(), |id| observed(&id.to_string(), NAME));
                let what = match outcome {
                    Answer::Result => format!("#{id}"),
                    Answer::Error { code } => format!("#{id} error {code}"),
                };
                ("response", Detail::Verbose, what)
            }
        };
        if self.shows(detail) {
            self.row(out, place.at, place.conn, Style::new(), word);
            let _ = write!(out, "{arrow} {what}, {}", size(bytes));
            if self.shows(Detail::Verbose) {
                let dim = self.palette.dim;
                let _ = write!(out, "  {dim}{}{dim:#}", observed(frame.text().trim(), TEXT));
            }
            out.push('\n');
        }
        self.revision(place, frame, message, out);
    }

    /// Shows the protocol's revision once it is known.
    fn revision(&mut self, place: Place, frame: &Frame, message: &Message, out: &mut String) {
        let connection = self.connections.entry(place.conn).or_default();
        if connection.ready {
            return;
        }
        let text = match (&message.kind, place.from) {
            (Kind::Request { id, method }, Side::Client) => {
                let params = frame.params(message).unwrap_or_default();
                if &**method == "initialize" {
                    connection.initialize = Some((id.clone(), program(params, &["clientInfo"])));
                    return;
                }
                let Some(version) = path(params, &MODERN_VERSION).and_then(as_str) else {
                    return;
                };
                format!(
                    "MCP {}: {}",
                    observed(&version, NAME),
                    program(params, &MODERN_CLIENT)
                )
            }
            (Kind::Response { id: Some(id), .. }, Side::Server) => {
                let Some((asked, client)) = &connection.initialize else {
                    return;
                };
                let Some(result) = frame.result(message).filter(|_| asked == id) else {
                    return;
                };
                let version = path(result, &["protocolVersion"]).and_then(as_str);
                let version = observed(&version.unwrap_or_default(), NAME);
                format!(
                    "MCP {version}: {client} -> {}",
                    program(result, &["serverInfo"])
                )
            }
            _ => return,
        };
        connection.ready = true;
        self.row(out, place.at, place.conn, self.palette.strong, "ready");
        let _ = writeln!(out, "{text}");
    }

    pub(super) fn noise(&mut self, at: Timestamp, noise: &Noise, out: &mut String) {
        if self.detail == Detail::Quiet {
            return;
        }
        let connection = self.connections.entry(noise.conn).or_default();
        connection.noise = connection.noise.saturating_add(1);
        let nth = connection.noise;
        if self.detail == Detail::Normal && nth > NOISE {
            return;
        }
        self.row(out, at, noise.conn, self.palette.warning, "noise");
        let limit = match self.detail {
            Detail::Quiet | Detail::Normal => TEXT,
            Detail::Verbose => usize::MAX,
        };
        let text = match str::from_utf8(&noise.text) {
            Ok(text) => observed(text.trim_end(), limit),
            Err(_) => escape(&noise.text).chars().take(limit).collect(),
        };
        let (size, kind, from) = (size(noise.bytes), noise.kind.word(), noise.from.word());
        let _ = writeln!(out, "{size} of {kind} from the {from}: {text}");
        if self.detail == Detail::Normal && nth == NOISE {
            self.row(out, at, noise.conn, self.palette.dim, "noise");
            out.push_str("what follows of it is not shown; -v shows it\n");
        }
    }

    pub(super) fn call(&self, call: &CallRecord, out: &mut String) {
        let work = WORK.contains(&call.method.as_str());
        let detail = match call.outcome {
            Outcome::Answered if !work => Detail::Verbose,
            _ => Detail::Normal,
        };
        if !self.shows(detail) {
            return;
        }
        let style = self.palette.outcome(call.outcome);
        self.row(out, call.at, call.conn, style, call.outcome.word());
        out.push_str(&title(&call.method, call.name.as_deref(), Some(&call.id)));
        if let Some(ended) = call.ended {
            let _ = write!(out, " after {}", span(ended.since(call.sent)));
        }
        if let Some(bytes) = call.response_bytes {
            let _ = write!(out, ", {}", size(bytes));
        }
        if let Some(reason) = call
            .cancel
            .as_ref()
            .and_then(|cancel| cancel.reason.as_ref())
        {
            let _ = write!(out, ": {}", observed(reason, TEXT));
        }
        if let Some(wasted) = call.wasted {
            let _ = write!(out, "; the server worked on for {}", span(wasted));
        }
        out.push('\n');
    }
}

/// `tools/call slow #2`.
fn title(method: &str, name: Option<&str>, id: Option<&Id>) -> String {
    let mut text = observed(method, NAME);
    if let Some(name) = name {
        let _ = write!(text, " {}", observed(name, NAME));
    }
    if let Some(id) = id {
        let _ = write!(text, " #{}", observed(&id.to_string(), NAME));
    }
    text
}

/// The tool, prompt or resource that a request names.
fn target(params: Option<&str>) -> Option<String> {
    let params = params?;
    let name = path(params, &["name"]).or_else(|| path(params, &["uri"]))?;
    as_str(name).map(std::borrow::Cow::into_owned)
}

/// `codex-mcp-client 0.171.0`.
fn program(json: &str, member: &[&str]) -> String {
    let info = path(json, member).unwrap_or_default();
    let field = |name| path(info, &[name]).and_then(as_str);
    let name = field("name").unwrap_or("?".into());
    let version = field("version").unwrap_or_default();
    observed(format!("{name} {version}").trim_end(), NAME)
}
