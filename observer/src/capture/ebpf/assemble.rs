//! From the probe's records to capture events. Pure.
//!
//! Streams are the matter of [`super::streams`]; here are processes, signals, keys and the
//! network. What was typed never gets past this file: it is reduced to Esc and Ctrl-C at once.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bytes::Bytes;
use observer_ebpf::wire::{Header, NetSend, Process, Signal, Transfer};

use crate::capture::{
    CaptureEvent, Captured, Clock, Fate, InterruptKind, KeyParser, Pid, ProcessChange,
    ProcessEvent, Timestamp,
};

use super::decode::{Fault, Record, arguments, decode};
use super::streams::Streams;

/// How many ended processes are remembered, to drop what the kernel may report twice.
const REMEMBERED_EXITS: usize = 64;

/// `/proc` counts start times in ticks of this many nanoseconds (`USER_HZ` is 100).
const NANOS_PER_TICK: u64 = 10_000_000;

/// What the records have said so far.
#[derive(Debug)]
pub struct Assembler {
    clock: Clock,
    pub(super) streams: Streams,
    /// One parser for each process that reads a terminal.
    keys: HashMap<(Pid, u64), KeyParser>,
    /// The last processes that ended, by their pid and start.
    exits: VecDeque<(Pid, u64)>,
}

impl Assembler {
    /// Nothing has been said yet; times will count from the clock's zero.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            streams: Streams::default(),
            keys: HashMap::new(),
            exits: VecDeque::new(),
        }
    }

    /// Takes in one record as the ring holds it, and appends the events that follow from it.
    ///
    /// # Errors
    ///
    /// Where the bytes are no record of this version; nothing is changed then.
    pub fn handle_bytes(&mut self, bytes: &[u8], out: &mut Vec<Captured>) -> Result<(), Fault> {
        self.handle_record(&decode(bytes)?, out);
        Ok(())
    }

    fn handle_record(&mut self, record: &Record<'_>, out: &mut Vec<Captured>) {
        match record {
            Record::Content(transfer, bytes) => {
                self.written(transfer, Some(Bytes::copy_from_slice(bytes)), out);
            }
            Record::Unseen(transfer) => self.written(transfer, None, out),
            Record::Read(transfer) => {
                if let Some(at) = self.wanted(transfer) {
                    self.streams.read(at, transfer, out);
                }
            }
            Record::Eof(transfer) => {
                if let Some(at) = self.wanted(transfer) {
                    self.streams.ended(at, transfer, out);
                }
            }
            Record::Refused(transfer) => {
                if let Some(at) = self.wanted(transfer) {
                    self.streams.refused(at, transfer, out);
                }
            }
            Record::Keys(transfer, bytes) => self.typed(transfer, bytes, out),
            Record::Fork(process) => self.forked(process, out),
            Record::Exec {
                header,
                pid,
                path,
                argv,
            } => self.executed(*header, *pid, path, argv, out),
            Record::Exit(process) => self.exited(process, out),
            Record::Signal(signal) => self.signalled(signal, out),
            Record::NetSend(sent) => self.sent(sent, out),
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let keys = self.keys.values().filter_map(KeyParser::deadline).min();
        self.streams.poll_timeout().into_iter().chain(keys).min()
    }

    /// Decides what has waited long enough.
    pub fn handle_timeout(&mut self, now: Timestamp, out: &mut Vec<Captured>) {
        self.streams.handle_timeout(now, out);
        let mut found = Vec::new();
        for (&(pid, _), parser) in &mut self.keys {
            parser.poll(now, &mut found);
            push_keys(pid, &mut found, out);
        }
    }

    /// When a record about a stream was made; `None` where nobody wants it.
    fn wanted(&self, transfer: &Transfer) -> Option<Timestamp> {
        let wanted = !self.streams.has_given_up(transfer.stream);
        wanted.then(|| self.clock.at(transfer.header.at))
    }

    fn written(&mut self, transfer: &Transfer, bytes: Option<Bytes>, out: &mut Vec<Captured>) {
        if let Some(at) = self.wanted(transfer) {
            self.streams.written(at, transfer, bytes, out);
        }
    }

    fn typed(&mut self, transfer: &Transfer, bytes: &[u8], out: &mut Vec<Captured>) {
        let pid = Pid(transfer.pid);
        let parser = self.keys.entry((pid, transfer.stream.object)).or_default();
        let mut found = Vec::new();
        parser.push(self.clock.at(transfer.header.at), bytes, &mut found);
        push_keys(pid, &mut found, out);
    }

    fn forked(&self, process: &Process, out: &mut Vec<Captured>) {
        let change = ProcessChange::Seen {
            ppid: Some(Pid(process.ppid)),
            exe: None,
            argv: Vec::new(),
            start: Some(ticks(process.start)),
        };
        out.push(self.process(process.header, process.pid, change));
    }

    fn executed(
        &self,
        header: Header,
        pid: u32,
        path: &[u8],
        argv: &[u8],
        out: &mut Vec<Captured>,
    ) {
        let exe = (!path.is_empty()).then(|| String::from_utf8_lossy(path).into_owned());
        let change = ProcessChange::Exec {
            exe,
            argv: arguments(argv),
        };
        out.push(self.process(header, pid, change));
    }

    fn exited(&mut self, process: &Process, out: &mut Vec<Captured>) {
        let pid = Pid(process.pid);
        if self.exits.contains(&(pid, process.start)) {
            return;
        }
        if self.exits.len() == REMEMBERED_EXITS {
            self.exits.pop_front();
        }
        self.exits.push_back((pid, process.start));
        self.stop_reading_keys(pid, self.clock.at(process.header.at), out);
        let change = ProcessChange::Exit {
            fate: fate(process.status),
        };
        out.push(self.process(process.header, process.pid, change));
    }

    /// A process that has ended types no more: an ESC that it read last was the key.
    fn stop_reading_keys(&mut self, pid: Pid, at: Timestamp, out: &mut Vec<Captured>) {
        let mut found = Vec::new();
        self.keys.retain(|&(reader, _), parser| {
            if reader == pid {
                let deadline = parser.deadline().unwrap_or(at);
                parser.poll(deadline, &mut found);
            }
            reader != pid
        });
        push_keys(pid, &mut found, out);
    }

    fn process(&self, header: Header, pid: u32, change: ProcessChange) -> Captured {
        let event = CaptureEvent::Process(ProcessEvent {
            pid: Pid(pid),
            change,
        });
        Captured {
            at: self.clock.at(header.at),
            event,
        }
    }

    fn signalled(&self, signal: &Signal, out: &mut Vec<Captured>) {
        let kind = match signal.signal {
            1 => InterruptKind::Sighup,
            2 => InterruptKind::Sigint,
            9 => InterruptKind::Sigkill,
            15 => InterruptKind::Sigterm,
            _ => return,
        };
        let sender = (signal.sender != 0).then_some(Pid(signal.sender));
        let event = CaptureEvent::Interrupt {
            pid: Pid(signal.pid),
            kind,
            sender,
        };
        out.push(Captured {
            at: self.clock.at(signal.header.at),
            event,
        });
    }

    fn sent(&self, sent: &NetSend, out: &mut Vec<Captured>) {
        let event = CaptureEvent::NetSend {
            pid: Pid(sent.pid),
            bytes: sent.bytes,
            peer: peer(sent),
        };
        out.push(Captured {
            at: self.clock.at(sent.header.at),
            event,
        });
    }
}

fn push_keys(pid: Pid, found: &mut Vec<(Timestamp, InterruptKind)>, out: &mut Vec<Captured>) {
    out.extend(found.drain(..).map(|(at, kind)| Captured {
        at,
        event: CaptureEvent::Interrupt {
            pid,
            kind,
            sender: None,
        },
    }));
}

/// A status as `wait(2)` encodes it.
fn fate(status: u32) -> Option<Fate> {
    let signal = status & 0x7f;
    if signal != 0 {
        return Some(Fate::Signal(signal.cast_signed()));
    }
    Some(Fate::Code(((status >> 8) & 0xff).cast_signed()))
}

/// A start time, cut to what `/proc/PID/stat` shows, so that both sources agree.
const fn ticks(start: u64) -> u64 {
    start / NANOS_PER_TICK * NANOS_PER_TICK
}

fn peer(sent: &NetSend) -> Option<SocketAddr> {
    let port = u16::from_be_bytes(sent.port);
    if port == 0 {
        return None;
    }
    let ip = if i32::from(sent.family) == libc::AF_INET6 {
        IpAddr::V6(Ipv6Addr::from(sent.address)).to_canonical()
    } else {
        let [a, b, c, d, ..] = sent.address;
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use observer_ebpf::wire::{ABI, StreamKey, kind, stream_kind};
    use zerocopy::FromZeros;

    use super::*;

    fn header(kind: u16, at: u64) -> Header {
        Header {
            abi: ABI,
            kind,
            len: 0,
            at,
        }
    }

    fn events(records: Vec<Record<'_>>) -> Vec<CaptureEvent> {
        let mut assembler = Assembler::new(Clock::since(0));
        let mut out = Vec::new();
        for record in records {
            assembler.handle_record(&record, &mut out);
        }
        out.into_iter().map(|captured| captured.event).collect()
    }

    fn exit(pid: u32, start: u64, status: u32) -> Record<'static> {
        Record::Exit(Process {
            header: header(kind::EXIT, 1),
            pid,
            ppid: 0,
            start,
            status,
            padding: 0,
        })
    }

    fn keys(at: u64, bytes: &[u8]) -> Record<'_> {
        let mut transfer = Transfer::new_zeroed();
        transfer.header = header(kind::KEYS, at);
        transfer.pid = 4;
        transfer.stream = StreamKey {
            object: 136 << 20,
            scope: 0,
            kind: stream_kind::TERMINAL,
        };
        Record::Keys(transfer, bytes)
    }

    #[test]
    fn a_status_is_a_code_or_a_signal() {
        assert_eq!(fate(0), Some(Fate::Code(0)));
        assert_eq!(fate(7 << 8), Some(Fate::Code(7)));
        assert_eq!(fate(9), Some(Fate::Signal(9)));
        assert_eq!(fate(0x80 | 11), Some(Fate::Signal(11)), "with a core dump");
    }

    #[test]
    fn an_exit_that_is_reported_twice_counts_once() {
        let all = events(vec![exit(4, 10, 0), exit(4, 10, 0), exit(4, 99, 0)]);
        assert_eq!(
            all.len(),
            2,
            "a later process of the same pid has another start"
        );
    }

    #[test]
    fn typing_becomes_keys_and_nothing_else() {
        let interrupt = |kind| CaptureEvent::Interrupt {
            pid: Pid(4),
            kind,
            sender: None,
        };
        let all = events(vec![
            keys(1, b"secret\r"),
            keys(2, b"\x1b[A"),
            keys(3, b"\x03"),
        ]);
        assert_eq!(all, [interrupt(InterruptKind::KeyCtrlC)]);
    }

    #[test]
    fn an_escape_that_was_read_last_counts_when_its_reader_ends() {
        let all = events(vec![keys(1, b"\x1b"), exit(4, 10, 0)]);
        assert!(
            matches!(
                all.as_slice(),
                [
                    CaptureEvent::Interrupt {
                        kind: InterruptKind::KeyEsc,
                        ..
                    },
                    CaptureEvent::Process(_)
                ]
            ),
            "{all:?}"
        );
    }

    #[test]
    fn peers_have_the_family_of_their_address() {
        let mut sent = NetSend::new_zeroed();
        sent.family = 2;
        sent.port = 443u16.to_be_bytes();
        sent.address[..4].copy_from_slice(&[192, 0, 2, 1]);
        assert_eq!(peer(&sent).unwrap().to_string(), "192.0.2.1:443");
        sent.family = 10;
        sent.address = "2001:db8::1".parse::<Ipv6Addr>().unwrap().octets();
        assert_eq!(peer(&sent).unwrap().to_string(), "[2001:db8::1]:443");
        sent.address = "::ffff:192.0.2.1".parse::<Ipv6Addr>().unwrap().octets();
        assert_eq!(peer(&sent).unwrap().to_string(), "192.0.2.1:443");
        sent.port = [0; 2];
        assert_eq!(peer(&sent), None, "unknown");
    }

    #[test]
    fn start_times_are_cut_to_ticks() {
        assert_eq!(ticks(12_345_678_901), 12_340_000_000);
    }
}
