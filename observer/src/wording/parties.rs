//! Who speaks on a connection: what the host and the server call themselves, and what they run as.

use std::collections::BTreeMap;

use super::{Names, observed};
use crate::capture::Pid;
use crate::jsonrpc::{Frame, Id, Kind, Message, as_str, path};
use crate::session::{ConnId, ConnectionChange, Event, Party, Side};

/// A name is cut to this many characters.
const NAME: usize = 80;

const MODERN_CLIENT: [&str; 2] = ["_meta", "io.modelcontextprotocol/clientInfo"];
const MODERN_SERVER: [&str; 2] = ["_meta", "io.modelcontextprotocol/serverInfo"];
const MODERN_REVISION: [&str; 2] = ["_meta", "io.modelcontextprotocol/protocolVersion"];

/// All connections of a log, and who speaks on them.
#[derive(Debug, Default)]
pub(crate) struct Parties {
    names: Names,
    by_conn: BTreeMap<ConnId, Sides>,
}

/// The two sides of a connection, under all names that are known of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sides {
    pub(crate) host: Known,
    pub(crate) server: Known,
    /// The revision of MCP that they speak.
    pub(crate) revision: Option<String>,
    /// The `initialize` that is not answered yet.
    asked: Option<Id>,
}

/// What is known of a side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// `clientInfo.name` or `serverInfo.name`.
    pub(crate) name: Option<String>,
    /// The version beside it.
    pub(crate) version: Option<String>,
    /// Its program, as `python3 slow_server.py`.
    pub(crate) program: Option<String>,
    /// Its process.
    pub(crate) pid: Option<u32>,
}

impl Known {
    /// What to call it: `codex-mcp-client 0.171.0`, else its program.
    pub(crate) fn title(&self) -> String {
        match (&self.name, &self.version, &self.program) {
            (Some(name), Some(version), _) => format!("{name} {version}"),
            (Some(name), None, _) | (None, _, Some(name)) => name.clone(),
            (None, _, None) => self.pid.map_or("?".into(), |pid| format!("pid {pid}")),
        }
    }

    /// All names that a pattern may match.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.name.iter().chain(&self.program).map(String::as_str)
    }
}

impl Parties {
    /// Learns from what was observed.
    pub(crate) fn handle_event(&mut self, event: &Event) {
        self.names.handle_event(event);
        match event {
            Event::Connection { conn, change } => {
                let ConnectionChange::Open { client, server, .. } = change else {
                    return;
                };
                let sides = self.by_conn.entry(*conn).or_default();
                sides.host.learn(client.as_ref(), &self.names);
                sides.server.learn(server.as_ref(), &self.names);
            }
            Event::Message {
                conn, from, frame, ..
            } => {
                let sides = self.by_conn.entry(*conn).or_default();
                if !sides.is_known() {
                    for message in frame.messages() {
                        sides.read(*from, frame, message);
                    }
                }
            }
            Event::ProcessExit { pid, .. } => self.names.forget(*pid),
            _ => {}
        }
    }

    /// The sides of a connection.
    pub(crate) fn of(&self, conn: ConnId) -> Option<&Sides> {
        self.by_conn.get(&conn)
    }

    /// What a process is called.
    pub(crate) fn process(&self, pid: Pid) -> String {
        self.names.of(pid)
    }

    /// All connections.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ConnId, &Sides)> {
        self.by_conn.iter().map(|(conn, sides)| (*conn, sides))
    }
}

impl Sides {
    fn is_known(&self) -> bool {
        self.host.name.is_some() && self.server.name.is_some()
    }

    fn read(&mut self, from: Side, frame: &Frame, message: &Message) {
        match (&message.kind, from) {
            (Kind::Request { id, method }, Side::Client) => {
                let Some(params) = frame.params(message) else {
                    return;
                };
                if &**method == "initialize" {
                    self.asked = Some(id.clone());
                    self.host.name_from(params, &["clientInfo"]);
                } else {
                    self.host.name_from(params, &MODERN_CLIENT);
                    self.revision_from(params, &MODERN_REVISION);
                }
            }
            (Kind::Response { id: Some(id), .. }, Side::Server) => {
                let Some(result) = frame.result(message) else {
                    return;
                };
                if self.asked.as_ref() == Some(id) {
                    self.server.name_from(result, &["serverInfo"]);
                    self.revision_from(result, &["protocolVersion"]);
                }
                self.server.name_from(result, &MODERN_SERVER);
            }
            _ => {}
        }
    }
}

impl Sides {
    fn revision_from(&mut self, json: &str, member: &[&str]) {
        if let Some(revision) = path(json, member).and_then(as_str) {
            self.revision = Some(observed(&revision, NAME));
        }
    }
}

impl Known {
    fn learn(&mut self, party: Option<&Party>, names: &Names) {
        let Some(party) = party else { return };
        self.pid = Some(party.pid.0);
        self.program = names.program_of(party).or(self.program.take());
    }

    fn name_from(&mut self, json: &str, member: &[&str]) {
        let Some(info) = path(json, member) else {
            return;
        };
        let field = |name| {
            let text = path(info, &[name]).and_then(as_str)?;
            (!text.is_empty()).then(|| observed(&text, NAME))
        };
        if let Some(name) = field("name") {
            self.name = Some(name);
            self.version = field("version");
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::session::Transport;

    fn message(from: Side, text: &str) -> Event {
        Event::Message {
            conn: ConnId(1),
            from,
            offset: None,
            bytes: 0,
            frame: Frame::parse(Bytes::copy_from_slice(text.as_bytes())).expect("a frame"),
        }
    }

    #[test]
    fn both_sides_are_called_as_they_call_themselves() {
        let mut parties = Parties::default();
        parties.handle_event(&Event::ProcessSeen {
            pid: Pid(7),
            ppid: None,
            exe: None,
            argv: vec!["python3".into(), "slow.py".into()],
            start: None,
        });
        parties.handle_event(&Event::Connection {
            conn: ConnId(1),
            change: ConnectionChange::Open {
                client: None,
                server: Some(Party {
                    pid: Pid(7),
                    exe: None,
                }),
                transport: Transport::Pipe,
                streams: [None, None],
            },
        });
        let title = |parties: &Parties| {
            let sides = parties.of(ConnId(1)).expect("known");
            (sides.host.title(), sides.server.title())
        };
        assert_eq!(title(&parties), ("?".into(), "python3 slow.py".into()));
        parties.handle_event(&message(
            Side::Client,
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"clientInfo":{"name":"h","version":"1"}}}"#,
        ));
        parties.handle_event(&message(
            Side::Server,
            r#"{"jsonrpc":"2.0","id":0,"result":{"serverInfo":{"name":"s\u001b"}}}"#,
        ));
        assert_eq!(title(&parties), ("h 1".into(), r"s\u{1b}".into()));
        let sides = parties.of(ConnId(1)).expect("known");
        assert_eq!(
            sides.server.names().collect::<Vec<_>>(),
            [r"s\u{1b}", "python3 slow.py"]
        );
    }
}
