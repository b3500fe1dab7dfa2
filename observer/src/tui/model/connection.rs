//! A connection as the view knows it: who talks to whom, in which revision, and how it goes.

use std::collections::BTreeMap;

use crate::capture::{Pid, Timestamp};
use crate::jsonrpc::{Frame, Id, Kind, Message, as_str, path};
use crate::session::{ConnId, Event, Party, Side, Transport};
use crate::wording::{Names, observed};

/// Names are cut to this many characters.
const NAME: usize = 80;

const MODERN_VERSION: [&str; 2] = ["_meta", "io.modelcontextprotocol/protocolVersion"];
const MODERN_CLIENT: [&str; 2] = ["_meta", "io.modelcontextprotocol/clientInfo"];

/// A connection, open or closed.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) id: ConnId,
    pub(crate) opened: Timestamp,
    pub(crate) closed: Option<Timestamp>,
    pub(crate) transport: Option<Transport>,
    pub(crate) client: Option<Party>,
    pub(crate) server: Option<Party>,
    /// What the processes are called: by executable and script.
    pub(crate) host: Box<str>,
    pub(crate) tool: Box<str>,
    /// What they call themselves, name and version.
    pub(crate) client_info: Option<Box<str>>,
    pub(crate) server_info: Option<Box<str>>,
    pub(crate) revision: Option<Box<str>>,
    pub(crate) open_calls: u32,
    pub(crate) calls: u32,
    pub(crate) abandoned: u32,
    pub(crate) findings: u32,
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    pub(crate) gaps: u32,
    pub(crate) noise: u32,
    initialize: Option<Id>,
}

impl Connection {
    pub(crate) fn new(id: ConnId, opened: Timestamp) -> Self {
        Self {
            id,
            opened,
            closed: None,
            transport: None,
            client: None,
            server: None,
            host: "?".into(),
            tool: "?".into(),
            client_info: None,
            server_info: None,
            revision: None,
            open_calls: 0,
            calls: 0,
            abandoned: 0,
            findings: 0,
            messages: 0,
            bytes: 0,
            gaps: 0,
            noise: 0,
            initialize: None,
        }
    }

    /// `codex → python3 slow_server.py`.
    pub(crate) fn title(&self) -> String {
        format!("{} → {}", self.host, self.tool)
    }

    pub(crate) fn word(&self) -> &'static str {
        match (self.closed, &self.revision) {
            (Some(_), _) => "closed",
            (None, Some(_)) => "ready",
            (None, None) => "open",
        }
    }

    pub(crate) fn has(&self, pid: Pid) -> bool {
        [&self.client, &self.server]
            .into_iter()
            .flatten()
            .any(|party| party.pid == pid)
    }

    /// Takes the best names that are known: the processes', else what they call themselves.
    pub(crate) fn rename(&mut self, processes: &Processes) {
        self.host = name(processes, self.client.as_ref(), self.client_info.as_deref());
        self.tool = name(processes, self.server.as_ref(), self.server_info.as_deref());
    }

    /// Learns revision and names from the handshake. Whether it learned anything.
    pub(crate) fn learn(&mut self, from: Side, frame: &Frame, message: &Message) -> bool {
        if self.revision.is_some() {
            return false;
        }
        match (&message.kind, from) {
            (Kind::Request { id, method }, Side::Client) => {
                let params = frame.params(message).unwrap_or_default();
                if &**method == "initialize" {
                    self.initialize = Some(id.clone());
                    self.client_info = program(params, &["clientInfo"]);
                    return true;
                }
                let Some(version) = path(params, &MODERN_VERSION).and_then(as_str) else {
                    return false;
                };
                self.revision = Some(observed(&version, NAME).into());
                self.client_info = program(params, &MODERN_CLIENT);
                true
            }
            (Kind::Response { id: Some(id), .. }, Side::Server)
                if self.initialize.as_ref() == Some(id) =>
            {
                let Some(result) = frame.result(message) else {
                    return false;
                };
                let version = path(result, &["protocolVersion"]).and_then(as_str);
                self.revision = version.map(|version| observed(&version, NAME).into());
                self.server_info = program(result, &["serverInfo"]);
                true
            }
            _ => false,
        }
    }
}

fn name(processes: &Processes, party: Option<&Party>, own: Option<&str>) -> Box<str> {
    if let Some(party) = party
        && (party.exe.is_some() || processes.knows(party.pid))
    {
        let name = processes.names.of_party(Some(party));
        return name
            .rsplit_once('[')
            .map_or(name.as_str(), |(name, _)| name)
            .into();
    }
    match (own.and_then(|own| own.split(' ').next()), party) {
        (Some(own), _) => own.into(),
        (None, Some(party)) => format!("pid {}", party.pid).into(),
        (None, None) => "?".into(),
    }
}

/// `codex-mcp-client 0.171.0`.
fn program(json: &str, member: &[&str]) -> Option<Box<str>> {
    let info = path(json, member)?;
    let field = |name| path(info, &[name]).and_then(as_str).unwrap_or_default();
    let text = format!("{} {}", field("name"), field("version"));
    Some(observed(text.trim(), NAME).into())
}

/// The processes that were seen, alive or not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Processes {
    pub(crate) names: Names,
    by_pid: BTreeMap<Pid, Process>,
}

/// How a process was started.
#[derive(Clone, Debug, Default)]
pub(crate) struct Process {
    pub(crate) exe: Option<String>,
    pub(crate) argv: Vec<String>,
}

impl Processes {
    /// Learns from a process event; `true` where a name may have changed.
    pub(crate) fn handle_event(&mut self, event: &Event) -> bool {
        let (Event::ProcessSeen { pid, exe, argv, .. } | Event::ProcessExec { pid, exe, argv }) =
            event
        else {
            return false;
        };
        self.names.handle_event(event);
        self.by_pid.insert(
            *pid,
            Process {
                exe: exe.clone(),
                argv: argv.clone(),
            },
        );
        true
    }

    pub(crate) fn get(&self, pid: Pid) -> Option<&Process> {
        self.by_pid.get(&pid)
    }

    /// Forgets a process that has ended and is no side of a connection.
    pub(crate) fn forget(&mut self, pid: Pid) {
        self.names.forget(pid);
        self.by_pid.remove(&pid);
    }

    fn knows(&self, pid: Pid) -> bool {
        self.by_pid
            .get(&pid)
            .is_some_and(|process| !process.argv.is_empty() || process.exe.is_some())
    }
}
