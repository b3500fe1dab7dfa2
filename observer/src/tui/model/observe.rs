//! How the ledger takes in what was observed.

use std::borrow::Cow;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::call::Call;
use super::frame::{Body, Frame, Kind, LogPlace, Place};
use super::ledger::Ledger;
use crate::capture::{Fate, InterruptKind, Timestamp};
use crate::jsonrpc::{self, Id, Kind as Rpc, Message, as_str, member, path};
use crate::record::{Word, escape, printable};
use crate::session::{ConnId, ConnectionChange, Event, Noise, Side};
use crate::verdict::Cancellation;
use crate::wording::{observed, size, span};

/// Names and ids are cut to this many characters.
const NAME: usize = 120;

impl Ledger {
    pub(super) fn observe(&mut self, at: Timestamp, event: Event, origin: Option<LogPlace>) {
        if self.processes.handle_event(&event) {
            let Self {
                connections,
                processes,
                ..
            } = self;
            connections
                .values_mut()
                .for_each(|connection| connection.rename(processes));
        }
        let mut seen = self.describe(at, &event);
        seen.origin = origin;
        let number = self.frames.range().end;
        if let Event::Message {
            conn,
            from,
            bytes,
            frame,
            ..
        } = &event
        {
            self.totals.messages += 1;
            self.totals.bytes += bytes;
            let connection = self.connection(*conn, at);
            connection.messages += 1;
            connection.bytes += bytes;
            for message in frame.messages() {
                let sent = Sent {
                    at,
                    conn: *conn,
                    from: *from,
                    bytes: *bytes,
                    number,
                };
                seen.call = self.message(sent, frame, message).or(seen.call);
                self.learn(*conn, *from, frame, message);
            }
        }
        seen.body = Body::Here(Box::new(event));
        self.add_frame(seen);
    }

    fn learn(&mut self, conn: ConnId, from: Side, frame: &jsonrpc::Frame, message: &Message) {
        let Self {
            connections,
            processes,
            ..
        } = self;
        if let Some(connection) = connections.get_mut(&conn)
            && connection.learn(from, frame, message)
        {
            connection.rename(processes);
        }
    }

    /// Its line on the screen, and what it changes besides calls.
    fn describe(&mut self, at: Timestamp, event: &Event) -> Frame {
        let (place, from, kind, bytes, label) = match event {
            Event::ProcessSeen { pid, ppid, .. } => {
                let by = ppid.map(|ppid| format!(", started by {}", self.processes.names.of(ppid)));
                let label = format!(
                    "{} seen{}",
                    self.processes.names.of(*pid),
                    by.unwrap_or_default()
                );
                (Place::Process(*pid), None, Kind::Process, 0, label)
            }
            Event::ProcessExec { pid, .. } => {
                let label = format!("{} executed", self.processes.names.of(*pid));
                (Place::Process(*pid), None, Kind::Process, 0, label)
            }
            Event::ProcessExit { pid, fate } => {
                let how = match fate {
                    None => String::new(),
                    Some(Fate::Code(code)) => format!(" with status {code}"),
                    Some(Fate::Signal(signal)) => format!(" by signal {signal}"),
                };
                let label = format!("{} ended{how}", self.processes.names.of(*pid));
                if !self
                    .connections
                    .values()
                    .any(|connection| connection.has(*pid))
                {
                    self.processes.forget(*pid);
                }
                (Place::Process(*pid), None, Kind::Process, 0, label)
            }
            Event::Connection { conn, change } => {
                let label = self.connection_changed(at, *conn, change);
                (Place::Connection(*conn), None, Kind::Connection, 0, label)
            }
            Event::Message {
                conn,
                from,
                bytes,
                frame,
                ..
            } => {
                let (kind, label) = message_label(frame);
                (Place::Connection(*conn), Some(*from), kind, *bytes, label)
            }
            Event::Noise(noise) => {
                self.connection(noise.conn, at).noise += 1;
                let label = noise_label(noise);
                (
                    Place::Connection(noise.conn),
                    Some(noise.from),
                    Kind::Noise,
                    noise.bytes,
                    label,
                )
            }
            Event::Gap {
                conn,
                from,
                offset,
                bytes,
                reason,
            } => {
                self.totals.gaps += 1;
                self.connection(*conn, at).gaps += 1;
                let missing = bytes.map_or("bytes".into(), size);
                let label = format!("{missing} unseen at byte {offset}: {}", reason.word());
                let bytes = bytes.unwrap_or(0);
                (
                    Place::Connection(*conn),
                    Some(*from),
                    Kind::Gap,
                    bytes,
                    label,
                )
            }
            Event::Eof { conn, from } => {
                let label = format!("the {} closed its writing end", from.word());
                (
                    Place::Connection(*conn),
                    Some(*from),
                    Kind::Connection,
                    0,
                    label,
                )
            }
            Event::Refused { conn, from } => {
                let label = format!("the {} cannot read any more", from.peer().word());
                (
                    Place::Connection(*conn),
                    Some(*from),
                    Kind::Connection,
                    0,
                    label,
                )
            }
            Event::Interrupt { pid, kind, sender } => {
                let by = sender.map(|pid| format!(" from {}", self.processes.names.of(pid)));
                let (who, by) = (self.processes.names.of(*pid), by.unwrap_or_default());
                let label = format!("{who} got {}{by}", interrupt(*kind));
                (Place::Process(*pid), None, Kind::Interrupt, 0, label)
            }
            Event::Suspended { nanos } => {
                let slept = span(std::time::Duration::from_nanos(*nanos));
                let label = format!("the machine was suspended for {slept}");
                (Place::Everything, None, Kind::Interrupt, 0, label)
            }
            Event::Loss(loss) => {
                self.totals.loss = Some(*loss);
                let label = format!(
                    "{} of {} lost to a full ring, {} unreadable",
                    size(loss.ring_full),
                    size(loss.seen),
                    size(loss.unreadable)
                );
                let kind = if loss.complete() {
                    Kind::Quiet
                } else {
                    Kind::Loss
                };
                (Place::Everything, None, kind, 0, label)
            }
            Event::Delivered { conn, from, .. } => (
                Place::Connection(*conn),
                Some(*from),
                Kind::Quiet,
                0,
                String::new(),
            ),
            Event::NetSend { pid, bytes, .. } => (
                Place::Process(*pid),
                None,
                Kind::Quiet,
                *bytes,
                String::new(),
            ),
        };
        let label = label.into();
        Frame {
            at,
            place,
            from,
            kind,
            bytes,
            label,
            call: None,
            origin: None,
            body: Body::Gone,
        }
    }

    fn connection_changed(
        &mut self,
        at: Timestamp,
        conn: ConnId,
        change: &ConnectionChange,
    ) -> String {
        self.connection(conn, at);
        let Self {
            connections,
            processes,
            ..
        } = self;
        let Some(connection) = connections.get_mut(&conn) else {
            return String::new();
        };
        match change {
            ConnectionChange::Open {
                client,
                server,
                transport,
                ..
            } => {
                connection.client.clone_from(client);
                connection.server.clone_from(server);
                connection.transport = Some(*transport);
                connection.rename(processes);
                format!(
                    "connection {conn} open: {} ({})",
                    connection.title(),
                    transport.word()
                )
            }
            ConnectionChange::Close => {
                connection.closed = Some(at);
                format!("connection {conn} closed: {}", connection.title())
            }
        }
    }

    /// What a message means for a call; the call that it belongs to.
    fn message(&mut self, sent: Sent, frame: &jsonrpc::Frame, message: &Message) -> Option<u32> {
        let params = frame.params(message);
        match &message.kind {
            Rpc::Request { id, method } => {
                let mut call = Call::new(sent.conn, sent.from, id.clone(), method, sent.at);
                call.name = target(params).map(Into::into);
                call.request_bytes = sent.bytes;
                call.request = Some(sent.number);
                call.print = Some(print(method, params));
                let token = params.and_then(|params| path(params, &["_meta", "progressToken"]));
                let token = token.and_then(Id::from_raw);
                call.token.clone_from(&token);
                let number = self.add_call(call);
                if let Some(token) = token {
                    self.tokens.insert((sent.conn, sent.from, token), number);
                }
                Some(number)
            }
            Rpc::Notification { method } => match &**method {
                "notifications/cancelled" => self.cancelled(sent, params?),
                "notifications/progress" => {
                    let token = Id::from_raw(member(params?, "progressToken")?)?;
                    let key = (sent.conn, sent.from.peer(), token);
                    let number = self.tokens.get(&key).copied()?;
                    self.change(number, |call| call.progress += 1);
                    Some(number)
                }
                _ => None,
            },
            Rpc::Response { id, .. } => {
                let number = self.call_of(sent.conn, sent.from.peer(), id.as_ref()?)?;
                self.change(number, |call| {
                    if call.answer.is_none() {
                        call.answer = Some(sent.number);
                        call.response_bytes = Some(sent.bytes);
                        call.ended.get_or_insert(sent.at);
                    }
                });
                Some(number)
            }
        }
    }

    fn cancelled(&mut self, sent: Sent, params: &str) -> Option<u32> {
        let id = Id::from_raw(member(params, "requestId")?)?;
        let number = self.call_of(sent.conn, sent.from, &id)?;
        let reason = member(params, "reason")
            .and_then(as_str)
            .map(Cow::into_owned);
        self.change(number, |call| {
            call.cancellation.get_or_insert(sent.number);
            if call.answer.is_none() && call.cancel.is_none() {
                call.cancel = Some(Cancellation {
                    at: sent.at,
                    reason,
                });
            }
        });
        Some(number)
    }
}

/// When, where and by whom a message was sent, and its number among the frames.
#[derive(Clone, Copy)]
struct Sent {
    at: Timestamp,
    conn: ConnId,
    from: Side,
    bytes: u64,
    number: u32,
}

/// `tools/call slow #2`.
pub(crate) fn title(method: &str, name: Option<&str>, id: Option<&Id>) -> String {
    let mut text = observed(method, NAME);
    if let Some(name) = name {
        let _ = write!(text, " {}", observed(name, NAME));
    }
    if let Some(id) = id {
        let _ = write!(text, " #{}", observed(&id.to_string(), NAME));
    }
    text
}

pub(crate) const fn interrupt(kind: InterruptKind) -> &'static str {
    match kind {
        InterruptKind::Sigint => "SIGINT",
        InterruptKind::Sigterm => "SIGTERM",
        InterruptKind::Sigkill => "SIGKILL",
        InterruptKind::Sighup => "SIGHUP",
        InterruptKind::KeyEsc => "the key Esc",
        InterruptKind::KeyCtrlC => "the keys Ctrl-C",
    }
}

/// The tool, prompt or resource that a request names.
fn target(params: Option<&str>) -> Option<String> {
    let params = params?;
    let name = member(params, "name").or_else(|| member(params, "uri"))?;
    as_str(name).map(|name| observed(&name, NAME))
}

/// A hash of what a request asks for; what may differ in a retry is left out.
fn print(method: &str, params: Option<&str>) -> u64 {
    let mut hasher = DefaultHasher::new();
    method.hash(&mut hasher);
    for name in ["name", "uri", "arguments"] {
        params
            .and_then(|params| member(params, name))
            .hash(&mut hasher);
    }
    hasher.finish()
}

fn message_label(frame: &jsonrpc::Frame) -> (Kind, String) {
    let Some(message) = frame.messages().first() else {
        return (Kind::Notification, String::new());
    };
    let params = frame.params(message);
    let (kind, mut label) = match &message.kind {
        Rpc::Request { id, method } => (
            Kind::Request,
            title(method, target(params).as_deref(), Some(id)),
        ),
        Rpc::Notification { method } => {
            let of = params.and_then(|params| member(params, "requestId"));
            let of = of.and_then(Id::from_raw);
            (Kind::Notification, title(method, None, of.as_ref()))
        }
        Rpc::Response { id, outcome } => {
            let id = id
                .as_ref()
                .map_or("?".into(), |id| observed(&id.to_string(), NAME));
            match outcome {
                jsonrpc::Outcome::Result => (Kind::Answer, format!("#{id} result")),
                jsonrpc::Outcome::Error { code } => (Kind::Error, format!("#{id} error {code}")),
            }
        }
    };
    if frame.is_batch() {
        let _ = write!(label, " and {} more in a batch", frame.messages().len() - 1);
    }
    (kind, label)
}

fn noise_label(noise: &Noise) -> String {
    let text = match std::str::from_utf8(&noise.text) {
        Ok(text) => printable(text.trim_end()),
        Err(_) => escape(&noise.text),
    };
    format!("{}: {}", noise.kind.word(), observed(&text, NAME))
}
