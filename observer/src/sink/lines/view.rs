//! What comes out of the pipeline as lines of text. Pure: a row in, its text out.

use std::collections::HashMap;
use std::fmt::Write;

use anstyle::Style;

use super::finding::{self, Standing};
use super::name::Names;
use super::palette::Palette;
use super::text::{observed, size, span};
use super::{Detail, row};
use crate::capture::{Fate, InterruptKind, Pid, Timestamp};
use crate::jsonrpc::{Frame, Id, Kind, Message, Outcome as Answer, as_str, path};
use crate::pipeline::Output;
use crate::record::{Word, escape};
use crate::session::{ConnId, ConnectionChange, Event, Noise, Observed, Party, Side};
use crate::verdict::{self, CallRecord, Outcome};

/// Names of tools, methods, versions are cut to this many characters.
const NAME: usize = 80;

/// A message's or a noisy line's text is cut to this many characters.
const TEXT: usize = 160;

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

/// Renders outputs.
#[derive(Debug)]
pub(super) struct View {
    detail: Detail,
    palette: Palette,
    names: Names,
    connections: HashMap<ConnId, Connection>,
    /// The hosts and servers among the processes.
    parties: HashMap<Pid, u32>,
    standing: Standing,
}

#[derive(Debug, Default)]
struct Connection {
    client: Option<Party>,
    server: Option<Party>,
    /// The `initialize` request that is open, and who sent it.
    initialize: Option<(Id, String)>,
    /// Whether its revision was shown.
    ready: bool,
}

impl View {
    pub(super) fn new(detail: Detail, palette: Palette) -> Self {
        Self {
            detail,
            palette,
            names: Names::default(),
            connections: HashMap::new(),
            parties: HashMap::new(),
            standing: Standing::default(),
        }
    }

    /// Appends the lines of an output; often none.
    pub(super) fn render(&mut self, output: &Output, out: &mut Vec<u8>) {
        let mut text = String::new();
        match output {
            Output::Observed(observed) => self.observed(observed, &mut text),
            Output::Derived(verdict::Output::Call(call)) => self.call(call, &mut text),
            Output::Derived(verdict::Output::Finding(finding)) => {
                let style = self.palette.severity(finding.severity);
                let word = finding.severity.word();
                self.row(&mut text, finding.at, finding.conn, style, word);
                finding::render(finding, self.detail, &self.palette, &mut text);
                self.standing.handle_finding(finding);
            }
            Output::Derived(verdict::Output::Summary(summary)) => {
                self.standing
                    .render_summary(summary, &self.palette, &mut text);
            }
            Output::GiveUp(_) | Output::Forget(_) => {}
        }
        out.extend_from_slice(text.as_bytes());
    }

    fn row(
        &self,
        out: &mut String,
        at: Timestamp,
        conn: impl Into<Option<ConnId>>,
        style: Style,
        word: &str,
    ) {
        row::begin(out, &self.palette, Some(at), conn.into(), style, word);
    }

    fn shows(&self, detail: Detail) -> bool {
        self.detail >= detail
    }

    fn observed(&mut self, Observed { at, event }: &Observed, out: &mut String) {
        let at = *at;
        self.names.handle_event(event);
        match event {
            Event::ProcessSeen { pid, ppid, .. } => self.process_seen(at, *pid, *ppid, out),
            Event::ProcessExec { pid, .. } => self.process_row(at, *pid, "exec", "", out),
            Event::ProcessExit { pid, fate } => self.process_exit(at, *pid, *fate, out),
            Event::Connection { conn, change } => self.connection(at, *conn, change, out),
            Event::Message {
                conn,
                from,
                bytes,
                frame,
                ..
            } => {
                for message in frame.messages() {
                    self.message(at, *conn, *from, frame, message, *bytes, out);
                }
            }
            Event::Noise(noise) => self.noise(at, noise, out),
            Event::Interrupt { pid, kind, sender } => {
                self.interrupt(at, *pid, *kind, *sender, out);
            }
            _ if self.detail == Detail::Quiet => {}
            _ => self.disturbance(at, event, out),
        }
    }

    /// What goes wrong with the bytes and, in detail, how they move.
    fn disturbance(&self, at: Timestamp, event: &Event, out: &mut String) {
        let Palette {
            warning, note, dim, ..
        } = self.palette;
        let detailed = self.shows(Detail::Verbose);
        let _ = match event {
            Event::Gap {
                conn,
                from,
                offset,
                bytes,
                reason,
            } => {
                self.row(out, at, *conn, warning, "gap");
                let missing = bytes.map_or("bytes".into(), size);
                let (from, reason) = (from.word(), reason.word());
                writeln!(
                    out,
                    "{missing} from the {from} unseen at byte {offset}: {reason}"
                )
            }
            Event::Refused { conn, from } => {
                self.row(out, at, *conn, note, "refused");
                let (from, peer) = (from.word(), from.peer().word());
                writeln!(out, "the {from} wrote, and the {peer} cannot read any more")
            }
            Event::Suspended { nanos } => {
                self.row(out, at, None, note, "clock");
                let slept = span(std::time::Duration::from_nanos(*nanos));
                writeln!(out, "the machine was suspended for {slept}")
            }
            Event::Loss(loss) if !loss.complete() || detailed => {
                self.row(
                    out,
                    at,
                    None,
                    if loss.complete() { dim } else { warning },
                    "loss",
                );
                writeln!(
                    out,
                    "{} of {} lost to a full ring, {} unreadable, {} events lost",
                    size(loss.ring_full),
                    size(loss.seen),
                    size(loss.unreadable),
                    loss.events_lost
                )
            }
            Event::Eof { conn, from } if detailed => {
                self.row(out, at, *conn, dim, "eof");
                writeln!(out, "the {} closed its writing end", from.word())
            }
            Event::Delivered { conn, from, offset } if detailed => {
                self.row(out, at, *conn, dim, "delivered");
                writeln!(out, "{} read up to byte {offset}", from.peer().word())
            }
            Event::NetSend { pid, bytes, peer } if detailed => {
                self.row(out, at, None, dim, "net-send");
                let peer = peer.map_or("the network".into(), |peer| peer.to_string());
                writeln!(
                    out,
                    "{} sent {} to {peer}",
                    self.names.of(*pid),
                    size(*bytes)
                )
            }
            _ => Ok(()),
        };
    }

    fn process_seen(&self, at: Timestamp, pid: Pid, ppid: Option<Pid>, out: &mut String) {
        let by = ppid
            .map(|ppid| format!(" by {}", self.names.of(ppid)))
            .unwrap_or_default();
        self.process_row(at, pid, "process", &by, out);
    }

    fn process_row(&self, at: Timestamp, pid: Pid, word: &str, rest: &str, out: &mut String) {
        if self.shows(Detail::Verbose) {
            self.row(out, at, None, self.palette.dim, word);
            let _ = writeln!(out, "{}{rest}", self.names.of(pid));
        }
    }

    fn process_exit(&mut self, at: Timestamp, pid: Pid, fate: Option<Fate>, out: &mut String) {
        let detail = if self.parties.contains_key(&pid) {
            Detail::Normal
        } else {
            Detail::Verbose
        };
        if self.shows(detail) {
            self.row(out, at, None, self.palette.dim, "exit");
            let how = match fate {
                None => String::new(),
                Some(Fate::Code(code)) => format!(" with status {code}"),
                Some(Fate::Signal(signal)) => format!(" by {}", signal_name(signal)),
            };
            let _ = writeln!(out, "{}{how}", self.names.of(pid));
        }
        self.names.forget(pid);
    }

    fn interrupt(
        &self,
        at: Timestamp,
        pid: Pid,
        kind: InterruptKind,
        sender: Option<Pid>,
        out: &mut String,
    ) {
        let detail = if self.parties.contains_key(&pid) {
            Detail::Normal
        } else {
            Detail::Verbose
        };
        if !self.shows(detail) {
            return;
        }
        self.row(out, at, None, self.palette.note, "interrupt");
        let what = match kind {
            InterruptKind::Sigint => "SIGINT",
            InterruptKind::Sigterm => "SIGTERM",
            InterruptKind::Sigkill => "SIGKILL",
            InterruptKind::Sighup => "SIGHUP",
            InterruptKind::KeyEsc => "the key Esc",
            InterruptKind::KeyCtrlC => "the keys Ctrl-C",
        };
        let by = sender
            .map(|pid| format!(" from {}", self.names.of(pid)))
            .unwrap_or_default();
        let _ = writeln!(out, "{} got {what}{by}", self.names.of(pid));
    }

    fn connection(
        &mut self,
        at: Timestamp,
        id: ConnId,
        change: &ConnectionChange,
        out: &mut String,
    ) {
        match change {
            ConnectionChange::Open {
                client,
                server,
                transport,
                streams,
            } => {
                let before = self.connections.entry(id).or_default();
                let known = before.client.is_some() || before.server.is_some();
                let same = before.client == *client && before.server == *server;
                let old = [
                    std::mem::replace(&mut before.client, client.clone()),
                    std::mem::replace(&mut before.server, server.clone()),
                ];
                self.count_parties([client, server].into_iter().flatten(), old.iter().flatten());
                if self.detail == Detail::Quiet || (known && same) {
                    return;
                }
                self.row(out, at, id, self.palette.strong, "open");
                let client = self.names.of_party(client.as_ref());
                let server = self.names.of_party(server.as_ref());
                let _ = write!(out, "{client} -> {server} ({})", transport.word());
                for stream in streams
                    .iter()
                    .flatten()
                    .filter(|_| self.shows(Detail::Verbose))
                {
                    let _ = write!(out, " {}", observed(stream, NAME));
                }
                out.push('\n');
            }
            ConnectionChange::Close => {
                if self.shows(Detail::Normal) {
                    self.row(out, at, id, self.palette.dim, "close");
                    let known = self.connections.get(&id);
                    let name = |party: Option<&Party>| self.names.of_party(party);
                    let client = name(known.and_then(|known| known.client.as_ref()));
                    let server = name(known.and_then(|known| known.server.as_ref()));
                    let _ = writeln!(out, "{client} -> {server}");
                }
                if let Some(Connection { client, server, .. }) = self.connections.remove(&id) {
                    self.count_parties([].into_iter(), [client, server].iter().flatten());
                }
            }
        }
    }

    fn count_parties<'a>(
        &mut self,
        new: impl Iterator<Item = &'a Party>,
        old: impl Iterator<Item = &'a Party>,
    ) {
        for party in new {
            *self.parties.entry(party.pid).or_insert(0) += 1;
        }
        for party in old {
            if let Some(count) = self.parties.get_mut(&party.pid) {
                *count -= 1;
                if *count == 0 {
                    self.parties.remove(&party.pid);
                }
            }
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the fields of one event, and where to write"
    )]
    fn message(
        &mut self,
        at: Timestamp,
        conn: ConnId,
        from: Side,
        frame: &Frame,
        message: &Message,
        bytes: u64,
        out: &mut String,
    ) {
        if self.detail == Detail::Quiet {
            return;
        }
        let arrow = match from {
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
            self.row(out, at, conn, Style::new(), word);
            let _ = write!(out, "{arrow} {what}, {}", size(bytes));
            if self.shows(Detail::Verbose) {
                let dim = self.palette.dim;
                let _ = write!(out, "  {dim}{}{dim:#}", observed(frame.text().trim(), TEXT));
            }
            out.push('\n');
        }
        self.revision(at, conn, from, frame, message, out);
    }

    /// Shows the protocol's revision once it is known.
    fn revision(
        &mut self,
        at: Timestamp,
        conn: ConnId,
        from: Side,
        frame: &Frame,
        message: &Message,
        out: &mut String,
    ) {
        let connection = self.connections.entry(conn).or_default();
        if connection.ready {
            return;
        }
        let text = match (&message.kind, from) {
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
        self.row(out, at, conn, self.palette.strong, "ready");
        let _ = writeln!(out, "{text}");
    }

    fn noise(&self, at: Timestamp, noise: &Noise, out: &mut String) {
        if self.detail == Detail::Quiet {
            return;
        }
        self.row(out, at, noise.conn, self.palette.warning, "noise");
        let limit = if self.shows(Detail::Verbose) {
            usize::MAX
        } else {
            TEXT
        };
        let text = String::from_utf8_lossy(&noise.text);
        let text = match noise.text.len() == text.len() {
            true => observed(text.trim_end(), limit),
            false => escape(&noise.text).chars().take(limit).collect(),
        };
        let (from, kind) = (noise.from.word(), noise.kind.word());
        let _ = writeln!(
            out,
            "{} of {kind} from the {from}: {text}",
            size(noise.bytes)
        );
    }

    fn call(&self, call: &CallRecord, out: &mut String) {
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

fn signal_name(signal: i32) -> String {
    match nix::sys::signal::Signal::try_from(signal) {
        Ok(signal) => signal.as_str().into(),
        Err(_) => format!("signal {signal}"),
    }
}
