//! From a system call that has returned to events: which bytes moved, on which stream.
//!
//! Owns what the events are made of: descriptors, offsets, keys, and the way out. What a call
//! moved is decided by what it returned: short writes, `EAGAIN` and calls that a signal
//! interrupted (they return `ERESTARTSYS`, and are made again) need no thought.

use std::collections::HashMap;
use std::net::SocketAddr;

use bytes::Bytes;
use nix::errno::Errno;

use super::address::parse_address;
use super::descriptor::{Descriptors, Target, access};
use super::memory::{Memory, Spans};
use super::outbox::Outbox;
use super::streams::Streams;
use super::sys::Tid;
use super::syscall::{Args, Op, low};
use crate::capture::event::{CaptureEvent, GapReason, InterruptKind, Pid, StreamId, Timestamp};
use crate::capture::{Clock, KeyParser};

/// The longest chunk, in bytes.
const LONGEST_CHUNK: usize = 256 * 1024;

/// See the module.
#[derive(Debug)]
pub(super) struct Calls {
    pub(super) clock: Clock,
    pub(super) outbox: Outbox,
    pub(super) streams: Streams,
    pub(super) descriptors: Descriptors,
    /// What each process types, by its terminal's device.
    keys: HashMap<(Pid, u64), KeyParser>,
}

/// A call that a thread has entered, with its descriptors as they were then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    op: Op,
    args: Args,
    to: Option<(i32, Target)>,
    from: Option<(i32, Target)>,
}

/// Who makes a call: a thread that stands still.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller {
    pub(super) pid: Pid,
    pub(super) tid: Tid,
}

impl Calls {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            clock,
            outbox: Outbox::default(),
            streams: Streams::default(),
            descriptors: Descriptors::new(),
            keys: HashMap::new(),
        }
    }

    pub(super) fn emit(&mut self, event: CaptureEvent) {
        self.outbox.push(self.clock.now(), event);
    }

    /// A running process joins with what it has open: what waits there to be read was written
    /// before, and counts for nothing.
    pub(super) fn join(&mut self, pid: Pid) {
        for (stream, waiting) in self.descriptors.waiting(pid) {
            self.streams.join(stream, waiting);
        }
    }

    /// A thread is about to make a call. `None` where its return will not matter.
    pub(super) fn enter(&mut self, caller: Caller, op: Op, args: Args) -> Option<Pending> {
        if op == Op::Socketpair {
            return is_stream_pair(&args).then_some(Pending {
                op,
                args,
                to: None,
                from: None,
            });
        }
        if op.peeks(&args) {
            return None;
        }
        let (to, from) = op.descriptors(&args);
        let (to, from) = match op {
            Op::Vmsplice if access(caller.tid, low(args[0])) == Some(libc::O_RDONLY) => {
                (None, from)
            }
            Op::Vmsplice => (to, None),
            _ => (to, from),
        };
        let mut of_interest = |fd: Option<i32>| {
            let target = self.descriptors.target(caller.pid, caller.tid, fd?);
            (target != Target::Other).then_some((fd?, target))
        };
        let (to, from) = (of_interest(to), of_interest(from));
        (to.is_some() || from.is_some()).then_some(Pending { op, args, to, from })
    }

    /// The call has returned.
    pub(super) fn leave(&mut self, caller: Caller, pending: &Pending, returned: i64) {
        if pending.op == Op::Socketpair {
            if returned == 0 {
                self.paired(caller, pending.args[3]);
            }
            return;
        }
        if let Some((fd, target)) = pending.to {
            self.wrote(caller, pending, returned, fd, target);
        }
        if let Some((fd, target)) = pending.from {
            self.read(caller, pending, returned, fd, target);
        }
    }

    /// The thread was killed in the middle of a call, and what that has written nobody knows.
    pub(super) fn lose(&mut self, pending: &Pending) {
        let Some(stream) = pending
            .to
            .and_then(|(_, target)| self.descriptors.written(target))
        else {
            return;
        };
        if self.streams.is_wanted(stream) {
            let offset = self.streams.written(stream);
            self.streams.unknown();
            self.emit(CaptureEvent::Gap {
                stream,
                offset,
                bytes: None,
                reason: GapReason::Unreadable,
            });
        }
    }

    /// Sockets that were made as a pair: who asks later may find one of them closed.
    fn paired(&mut self, caller: Caller, address: u64) {
        let Some(fds) = Memory::of(caller.tid).pair(address) else {
            return;
        };
        let socket = |fd| self.descriptors.target(caller.pid, caller.tid, fd);
        if let [Target::Socket(one), Target::Socket(other)] = fds.map(socket) {
            self.descriptors.pair(one, other);
        }
    }

    fn wrote(&mut self, caller: Caller, call: &Pending, returned: i64, fd: i32, target: Target) {
        let moved = call.moved(caller.tid, returned);
        if let Target::Internet(peer) = target {
            if moved.bytes > 0 {
                let peer = peer.or_else(|| call.destination(caller.tid));
                self.emit(CaptureEvent::NetSend {
                    pid: caller.pid,
                    bytes: moved.bytes,
                    peer,
                });
            }
            return;
        }
        let Some(stream) = self.descriptors.written(target) else {
            return;
        };
        if is_refusal(returned) {
            if self.streams.is_wanted(stream) {
                self.emit(CaptureEvent::Refused {
                    stream,
                    writer: caller.pid,
                });
            }
        } else if moved.bytes > 0
            && let Some(offset) = self.streams.write(stream, moved.bytes)
        {
            self.content(caller, call, (returned, moved.bytes), (stream, fd, offset));
        }
    }

    /// Hands on what was written, and says what is missing of it.
    fn content(
        &mut self,
        caller: Caller,
        call: &Pending,
        (returned, bytes): (i64, u64),
        (stream, fd, mut offset): (StreamId, i32, u64),
    ) {
        let end = offset + bytes;
        let at = self.clock.now();
        let memory = Memory::of(caller.tid);
        let (spans, reason) = match call.content(memory, returned, bytes) {
            Content::At(spans) => (spans, GapReason::Unreadable),
            Content::Unreadable => (Spans::default(), GapReason::Unreadable),
            Content::Unseen => (Spans::default(), GapReason::UnsupportedSyscall),
        };
        memory.read_spans(&spans, LONGEST_CHUNK, |piece| {
            let bytes = Bytes::from(piece);
            let next = offset + bytes.len() as u64;
            self.streams.submitted(bytes.len() as u64);
            let (writer, fd) = (caller.pid, Some(fd));
            self.outbox.push(
                at,
                CaptureEvent::Chunk {
                    stream,
                    offset,
                    bytes,
                    writer,
                    fd,
                },
            );
            offset = next;
        });
        if offset < end {
            let bytes = end - offset;
            self.streams.unreadable(bytes);
            self.outbox.push(
                at,
                CaptureEvent::Gap {
                    stream,
                    offset,
                    bytes: Some(bytes),
                    reason,
                },
            );
            self.outbox
                .push(at, CaptureEvent::Loss(self.streams.loss()));
        }
    }

    fn read(&mut self, caller: Caller, call: &Pending, returned: i64, fd: i32, target: Target) {
        if returned < 0 {
            return;
        }
        if let Target::Terminal(device) = target {
            self.typed(caller, call, returned, device);
            return;
        }
        let Some(stream) = self.descriptors.read(target) else {
            return;
        };
        let moved = call.moved(caller.tid, returned);
        if let Some(end) = self.streams.read(stream, moved.bytes) {
            let (reader, fd) = (caller.pid, Some(fd));
            self.emit(CaptureEvent::Read {
                stream,
                end,
                reader,
                fd,
            });
        }
        let ended = moved.empty || returned == 0 && call.wanted(caller.tid) > 0;
        if ended && self.streams.is_wanted(stream) {
            self.emit(CaptureEvent::Eof { stream });
        }
    }

    /// Looks for keys in what was read from a terminal, and keeps nothing of it.
    fn typed(&mut self, caller: Caller, call: &Pending, returned: i64, device: u64) {
        let memory = Memory::of(caller.tid);
        let bytes = returned.unsigned_abs();
        let Content::At(spans) = call.content(memory, returned, bytes) else {
            return;
        };
        let (at, mut found) = (self.clock.now(), Vec::new());
        let parser = self.keys.entry((caller.pid, device)).or_default();
        memory.read_spans(&spans, LONGEST_CHUNK, |typed| {
            parser.push(at, &typed, &mut found);
        });
        report_keys(&mut self.outbox, caller.pid, &mut found);
    }

    /// Reports the keys that have waited long enough; returns when that is to be asked again.
    pub(super) fn poll_keys(&mut self) -> Option<Timestamp> {
        let now = self.clock.now();
        let mut found = Vec::new();
        for (&(pid, _), parser) in &mut self.keys {
            parser.poll(now, &mut found);
            report_keys(&mut self.outbox, pid, &mut found);
        }
        self.keys.values().filter_map(KeyParser::deadline).min()
    }

    /// A process has ended: it types no more, and an ESC that it read last was the key.
    pub(super) fn forget_process(&mut self, pid: Pid) {
        let (now, mut found) = (self.clock.now(), Vec::new());
        self.keys.retain(|&(reader, _), parser| {
            if reader == pid {
                parser.poll(parser.deadline().unwrap_or(now), &mut found);
            }
            reader != pid
        });
        report_keys(&mut self.outbox, pid, &mut found);
    }
}

fn report_keys(outbox: &mut Outbox, pid: Pid, found: &mut Vec<(Timestamp, InterruptKind)>) {
    for (at, kind) in found.drain(..) {
        let sender = None;
        outbox.push(at, CaptureEvent::Interrupt { pid, kind, sender });
    }
}

/// How much a call moved.
#[derive(Clone, Copy, Debug, Default)]
struct Moved {
    bytes: u64,
    /// It moved several messages, and one was empty that need not be.
    empty: bool,
}

/// Where the bytes are that a call moved.
enum Content {
    /// In the caller's memory.
    At(Spans),
    /// The caller's memory should tell where, and cannot be read.
    Unreadable,
    /// Nowhere that we could see.
    Unseen,
}

impl Pending {
    fn moved(&self, tid: Tid, returned: i64) -> Moved {
        let Ok(returned) = u64::try_from(returned) else {
            return Moved::default();
        };
        if !matches!(self.op, Op::Sendmmsg | Op::Recvmmsg) {
            return Moved {
                bytes: returned,
                empty: false,
            };
        }
        let messages = Memory::of(tid)
            .messages(self.args[1], returned)
            .unwrap_or_default();
        Moved {
            bytes: messages.iter().map(|(_, moved)| moved).sum(),
            empty: messages
                .iter()
                .any(|(spans, moved)| *moved == 0 && spans.len() > 0),
        }
    }

    /// Where the `bytes` are that it moved by what it returned.
    fn content(&self, memory: Memory, returned: i64, bytes: u64) -> Content {
        let [_, pointer, count, ..] = self.args;
        let spans = match self.op {
            Op::Write | Op::Sendto | Op::Read | Op::Recvfrom => Some(Spans::one(pointer, count)),
            Op::Writev | Op::Readv | Op::Vmsplice => memory.vector(pointer, count),
            Op::Sendmsg | Op::Recvmsg => memory.message(pointer).map(|(spans, _)| spans),
            Op::Sendmmsg | Op::Recvmmsg => {
                let messages = memory.messages(pointer, returned.unsigned_abs());
                messages.map(|messages| {
                    let moved = messages
                        .into_iter()
                        .map(|(spans, moved)| spans.first(moved));
                    moved.fold(Spans::default(), Spans::chain)
                })
            }
            _ => return Content::Unseen,
        };
        spans.map_or(Content::Unreadable, |spans| Content::At(spans.first(bytes)))
    }

    /// How many bytes it asked for.
    fn wanted(&self, tid: Tid) -> u64 {
        let memory = Memory::of(tid);
        match self.op {
            Op::Readv | Op::Vmsplice => memory
                .vector(self.args[1], self.args[2])
                .map_or(0, |spans| spans.len()),
            Op::Recvmsg => memory
                .message(self.args[1])
                .map_or(0, |(spans, _)| spans.len()),
            Op::Recvmmsg => 0,
            Op::Splice => self.args[4],
            Op::Sendfile => self.args[3],
            _ => self.args[2],
        }
    }

    /// The address that the call itself named.
    fn destination(&self, tid: Tid) -> Option<SocketAddr> {
        let memory = Memory::of(tid);
        let (address, len) = match self.op {
            Op::Sendto => (self.args[4], self.args[5]),
            Op::Sendmsg | Op::Sendmmsg => memory.message(self.args[1])?.1,
            _ => return None,
        };
        let len = usize::try_from(len)
            .ok()
            .filter(|&len| address != 0 && len <= 128)?;
        parse_address(&memory.bytes(address, len)?)
    }
}

fn is_refusal(returned: i64) -> bool {
    returned == -i64::from(Errno::EPIPE as i32) || returned == -i64::from(Errno::ECONNRESET as i32)
}

fn is_stream_pair(args: &Args) -> bool {
    /// The lower bits of a socket's type (`SOCK_TYPE_MASK`).
    const TYPE: i32 = 0xf;
    low(args[0]) == libc::AF_UNIX && low(args[1]) & TYPE == libc::SOCK_STREAM
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_no_other_error() {
        assert!(is_refusal(-32));
        assert!(is_refusal(-104));
        // EAGAIN, EINTR, ERESTARTSYS
        for returned in [-11, -4, -512, 0, 32] {
            assert!(!is_refusal(returned));
        }
    }

    #[test]
    fn only_pairs_of_streams_are_noted() {
        let cloexec = 0o2_000_000;
        assert!(is_stream_pair(&[1, 1 | cloexec, 0, 0, 0, 0]));
        assert!(!is_stream_pair(&[1, 2, 0, 0, 0, 0]));
        assert!(!is_stream_pair(&[2, 1, 0, 0, 0, 0]));
    }
}
