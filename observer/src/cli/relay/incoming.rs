//! One relay's records as they come in over a socket: read back, put on the collector's clock and
//! under its numbers, and closed where the relay was killed.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::net::UnixStream;
use tokio::sync::mpsc;

use crate::capture::{Clock, GapReason, Timestamp};
use crate::cli::say;
use crate::record::{Reader, Record};
use crate::session::{ConnId, ConnectionChange, Event, Observed, Side};

/// So much is read from a relay at once, in bytes.
const BLOCK: usize = 256 << 10;

/// A longer line is damage: frames end at 64 MiB.
const LONGEST_LINE: usize = 80 << 20;

/// What all relays of a collector share.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    numbers: Arc<AtomicU32>,
    clock: Clock,
}

impl Origin {
    /// Times count from `clock`, connections from 1.
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            numbers: Arc::new(AtomicU32::new(1)),
            clock,
        }
    }
}

/// One relay's records, as they come in.
pub(super) struct Incoming {
    origin: Origin,
    reader: Reader,
    /// What has to be added to the relay's times, in nanoseconds; it says what time it is first.
    shift: Option<i128>,
    latest: Timestamp,
    /// The relay's numbers of its open connections, and ours.
    conns: BTreeMap<ConnId, ConnId>,
}

impl Incoming {
    pub(super) fn new(origin: Origin) -> Self {
        Self {
            origin,
            reader: Reader::new(),
            shift: None,
            latest: Timestamp::ZERO,
            conns: BTreeMap::new(),
        }
    }

    /// Reads to the end, and gives `sender` what was observed.
    pub(super) async fn collect(mut self, stream: UnixStream, sender: mpsc::Sender<Vec<Observed>>) {
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
                Ok(record) => {
                    let observed = record.and_then(Record::into_observed);
                    batch.extend(observed.and_then(|observed| self.place(observed)));
                }
                Err(error) => {
                    say(format_args!("a relay's records cannot be read: {error}"));
                    return None;
                }
            }
        }
        Some(batch)
    }

    /// The event, on our clock and under our numbers; `None` where it only tells the time.
    fn place(&mut self, Observed { at, mut event }: Observed) -> Option<Observed> {
        let (now, theirs) = (self.origin.clock.now(), i128::from(at.as_nanos()));
        let shift = i128::from(now.as_nanos()) - theirs;
        if matches!(event, Event::Suspended { nanos: 0 }) {
            self.shift = Some(shift);
            return None;
        }
        let at = u64::try_from(theirs + *self.shift.get_or_insert(shift)).unwrap_or(0);
        let at = Timestamp::from_nanos(at).min(now);
        self.latest = self.latest.max(at);
        if let Some(conn) = conn_mut(&mut event) {
            let theirs = *conn;
            *conn = *self
                .conns
                .entry(theirs)
                .or_insert_with(|| ConnId(self.origin.numbers.fetch_add(1, Ordering::Relaxed)));
            if let Event::Connection {
                change: ConnectionChange::Close,
                ..
            } = event
            {
                self.conns.remove(&theirs);
            }
        }
        Some(Observed { at, event })
    }

    /// A relay that ends without closing its connections was killed, or passed records over: what
    /// became of them is not known.
    fn end(self) -> Vec<Observed> {
        let at = self.origin.clock.now().max(self.latest);
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
