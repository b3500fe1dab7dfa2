//! `observer watch --relay`: the records of all relays that send them, together.
//!
//! Listens on a socket that only this user's processes can reach, and gives what the relays have
//! observed as one stream: connections numbered anew, times on one clock. Needs no privileges and
//! no backend.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use thiserror::Error;
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::place::{self, PlaceError};
use crate::capture::{Clock, GapReason, Timestamp};
use crate::cli::{Exit, Failure, Outputs, SettingsArgs, say};
use crate::pipeline::Pipeline;
use crate::record::{Backend, Header, Payload, Reader, Record, SCHEMA, Scope};
use crate::session::{ConnId, ConnectionChange, Event, Observed, Side};
use crate::verdict;

/// So many batches wait to be taken; then the relays' sockets fill, and they pass records over.
const BATCHES: usize = 64;

/// So much is read from a relay at once, in bytes.
const BLOCK: usize = 256 << 10;

/// A longer line is damage: frames end at 64 MiB.
const LONGEST_LINE: usize = 80 << 20;

/// How far the pipeline's timers stay behind the clock: records are under way for about as long.
const LAG: Duration = Duration::from_millis(500);

/// Why nothing can be collected.
#[derive(Debug, Error)]
pub enum CollectError {
    /// The socket's place will not do.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// Somebody collects there already.
    #[error("another observer listens at {}", .path.display())]
    Taken {
        /// The socket.
        path: PathBuf,
    },
    /// The system refuses.
    #[error("cannot {operation} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        operation: &'static str,
        /// With which socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Listens for relays. Must live within a tokio runtime; dropping it ends it all.
#[derive(Debug)]
pub struct Collector {
    path: PathBuf,
    batches: mpsc::Receiver<Vec<Observed>>,
    _tasks: JoinSet<()>,
}

impl Collector {
    /// Listens at `socket`, or where relays look for it by default. Times count from `clock`,
    /// which must have begun a moment ago.
    ///
    /// # Errors
    /// Where the socket cannot be made, others could reach it, or it is in use.
    pub fn bind(socket: Option<PathBuf>, clock: Clock) -> Result<Self, CollectError> {
        let path = socket.unwrap_or_else(place::default_socket);
        if let Some(folder) = path.parent() {
            place::make_folder(folder)?;
            place::check_private(folder)?;
        }
        let failed = |operation, source| CollectError::Io {
            operation,
            path: path.clone(),
            source,
        };
        if std::os::unix::net::UnixStream::connect(&path).is_ok() {
            return Err(CollectError::Taken { path });
        }
        // What an earlier collector left.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed("remove", error));
            }
            _ => {}
        }
        let listener = UnixListener::bind(&path).map_err(|error| failed("listen at", error))?;
        let (sender, batches) = mpsc::channel(BATCHES);
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, sender, clock));
        Ok(Self {
            path,
            batches,
            _tasks: tasks,
        })
    }

    /// Where it listens.
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// What was observed next; `None` when no relay can come any more. Nothing is lost where the
    /// future is dropped.
    pub async fn next(&mut self) -> Option<Vec<Observed>> {
        self.batches.recv().await
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        // A socket without a listener does no harm.
        let _ = fs::remove_file(&self.path);
    }
}

async fn accept(listener: UnixListener, sender: mpsc::Sender<Vec<Observed>>, clock: Clock) {
    let mut relays = JoinSet::new();
    let numbers = Arc::new(AtomicU32::new(1));
    let began = jiff::Timestamp::now().as_nanosecond() - i128::from(clock.now().as_nanos());
    loop {
        // A connection that was gone before it was accepted; or too many, for the moment.
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        if is_own(&stream) {
            let relay = Incoming {
                numbers: Arc::clone(&numbers),
                reader: Reader::new(),
                clock,
                began,
                shift: 0,
                latest: Timestamp::ZERO,
                conns: BTreeMap::new(),
            };
            relays.spawn(relay.collect(stream, sender.clone()));
        }
        while relays.try_join_next().is_some() {}
    }
}

/// Whether a process of this user, or of root, is at the other end.
fn is_own(stream: &UnixStream) -> bool {
    let own = nix::unistd::geteuid().as_raw();
    stream
        .peer_cred()
        .is_ok_and(|peer| [0, own].contains(&peer.uid()))
}

/// One relay's records, as they come in.
struct Incoming {
    numbers: Arc<AtomicU32>,
    reader: Reader,
    clock: Clock,
    /// When the collector's clock began, in nanoseconds since the epoch.
    began: i128,
    /// What has to be added to the relay's times, in nanoseconds.
    shift: i128,
    latest: Timestamp,
    /// The relay's numbers of its open connections, and ours.
    conns: BTreeMap<ConnId, ConnId>,
}

impl Incoming {
    async fn collect(mut self, stream: UnixStream, sender: mpsc::Sender<Vec<Observed>>) {
        let mut buffer = Vec::new();
        let mut block = vec![0; BLOCK];
        while let Some(size @ 1..) = read(&stream, &mut block).await {
            // Lines end in what is new.
            let searched = buffer.len();
            buffer.extend_from_slice(&block[..size]);
            let Some(last) = memchr::memrchr(b'\n', &buffer[searched..]) else {
                if buffer.len() > LONGEST_LINE {
                    break;
                }
                continue;
            };
            let rest = buffer.split_off(searched + last + 1);
            let lines = std::mem::replace(&mut buffer, rest);
            let Some(batch) = self.handle_lines(&lines) else {
                break;
            };
            if !batch.is_empty() && sender.send(batch).await.is_err() {
                return;
            }
        }
        let _ = sender.send(self.end()).await;
    }

    /// What these lines say; `None` where they are no log.
    fn handle_lines(&mut self, lines: &[u8]) -> Option<Vec<Observed>> {
        let mut batch = Vec::new();
        for line in lines
            .strip_suffix(b"\n")
            .unwrap_or(lines)
            .split(|byte| *byte == b'\n')
        {
            match self.reader.handle_line(line) {
                Ok(Some(Record::Header(header))) => self.begin(&header),
                Ok(record) => batch.extend(
                    record
                        .and_then(Record::into_observed)
                        .map(|one| self.place(one)),
                ),
                Err(error) => {
                    say(format_args!("a relay's records cannot be read: {error}"));
                    return None;
                }
            }
        }
        Some(batch)
    }

    fn begin(&mut self, header: &Header) {
        let started = header.started.parse::<jiff::Timestamp>();
        let started = started.map_or(self.began, jiff::Timestamp::as_nanosecond);
        self.shift = started - self.began;
    }

    /// The event, on our clock and under our numbers.
    fn place(&mut self, Observed { at, mut event }: Observed) -> Observed {
        let at = u64::try_from(i128::from(at.as_nanos()) + self.shift).unwrap_or(0);
        let at = Timestamp::from_nanos(at).min(self.clock.now());
        self.latest = self.latest.max(at);
        if let Some(conn) = conn_mut(&mut event) {
            let theirs = *conn;
            *conn = *self
                .conns
                .entry(theirs)
                .or_insert_with(|| ConnId(self.numbers.fetch_add(1, Ordering::Relaxed)));
            if let Event::Connection {
                change: ConnectionChange::Close,
                ..
            } = event
            {
                self.conns.remove(&theirs);
            }
        }
        Observed { at, event }
    }

    /// A relay that ends without closing its connections was killed, or passed records over: what
    /// became of them is not known.
    fn end(self) -> Vec<Observed> {
        let at = self.clock.now().max(self.latest);
        let lost = |conn: ConnId, from: Side| Event::Gap {
            conn,
            from,
            offset: 0,
            bytes: None,
            reason: GapReason::MidStream,
        };
        let close = |conn| Event::Connection {
            conn,
            change: ConnectionChange::Close,
        };
        let endings = self.conns.into_values().flat_map(|conn| {
            [
                lost(conn, Side::Client),
                lost(conn, Side::Server),
                close(conn),
            ]
        });
        endings.map(|event| Observed { at, event }).collect()
    }
}

/// Reads once; `None` where there is nothing more.
async fn read(stream: &UnixStream, block: &mut [u8]) -> Option<usize> {
    loop {
        stream.readable().await.ok()?;
        match stream.try_read(block) {
            Ok(size) => return Some(size),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
    }
}

fn conn_mut(event: &mut Event) -> Option<&mut ConnId> {
    match event {
        Event::Connection { conn, .. }
        | Event::Message { conn, .. }
        | Event::Gap { conn, .. }
        | Event::Eof { conn, .. }
        | Event::Delivered { conn, .. }
        | Event::Refused { conn, .. } => Some(conn),
        Event::Noise(noise) => Some(&mut noise.conn),
        Event::ProcessSeen { .. }
        | Event::ProcessExec { .. }
        | Event::ProcessExit { .. }
        | Event::Interrupt { .. }
        | Event::NetSend { .. }
        | Event::Suspended { .. }
        | Event::Loss(_) => None,
    }
}

/// All of `observer watch --relay`, until a signal ends it: judges what the relays at `socket`
/// send, and gives it to `outputs`.
///
/// # Errors
/// Where the socket cannot be made.
pub fn watch(
    socket: Option<PathBuf>,
    mut outputs: Outputs,
    settings: &SettingsArgs,
) -> Result<Exit, Failure> {
    let failed =
        |error: io::Error| Failure::new(Exit::Failed, format_args!("cannot start: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    let settings = settings.apply(verdict::Settings::default());
    runtime.block_on(async {
        let clock = Clock::start();
        let mut collector = Collector::bind(socket, clock).map_err(unbound)?;
        outputs.begin(header(settings.clone()));
        outputs.flush();
        say(format_args!(
            "listening at {} for relays started with --to",
            collector.path().display()
        ));
        let mut pipeline = Pipeline::new(crate::session::Settings::default(), settings);
        let mut ending = Ending::new().map_err(failed)?;
        loop {
            let past = clock.now() - LAG;
            let wait = pipeline
                .poll_timeout()
                .map_or(Duration::MAX, |due| due.since(past));
            tokio::select! {
                batch = collector.next() => {
                    for observed in batch.unwrap_or_default() {
                        pipeline.handle_observed(observed);
                    }
                    drain(&mut pipeline, &mut outputs);
                    outputs.flush_due(Instant::now());
                }
                () = tokio::time::sleep(wait.min(Duration::from_millis(200))) => {
                    if pipeline.poll_timeout().is_some_and(|due| due <= past) {
                        pipeline.handle_timeout(past);
                        drain(&mut pipeline, &mut outputs);
                    }
                    outputs.flush();
                }
                () = ending.wait() => break,
            }
            if outputs.is_unread() {
                break;
            }
        }
        pipeline.finish(clock.now());
        drain(&mut pipeline, &mut outputs);
        outputs.flush();
        Ok(outputs.exit())
    })
}

fn drain(pipeline: &mut Pipeline, outputs: &mut Outputs) {
    while let Some(output) = pipeline.poll_output() {
        outputs.handle_output(&output);
    }
}

fn unbound(error: CollectError) -> Failure {
    let remedy = match &error {
        CollectError::Taken { .. } => "end that one, or give each a --relay SOCKET of its own",
        CollectError::Place(PlaceError::Open { .. }) => {
            "chmod 700 it, or give --relay a SOCKET elsewhere"
        }
        _ => "give --relay a SOCKET elsewhere",
    };
    Failure::new(Exit::Failed, error).with_remedy(remedy)
}

fn header(settings: verdict::Settings) -> Header {
    Header {
        t: Timestamp::ZERO,
        schema: SCHEMA.into(),
        observer: env!("CARGO_PKG_VERSION").into(),
        started: jiff::Timestamp::now().to_string(),
        backend: Backend::Relay,
        hooks: Vec::new(),
        platform: Some(format!(
            "{}-{}",
            std::env::consts::OS,
            std::env::consts::ARCH
        )),
        kernel: nix::sys::utsname::uname()
            .ok()
            .map(|name| name.release().to_string_lossy().into_owned()),
        payload: Payload::Full,
        scope: Some(Scope::Watch),
        settings: Some(settings),
    }
}

/// The signals that end an observation.
struct Ending([tokio::signal::unix::Signal; 3]);

impl Ending {
    fn new() -> io::Result<Self> {
        Ok(Self([
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        ]))
    }

    async fn wait(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
