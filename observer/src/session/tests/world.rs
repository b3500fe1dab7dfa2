//! A small scripted world: processes, pipes and time, as a backend would report them.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;

use crate::capture::{
    CaptureEvent, Captured, End, Joined, Pid, ProcessChange, ProcessEvent, StreamId, StreamKind,
    Timestamp,
};
use crate::jsonrpc::{Frame, Kind, Outcome};
use crate::session::{ConnectionChange, Event, Noise, Observed, Output, Session, Settings};

pub(super) const MILLISECOND: Duration = Duration::from_millis(1);
pub(super) const SECOND: Duration = Duration::from_secs(1);

pub(super) const INIT: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;

pub(super) fn call(id: u32) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t"}}}}"#)
}

pub(super) fn result(id: u32) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}

/// The three streams between a host and a server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wire {
    pub(super) stdin: StreamId,
    pub(super) stdout: StreamId,
    pub(super) stderr: StreamId,
}

pub(super) struct World {
    pub(super) session: Session,
    pub(super) now: Timestamp,
    pub(super) outputs: Vec<Output>,
    written: HashMap<StreamId, u64>,
    next: u32,
}

impl World {
    pub(super) fn new() -> Self {
        Self::with(Settings::default())
    }

    pub(super) fn with(settings: Settings) -> Self {
        Self {
            session: Session::new(settings),
            now: Timestamp::ZERO,
            outputs: Vec::new(),
            written: HashMap::new(),
            next: 10,
        }
    }

    pub(super) fn event(&mut self, event: CaptureEvent) {
        self.now = self.now + MILLISECOND;
        self.session.handle_event(Captured {
            at: self.now,
            event,
        });
        self.collect();
    }

    /// Lets time pass, and timers run when they are due.
    pub(super) fn wait(&mut self, duration: Duration) {
        let end = self.now + duration;
        while let Some(due) = self.session.poll_timeout().filter(|&due| due <= end) {
            self.session.handle_timeout(due);
            assert!(
                self.session.poll_timeout().is_none_or(|next| next > due),
                "timers must go"
            );
        }
        self.now = end;
        self.collect();
    }

    pub(super) fn finish(&mut self) {
        self.session.finish(self.now);
        self.collect();
        assert_eq!(self.session.poll_timeout(), None);
    }

    fn collect(&mut self) {
        self.outputs
            .extend(std::iter::from_fn(|| self.session.poll_output()));
    }

    /// A process that `parent` (0: nobody) has started.
    pub(super) fn spawn(&mut self, parent: impl Into<Parent>) -> Pid {
        let Parent(parent) = parent.into();
        let pid = Pid(self.next);
        self.next += 1;
        let change = ProcessChange::Seen {
            ppid: Some(parent),
            exe: Some(format!("exe{pid}")),
            argv: vec![format!("exe{pid}")],
            start: Some(u64::from(pid.0)),
        };
        self.event(CaptureEvent::Process(ProcessEvent { pid, change }));
        pid
    }

    pub(super) fn exit(&mut self, pid: Pid) {
        let change = ProcessChange::Exit { fate: None };
        self.event(CaptureEvent::Process(ProcessEvent { pid, change }));
    }

    pub(super) fn pipe(&mut self) -> StreamId {
        self.stream(StreamKind::Pipe)
    }

    pub(super) fn stream(&mut self, kind: StreamKind) -> StreamId {
        self.next += 1;
        StreamId {
            kind,
            object: u64::from(self.next),
            scope: 0,
        }
    }

    pub(super) fn wire(&mut self) -> Wire {
        Wire {
            stdin: self.pipe(),
            stdout: self.pipe(),
            stderr: self.pipe(),
        }
    }

    /// Writes raw bytes.
    pub(super) fn write(
        &mut self,
        writer: Pid,
        stream: StreamId,
        fd: i32,
        bytes: impl Into<Bytes>,
    ) {
        let bytes = bytes.into();
        let position = self.written.entry(stream).or_default();
        let offset = *position;
        *position += bytes.len() as u64;
        self.event(CaptureEvent::Chunk {
            stream,
            offset,
            bytes,
            writer,
            fd: Some(fd),
        });
    }

    /// Reads all that was written.
    pub(super) fn read(&mut self, reader: Pid, stream: StreamId, fd: i32) {
        let end = self.written.get(&stream).copied().unwrap_or_default();
        self.event(CaptureEvent::Read {
            stream,
            end,
            reader,
            fd: Some(fd),
        });
    }

    /// The host writes a line, the server reads it.
    pub(super) fn ask(&mut self, host: Pid, server: Pid, wire: Wire, line: &str) {
        self.write(host, wire.stdin, 20, format!("{line}\n"));
        self.read(server, wire.stdin, 0);
    }

    /// The server writes a line, the host reads it.
    pub(super) fn answer(&mut self, server: Pid, host: Pid, wire: Wire, line: &str) {
        self.write(server, wire.stdout, 1, format!("{line}\n"));
        self.read(host, wire.stdout, 21);
    }

    pub(super) fn holds(&mut self, pid: Pid, stream: StreamId, end: End, fd: i32) {
        let joined = Joined::Middle;
        self.event(CaptureEvent::Holds {
            stream,
            pid,
            end,
            fd,
            joined,
        });
    }

    pub(super) fn eof(&mut self, stream: StreamId) {
        self.event(CaptureEvent::Eof { stream });
    }

    /// What came out about connections, without deliveries, one short line an event.
    pub(super) fn log(&self) -> Vec<String> {
        self.observed()
            .filter_map(|observed| short(&observed.event))
            .collect()
    }

    pub(super) fn observed(&self) -> impl Iterator<Item = &Observed> {
        self.outputs.iter().filter_map(|output| match output {
            Output::Observed(observed) => Some(observed),
            Output::GiveUp(_) | Output::Forget(_) => None,
        })
    }

    pub(super) fn gave_up(&self, stream: StreamId) -> bool {
        self.outputs.contains(&Output::GiveUp(stream))
    }

    pub(super) fn forgot(&self, stream: StreamId) -> bool {
        self.outputs.contains(&Output::Forget(stream))
    }
}

pub(super) struct Parent(Pid);

impl From<Pid> for Parent {
    fn from(pid: Pid) -> Self {
        Self(pid)
    }
}

impl From<u32> for Parent {
    fn from(pid: u32) -> Self {
        Self(Pid(pid))
    }
}

fn short(event: &Event) -> Option<String> {
    Some(match event {
        Event::Connection {
            conn,
            change: ConnectionChange::Close,
        } => format!("{conn} close"),
        Event::Connection {
            conn,
            change:
                ConnectionChange::Open {
                    client,
                    server,
                    streams,
                    ..
                },
        } => {
            let pid = |party: &Option<crate::session::Party>| {
                party
                    .as_ref()
                    .map_or("?".to_owned(), |party| party.pid.to_string())
            };
            let streams = streams.iter().flatten().count();
            format!("{conn} open {} {} by {streams}", pid(client), pid(server))
        }
        Event::Message {
            conn, from, frame, ..
        } => format!("{conn} {from:?} {}", words(frame)),
        Event::Noise(Noise {
            conn,
            from,
            kind,
            bytes,
            ..
        }) => {
            format!("{conn} {from:?} {kind:?} {bytes}")
        }
        Event::Gap {
            conn,
            from,
            offset,
            bytes,
            reason,
        } => {
            let bytes = bytes.map_or("?".to_owned(), |bytes| bytes.to_string());
            format!("{conn} {from:?} gap {offset}+{bytes} {reason:?}")
        }
        Event::Eof { conn, from } => format!("{conn} {from:?} eof"),
        Event::Refused { conn, from } => format!("{conn} {from:?} refused"),
        _ => return None,
    })
}

fn words(frame: &Frame) -> String {
    let words = frame.messages().iter().map(|message| match &message.kind {
        Kind::Request { id, method } => format!("{method} {id}"),
        Kind::Notification { method } => method.to_string(),
        Kind::Response {
            id: Some(id),
            outcome: Outcome::Result,
        } => format!("result {id}"),
        Kind::Response { id, .. } => format!("error {id:?}"),
    });
    words.collect::<Vec<_>>().join(", ")
}
