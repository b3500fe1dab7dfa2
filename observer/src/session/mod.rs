//! Which streams make a connection, who is client and who is server, and what each said.
//!
//! Turns [`CaptureEvent`]s into [`Observed`] events: messages, noise
//! and gaps that belong to a numbered connection. Owns the processes' table, the pairing of
//! streams, and the giving up on streams that are no MCP. Must not judge: whether a call was
//! abandoned is `verdict`'s.
//!
//! What a stream carries is held until it is known to belong to a connection, and a connection is
//! held until both parties are known, a second at most. So an event may come out after others
//! that happened later, with the time at which it happened; within a direction nothing is
//! reordered.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod binding;
mod connection;
mod content;
mod ending;
mod ends;
mod event;
mod matching;
mod method;
mod pairing;
mod processes;
mod settings;
mod streams;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use connection::{ConnKey, Connection};
use content::Content;
use processes::{ProcId, Processes};
use streams::{Role, Stream};

use crate::capture::{
    CaptureEvent, Captured, End, GapReason, Joined, Pid, ProcessChange, ProcessEvent, StreamId,
    Timestamp,
};

pub use event::{
    ConnId, ConnectionChange, Event, Noise, NoiseKind, Observed, Party, Side, Transport,
};
pub use settings::{Settings, Visibility};

/// What a session puts out.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Something that happened.
    Observed(Observed),
    /// This stream is no MCP: the backend need not carry its content any more.
    GiveUp(StreamId),
    /// This stream is over, or nobody waits for it: the backend may forget what it knows of it.
    /// Should it speak again after all, it is a new stream.
    Forget(StreamId),
}

/// The connections of a scope, sans I/O: feed it with [`handle_event`](Self::handle_event), take
/// what there is with [`poll_output`](Self::poll_output), and call
/// [`handle_timeout`](Self::handle_timeout) when [`poll_timeout`](Self::poll_timeout) is due.
#[derive(Debug)]
pub struct Session {
    settings: Settings,
    processes: Processes,
    streams: HashMap<StreamId, Stream>,
    /// The streams at whose ends a process is.
    streams_of: HashMap<ProcId, BTreeSet<StreamId>>,
    connections: BTreeMap<ConnKey, Connection>,
    /// Those that lack one of their streams.
    half: BTreeSet<ConnKey>,
    /// Connections so far, and numbers given so far.
    created: u64,
    opened: u32,
    timers: BTreeSet<(Timestamp, Timer)>,
    /// What all undecided streams hold, in bytes.
    held: usize,
    out: VecDeque<Output>,
}

/// What is to be done at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// Open the connection with what is known of it.
    Open(ConnKey),
    /// Find a partner for the stream by weaker evidence.
    Pair(StreamId),
    /// A process at an end of the stream has died: see who is left.
    Settle(StreamId),
}

impl Session {
    /// A session that has seen nothing yet.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            processes: Processes::default(),
            streams: HashMap::new(),
            streams_of: HashMap::new(),
            connections: BTreeMap::new(),
            half: BTreeSet::new(),
            created: 0,
            opened: 0,
            timers: BTreeSet::new(),
            held: 0,
            out: VecDeque::new(),
        }
    }

    /// Takes in what a backend saw.
    pub fn handle_event(&mut self, captured: Captured) {
        let Captured { at, event } = captured;
        match event {
            CaptureEvent::Process(event) => self.handle_process(at, event),
            CaptureEvent::Holds {
                stream,
                pid,
                end,
                fd,
                joined,
            } => {
                self.handle_hold(at, stream, pid, end, fd, joined);
            }
            CaptureEvent::Chunk {
                stream,
                offset,
                bytes,
                writer,
                fd,
            } => {
                let news = self.note_use(at, stream, writer, End::Writer, fd);
                self.feed(at, stream, |stream| stream.framer.push(offset, bytes));
                if news {
                    self.ends_changed(at, stream);
                }
            }
            CaptureEvent::Read {
                stream,
                end,
                reader,
                fd,
            } => {
                let news = self.note_use(at, stream, reader, End::Reader, fd);
                self.handle_read(at, stream, end);
                if news {
                    self.ends_changed(at, stream);
                }
            }
            CaptureEvent::Gap {
                stream,
                offset,
                bytes,
                reason,
            } => {
                self.feed(at, stream, |stream| {
                    stream.framer.gap(offset, bytes, reason);
                });
            }
            CaptureEvent::Eof { stream } => self.end_stream(at, stream),
            CaptureEvent::Refused { stream, writer } => {
                let news = self.note_use(at, stream, writer, End::Writer, None);
                self.refuse(at, stream);
                if news {
                    self.ends_changed(at, stream);
                }
            }
            CaptureEvent::Interrupt { pid, kind, sender } => {
                self.pass(at, pid, Event::Interrupt { pid, kind, sender });
            }
            CaptureEvent::NetSend { pid, bytes, peer } => {
                self.pass(at, pid, Event::NetSend { pid, bytes, peer });
            }
            CaptureEvent::Loss(loss) => self.emit(at, Event::Loss(loss)),
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due next.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        self.timers.first().map(|&(at, _)| at)
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        while let Some(&(at, timer)) = self.timers.first().filter(|&&(at, _)| at <= now) {
            self.timers.remove(&(at, timer));
            match timer {
                Timer::Open(key) => self.open(at, key),
                Timer::Pair(id) => self.pair_late(at, id),
                Timer::Settle(id) => self.settle(at, id),
            }
        }
    }

    /// What there is to say next.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// The capture ends: what is held comes out as far as it belongs to a connection, and deaths
    /// are concluded from at once.
    pub fn finish(&mut self, now: Timestamp) {
        let waiting = std::mem::take(&mut self.timers);
        for (_, timer) in &waiting {
            if let &Timer::Pair(id) = timer {
                self.pair_late(now, id);
            }
        }
        let held: Vec<ConnKey> = self.connections.keys().copied().collect();
        for key in held {
            self.open(now, key);
        }
        for (_, timer) in waiting {
            if let Timer::Settle(id) = timer {
                self.settle(now, id);
            }
        }
        self.timers.clear();
    }

    fn handle_process(&mut self, at: Timestamp, event: ProcessEvent) {
        let ProcessEvent { pid, change } = event;
        let shown = self.processes.is_shown(pid);
        let id = self.processes.change(pid, change.clone());
        let passed = match change {
            ProcessChange::Seen {
                ppid,
                exe,
                argv,
                start,
            } => {
                if self.settings.processes == Visibility::All {
                    self.processes.show(id);
                    self.emit(
                        at,
                        Event::ProcessSeen {
                            pid,
                            ppid,
                            exe,
                            argv,
                            start,
                        },
                    );
                }
                return;
            }
            ProcessChange::Exec { exe, argv } => Event::ProcessExec { pid, exe, argv },
            ProcessChange::Exit { fate } => {
                self.buried(at, id);
                Event::ProcessExit { pid, fate }
            }
        };
        if shown || self.settings.processes == Visibility::All {
            self.emit(at, passed);
        }
    }

    fn handle_hold(
        &mut self,
        at: Timestamp,
        stream: StreamId,
        pid: Pid,
        end: End,
        fd: i32,
        joined: Joined,
    ) {
        let process = self.processes.at(pid);
        let entry = self.stream(at, stream);
        let news = match end {
            End::Writer => entry.writers.note_hold(process, fd),
            End::Reader => entry.readers.note_hold(process, fd),
        };
        let joined_now = joined == Joined::Middle && entry.framer.is_fresh();
        self.index(process, stream);
        if joined_now {
            self.feed(at, stream, |stream| {
                stream.framer.gap(0, None, GapReason::MidStream);
            });
        }
        if news {
            self.ends_changed(at, stream);
        }
    }

    fn handle_read(&mut self, at: Timestamp, id: StreamId, end: u64) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.delivery.read(end);
            self.tell_delivery(at, id);
        }
    }

    /// Says how far a connection's stream was read, if that is news.
    fn tell_delivery(&mut self, at: Timestamp, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(&id)
            && let Role::Bound { conn, from } = stream.role
            && let Some(connection) = self.connections.get_mut(&conn)
            && let Some(offset) = stream.delivery.tell(stream.framer.position())
        {
            connection.put(from, at, Content::Delivered { offset }, &mut self.out);
        }
    }

    /// A process uses an end of a stream. Whether that is news.
    fn note_use(
        &mut self,
        at: Timestamp,
        stream: StreamId,
        pid: Pid,
        end: End,
        fd: Option<i32>,
    ) -> bool {
        let process = self.processes.at(pid);
        let entry = self.stream(at, stream);
        let news = match end {
            End::Writer => entry.writers.note_use(process, fd),
            End::Reader => entry.readers.note_use(process, fd),
        };
        if news {
            self.index(process, stream);
        }
        news
    }

    fn index(&mut self, process: ProcId, stream: StreamId) {
        self.streams_of.entry(process).or_default().insert(stream);
    }

    fn stream(&mut self, at: Timestamp, id: StreamId) -> &mut Stream {
        if !self.streams.contains_key(&id) {
            self.make_room();
        }
        let max_frame = self.settings.max_frame;
        let stream = self
            .streams
            .entry(id)
            .or_insert_with(|| Stream::new(id, max_frame, at));
        stream.touched = at;
        stream
    }

    /// Gives a stream input, and passes on or holds what comes of it.
    fn feed(&mut self, at: Timestamp, id: StreamId, input: impl FnOnce(&mut Stream)) {
        let stream = self.stream(at, id);
        if matches!(stream.role, Role::GivenUp) {
            return;
        }
        let before = stream.weight();
        input(stream);
        stream.over = false;
        self.drain(at, id);
        self.weigh(at, id, before);
    }

    fn drain(&mut self, at: Timestamp, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        while let Some(piece) = stream.framer.poll() {
            let content = Content::read(piece);
            match &mut stream.role {
                Role::Undecided(undecided) => undecided.hold(at, content),
                Role::Bound { conn, from } => {
                    stream.delivery.pass(&content);
                    if let Some(connection) = self.connections.get_mut(conn) {
                        connection.put(*from, at, content, &mut self.out);
                    }
                }
                Role::GivenUp => {}
            }
        }
        self.tell_delivery(at, id);
    }

    /// Passes on or holds one thing that happened to a stream.
    fn put(&mut self, at: Timestamp, id: StreamId, content: Content) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        match &mut stream.role {
            Role::Undecided(undecided) => {
                self.held += content.weight();
                undecided.hold(at, content);
            }
            Role::Bound { conn, from } => {
                if let Some(connection) = self.connections.get_mut(conn) {
                    connection.put(*from, at, content, &mut self.out);
                }
            }
            Role::GivenUp => {}
        }
    }

    fn pass(&mut self, at: Timestamp, pid: Pid, event: Event) {
        if self.settings.processes == Visibility::All || self.processes.is_shown(pid) {
            self.emit(at, event);
        }
    }

    fn emit(&mut self, at: Timestamp, event: Event) {
        self.out.push_back(Output::Observed(Observed { at, event }));
    }
}
