//! A relay's records on their way to `observer watch --relay`, over a Unix socket.
//!
//! Never holds up the relay: where nobody listens, or does not keep up, records are passed over.
//! Whoever listens later is told what is needed to understand the rest (the header, the processes,
//! the connections) and, by a gap in each direction, that something was before.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::mem;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::place;
use crate::capture::{GapReason, Timestamp};
use crate::cli::say;
use crate::record::{Header, Record};
use crate::session::{ConnId, ConnectionChange, Event, Observed, Side};

/// So much may wait for a listener that does not keep up, in bytes.
const MOST: usize = 16 << 20;

/// How often a listener is looked for.
const RETRY: Duration = Duration::from_secs(1);

/// A listener that takes nothing for so long is given up.
const STUCK: Duration = Duration::from_secs(5);

/// So long may the last records take.
const LAST: Duration = Duration::from_secs(1);

/// Where the records go in.
pub(super) struct Sender {
    shared: Arc<Shared>,
    preamble: Preamble,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    link: Link,
    lines: VecDeque<Vec<u8>>,
    weight: usize,
    ended: bool,
    idle: bool,
}

/// How things stand with a listener.
#[derive(Default, PartialEq, Eq)]
enum Link {
    /// None is there.
    #[default]
    Down,
    /// One has come, and has been told nothing.
    New,
    /// One gets all records.
    Up,
}

/// What a late listener has to be told.
struct Preamble {
    header: Vec<u8>,
    /// The processes and connections.
    known: Vec<u8>,
    /// How many bytes went by in each direction.
    seen: BTreeMap<(ConnId, Side), u64>,
}

impl Sender {
    /// Looks for a listener from now on.
    pub(super) fn start(socket: PathBuf, header: &Header) -> Self {
        let shared = Arc::<Shared>::default();
        let preamble = Preamble::new(header);
        if let Some(folder) = socket.parent()
            && let Err(error @ place::PlaceError::Open { .. }) = place::check_private(folder)
        {
            say(format_args!(
                "{error}; nothing is sent to {}",
                socket.display()
            ));
            return Self { shared, preamble };
        }
        // The first try is made here, so that a listener that is there misses nothing.
        let first = connect(&socket).ok();
        if first.is_some() {
            shared.lock().link = Link::New;
        }
        let links = Arc::clone(&shared);
        let started = thread::Builder::new()
            .name("send".into())
            .spawn(move || links.run(&socket, first));
        if let Err(error) = started {
            say(format_args!(
                "cannot start a thread: {error}; nothing is sent"
            ));
        }
        Self { shared, preamble }
    }

    pub(super) fn handle_observed(&mut self, observed: &Observed) {
        let mut state = self.shared.lock();
        if state.link == Link::New {
            state.link = Link::Up;
            state.push(self.preamble.lines(observed.at));
        }
        if state.link == Link::Up {
            state.push(line(observed));
            self.shared.changed.notify_all();
        }
        drop(state);
        self.preamble.note(observed);
    }

    /// Waits a moment for the last records to be taken.
    pub(super) fn end(self) {
        let mut state = self.shared.lock();
        state.ended = true;
        self.shared.changed.notify_all();
        let busy =
            |state: &mut State| state.link == Link::Up && !(state.lines.is_empty() && state.idle);
        drop(self.shared.changed.wait_timeout_while(state, LAST, busy));
    }
}

impl State {
    fn push(&mut self, line: Vec<u8>) {
        self.weight += line.len();
        self.lines.push_back(line);
        if self.weight > MOST {
            self.down();
        }
    }

    fn down(&mut self) {
        self.link = Link::Down;
        self.lines = VecDeque::new();
        self.weight = 0;
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread's whole life.
    fn run(&self, socket: &Path, first: Option<UnixStream>) {
        let mut stream = first;
        loop {
            if let Some(stream) = stream.take().or_else(|| connect(socket).ok()) {
                let mut state = self.lock();
                if state.link == Link::Down {
                    state.link = Link::New;
                }
                drop(state);
                // An error is the listener's end.
                let _ = self.serve(stream);
                self.lock().down();
                self.changed.notify_all();
            }
            if self.lock().ended {
                return;
            }
            thread::sleep(RETRY);
        }
    }

    /// Until the listener has gone or falls behind, or all is said.
    fn serve(&self, mut stream: UnixStream) -> io::Result<()> {
        loop {
            let mut state = self.lock();
            while state.lines.is_empty() && !state.ended && state.link != Link::Down {
                state.idle = true;
                self.changed.notify_all();
                state = self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            state.idle = false;
            if state.link == Link::Down || state.lines.is_empty() {
                state.idle = true;
                return Ok(());
            }
            let lines = mem::take(&mut state.lines);
            state.weight = 0;
            drop(state);
            for line in lines {
                stream.write_all(&line)?;
            }
        }
    }
}

fn line(observed: &Observed) -> Vec<u8> {
    let mut line = Vec::new();
    Record::from(observed).write_line(&mut line);
    line
}

fn connect(socket: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(socket)?;
    stream.set_write_timeout(Some(STUCK))?;
    Ok(stream)
}

impl Preamble {
    fn new(header: &Header) -> Self {
        let mut line = Vec::new();
        Record::Header(Box::new(header.clone())).write_line(&mut line);
        Self {
            header: line,
            known: Vec::new(),
            seen: BTreeMap::new(),
        }
    }

    /// Keeps what a late listener needs.
    fn note(&mut self, observed: &Observed) {
        let end = |offset: Option<u64>, bytes: u64| offset.unwrap_or(0) + bytes;
        match &observed.event {
            Event::ProcessSeen { .. } | Event::ProcessExec { .. } | Event::ProcessExit { .. } => {
                self.known.extend(line(observed));
            }
            Event::Connection { change, .. } => {
                if matches!(change, ConnectionChange::Open { .. }) {
                    self.known.extend(line(observed));
                }
            }
            Event::Message {
                conn,
                from,
                offset,
                bytes,
                ..
            } => {
                self.seen.insert((*conn, *from), end(*offset, *bytes));
            }
            Event::Noise(noise) => {
                self.seen
                    .insert((noise.conn, noise.from), end(noise.offset, noise.bytes));
            }
            _ => {}
        }
    }

    /// What a listener is told at `now`: the time comes first, as its clock is another one. (The
    /// two `started` do not tell: the machine may have slept since, or its date been set.)
    fn lines(&self, now: Timestamp) -> Vec<u8> {
        let told = |event| line(&Observed { at: now, event });
        let mut lines = self.header.clone();
        lines.extend(told(Event::Suspended { nanos: 0 }));
        lines.extend(&self.known);
        for (&(conn, from), &bytes) in &self.seen {
            lines.extend(told(Event::Gap {
                conn,
                from,
                offset: 0,
                bytes: Some(bytes),
                reason: GapReason::MidStream,
            }));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::capture::Pid;
    use crate::jsonrpc::Frame;
    use crate::record::{Backend, Payload, SCHEMA};

    fn header() -> Header {
        Header {
            t: Timestamp::ZERO,
            schema: SCHEMA.into(),
            observer: String::new(),
            started: String::new(),
            backend: Backend::Relay,
            hooks: Vec::new(),
            platform: None,
            kernel: None,
            payload: Payload::Full,
            scope: None,
            settings: None,
            part: None,
        }
    }

    fn at(millis: u64, event: Event) -> Observed {
        Observed {
            at: Timestamp::ZERO + Duration::from_millis(millis),
            event,
        }
    }

    fn seen() -> Event {
        Event::ProcessSeen {
            pid: Pid(7),
            ppid: None,
            exe: None,
            argv: Vec::new(),
            start: None,
        }
    }

    fn message(offset: u64) -> Event {
        let frame = Frame::parse(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.into()).unwrap();
        Event::Message {
            conn: ConnId(1),
            from: Side::Client,
            offset: Some(offset),
            bytes: 41,
            frame,
        }
    }

    fn types(stream: UnixStream) -> Vec<String> {
        let word = |line: io::Result<String>| {
            let line: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
            line["type"].as_str().unwrap().to_owned()
        };
        BufReader::new(stream).lines().map(word).collect()
    }

    /// Beside the socket, the folder as `observer watch` makes it.
    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("observer");
        place::make_folder(&own).unwrap();
        (folder, own.join("relay.sock"))
    }

    #[test]
    fn a_listener_that_is_there_gets_everything() {
        let (_folder, socket) = folder();
        let listener = UnixListener::bind(&socket).unwrap();
        let mut sender = Sender::start(socket, &header());
        sender.handle_observed(&at(0, seen()));
        sender.handle_observed(&at(1, message(0)));
        sender.end();
        assert_eq!(
            types(listener.accept().unwrap().0),
            ["header", "clock", "process", "message"]
        );
    }

    #[test]
    fn a_late_listener_is_told_what_it_missed() {
        let (_folder, socket) = folder();
        let mut sender = Sender::start(socket.clone(), &header());
        sender.handle_observed(&at(0, seen()));
        sender.handle_observed(&at(1, message(0)));
        let listener = UnixListener::bind(&socket).unwrap();
        let (stream, _) = listener.accept().unwrap();
        let shared = Arc::clone(&sender.shared);
        while shared.lock().link != Link::New {
            thread::yield_now();
        }
        sender.handle_observed(&at(2, message(41)));
        sender.end();
        drop(listener);
        assert_eq!(
            types(stream),
            ["header", "clock", "process", "gap", "message"]
        );
    }

    #[test]
    fn nobody_is_waited_for() {
        let (_folder, socket) = folder();
        let mut sender = Sender::start(socket.clone(), &header());
        sender.handle_observed(&at(0, message(0)));
        sender.end();
        // One that never reads: more than any socket buffer holds.
        let method = "x".repeat(64 << 10);
        let text = format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#);
        let long = Event::Message {
            conn: ConnId(1),
            from: Side::Client,
            offset: None,
            bytes: text.len() as u64,
            frame: Frame::parse(text.into()).unwrap(),
        };
        let long = at(1, long);
        let _listener = UnixListener::bind(&socket).unwrap();
        let mut sender = Sender::start(socket, &header());
        for _ in 0..2 * MOST / line(&long).len() {
            sender.handle_observed(&long);
        }
        assert!(sender.shared.lock().weight <= MOST);
    }
}
