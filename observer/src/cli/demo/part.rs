//! The demo's processes: hosts and servers that speak MCP over pipes, as small as they can be.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Instant;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::{LIMIT, WORK};
use crate::cli::{Exit, Failure};

/// The hidden subcommand.
pub(in crate::cli) const NAME: &str = "demo-part";

/// This program, also for a user who may not enter the folder that it lies in.
pub(in crate::cli) const PROGRAM: &str = "/proc/self/exe";

/// The one tool of the demo's servers.
pub(super) const TOOL: &str = "report";

/// What `observer doctor` sends through a pipe.
pub(in crate::cli) const PING: &[u8] = b"observer doctor was here\n";

/// A process of the demo.
#[derive(Debug, Args)]
pub(in crate::cli) struct Part {
    role: Role,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Role {
    /// Both hosts.
    Hosts,
    /// A host that cancels what it gives up.
    PoliteHost,
    /// A host that does not.
    ForgetfulHost,
    /// A server.
    Server,
    /// Writes something into a pipe and reads it again.
    Ping,
}

impl Role {
    const fn name(self) -> &'static str {
        match self {
            Self::Hosts => "hosts",
            Self::PoliteHost => "polite-host",
            Self::ForgetfulHost => "forgetful-host",
            Self::Server => "server",
            Self::Ping => "ping",
        }
    }

    /// Starts a process of this role, which bears its name.
    fn start(self, stdio: fn() -> Stdio) -> io::Result<Child> {
        Command::new(PROGRAM)
            .arg0(self.name())
            .args([NAME, self.name()])
            .stdin(stdio())
            .stdout(stdio())
            .spawn()
    }
}

impl Part {
    pub(in crate::cli) fn execute(&self) -> Result<Exit, Failure> {
        let played = match self.role {
            Role::Hosts => hosts(),
            Role::PoliteHost | Role::ForgetfulHost => host(self.role),
            Role::Server => server(),
            Role::Ping => ping(),
        };
        let failed =
            |error| Failure::new(Exit::Failed, format_args!("{}: {error}", self.role.name()));
        played.map(|()| Exit::Clean).map_err(failed)
    }
}

fn hosts() -> io::Result<()> {
    let started = [Role::PoliteHost, Role::ForgetfulHost].map(|role| role.start(Stdio::null));
    for child in started {
        child?.wait()?;
    }
    Ok(())
}

fn ping() -> io::Result<()> {
    let (mut reader, mut writer) = io::pipe()?;
    writer.write_all(PING)?;
    io::Read::read_exact(&mut reader, &mut [0; PING.len()])
}

/// A host's end of its connection.
struct Connection {
    stdin: ChildStdin,
    messages: Receiver<Value>,
}

impl Connection {
    fn send(&mut self, message: &Value) -> io::Result<()> {
        // In one write, as every real host does it.
        self.stdin.write_all(format!("{message}\n").as_bytes())
    }

    /// Waits for the answer to a request; `None` where it takes longer than until `limit`.
    fn answer(&self, id: u64, limit: Option<Instant>) -> io::Result<Option<Value>> {
        loop {
            let received = match limit {
                Some(limit) => {
                    let wait = limit.saturating_duration_since(Instant::now());
                    self.messages.recv_timeout(wait)
                }
                None => self
                    .messages
                    .recv()
                    .map_err(|_| RecvTimeoutError::Disconnected),
            };
            match received {
                Ok(message) if message["id"] == id => return Ok(Some(message)),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        }
    }
}

fn host(role: Role) -> io::Result<()> {
    let mut server = Role::Server.start(Stdio::piped)?;
    let (Some(stdin), Some(stdout)) = (server.stdin.take(), server.stdout.take()) else {
        return Err(io::ErrorKind::BrokenPipe.into());
    };
    let (sender, messages) = mpsc::channel();
    thread::spawn(move || {
        let lines = BufReader::new(stdout).lines().map_while(Result::ok);
        let parsed = lines.filter_map(|line| serde_json::from_str(&line).ok());
        // The host has what it wanted when it no longer receives.
        parsed
            .map_while(|message| sender.send(message).ok())
            .for_each(drop);
    });
    let mut connection = Connection { stdin, messages };
    initialize(&mut connection, role)?;
    ask_twice(&mut connection, role)?;
    drop(connection);
    server.wait()?;
    Ok(())
}

fn initialize(connection: &mut Connection, role: Role) -> io::Result<()> {
    let client = json!({"name": role.name(), "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    connection.send(&request(0, "initialize", &params))?;
    connection.answer(0, None)?;
    connection.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
}

/// Gives the first call up when its time is over, and calls again; in the manner of the role.
fn ask_twice(connection: &mut Connection, role: Role) -> io::Result<()> {
    let params = json!({"name": TOOL, "arguments": {"topic": "everything"}});
    connection.send(&request(1, "tools/call", &params))?;
    if connection
        .answer(1, Some(Instant::now() + LIMIT))?
        .is_none()
        && role == Role::PoliteHost
    {
        let params = json!({"requestId": 1, "reason": "timed out"});
        let method = "notifications/cancelled";
        connection.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}))?;
    }
    connection.send(&request(2, "tools/call", &params))?;
    connection.answer(2, None).map(drop)
}

fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// A server with one slow tool. The report is ready when it is ready, whoever waits for it then.
fn server() -> io::Result<()> {
    let (sender, messages) = mpsc::channel();
    thread::spawn(move || {
        let lines = io::stdin().lines().map_while(Result::ok);
        let parsed = lines.filter_map(|line| serde_json::from_str::<Value>(&line).ok());
        parsed
            .map_while(|message| sender.send(message).ok())
            .for_each(drop);
    });
    let mut pending = BTreeSet::new();
    let mut ready = None;
    loop {
        let wait = ready.map(|ready: Instant| ready.saturating_duration_since(Instant::now()));
        let received = match wait.filter(|_| !pending.is_empty()) {
            Some(wait) => messages.recv_timeout(wait),
            None => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match received {
            Ok(message) => match message["method"].as_str() {
                Some("initialize") => answer(&message["id"], &initialized())?,
                Some("tools/call") => {
                    pending.extend(message["id"].as_u64());
                    ready.get_or_insert_with(|| Instant::now() + WORK);
                }
                Some("notifications/cancelled") => {
                    pending.retain(|id| message["params"]["requestId"] != *id);
                }
                _ => {}
            },
            Err(RecvTimeoutError::Timeout) => {
                for id in std::mem::take(&mut pending) {
                    let text = json!({"type": "text", "text": "all is well"});
                    answer(&json!(id), &json!({"content": [text]}))?;
                }
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

fn initialized() -> Value {
    let server = json!({"name": "demo-server", "version": "1"});
    json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": server})
}

fn answer(id: &Value, result: &Value) -> io::Result<()> {
    let message = json!({"jsonrpc": "2.0", "id": id, "result": result});
    let mut stdout = io::stdout().lock();
    stdout.write_all(format!("{message}\n").as_bytes())?;
    stdout.flush()
}
