//! The contract that every backend keeps: the one event enum, and the words it is made of.
//!
//! Holds no behaviour beyond what the words need. Pure: usable by every layer.

use std::fmt;
use std::net::SocketAddr;
use std::ops::{Add, Sub};
use std::time::Duration;

use bytes::Bytes;

/// A moment, in nanoseconds since the capture began, on a clock that does not jump
/// (`CLOCK_MONOTONIC`). In a log it is the record's `t`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The beginning of the capture.
    pub const ZERO: Self = Self(0);

    /// From nanoseconds since the capture began.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the capture began.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the capture began, as the log and the human lines show it.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a display value; f64 holds 104 days of ns"
    )]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The time from `earlier` to `self`; zero where `earlier` is later (two processes'
    /// system-call exits have no mutual order).
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_sub(nanos))
    }
}

/// A process: the kernel's tgid, as seen from the observer's own PID namespace.
///
/// A tgid may be used again; [`ProcessChange::Exit`] comes before the next process of that tgid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pid(pub u32);

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One direction of bytes: a pipe, or one way through a socket pair. Named by kernel objects,
/// never by descriptor numbers: those differ between the two ends, and wrappers hand them down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    /// What kind of object carries the bytes.
    pub kind: StreamKind,
    /// Pipe: its inode. Socket: the inode of the socket that the bytes are written to.
    /// Relay: 0 for client to server, 1 for server to client.
    pub object: u64,
    /// Tells apart objects with equal inodes (device of a named pipe; the relay's number).
    pub scope: u32,
}

/// See [`StreamId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StreamKind {
    /// A pipe or named pipe.
    Pipe,
    /// One way through an `AF_UNIX` stream socket pair.
    Socket,
    /// A direction of `observer relay`.
    Relay,
}

impl fmt::Display for StreamId {
    /// As `/proc/PID/fd` names the object: `pipe:[1234]`, `socket:[1234]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            StreamKind::Pipe => write!(f, "pipe:[{}]", self.object),
            StreamKind::Socket => write!(f, "socket:[{}]", self.object),
            StreamKind::Relay => write!(f, "relay:[{}]", self.object),
        }
    }
}

/// What a backend saw, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct Captured {
    /// When it happened (for a system call: when it returned).
    pub at: Timestamp,
    /// What happened.
    pub event: CaptureEvent,
}

/// The one event enum in which all backends meet.
#[derive(Clone, Debug, PartialEq)]
pub enum CaptureEvent {
    /// A process of the scope appeared, executed a program, or ended.
    Process(ProcessEvent),
    /// A process holds an end of a stream that was open before the capture began (`attach`,
    /// `watch`), or is otherwise known from `/proc` to hold it. Streams that open later announce
    /// themselves by their first chunk or read.
    Holds {
        /// The stream.
        stream: StreamId,
        /// Who holds it.
        pid: Pid,
        /// Which end.
        end: End,
        /// The descriptor's number in that process: 0, 1 and 2 are stdio by convention.
        fd: i32,
        /// Whether the capture knows the stream from its first byte.
        joined: Joined,
    },
    /// Bytes were written. Chunks of one stream arrive in order of `offset`.
    Chunk {
        /// The stream they went into.
        stream: StreamId,
        /// Position of the first byte, counted from the stream's first byte (or from where the
        /// capture joined it), from system-call return values.
        offset: u64,
        /// The bytes.
        bytes: Bytes,
        /// Who wrote them.
        writer: Pid,
        /// The descriptor that they were written through, where known.
        fd: Option<i32>,
    },
    /// The other side has read up to `end`, exclusive. May precede the chunk it refers to.
    Read {
        /// The stream that was read.
        stream: StreamId,
        /// Position after the last byte that was read.
        end: u64,
        /// Who read.
        reader: Pid,
        /// The descriptor that was read from, where known.
        fd: Option<i32>,
    },
    /// Bytes went by unseen.
    Gap {
        /// The stream that they were in.
        stream: StreamId,
        /// Position of the first missing byte.
        offset: u64,
        /// How many are missing; `None` where nobody knows.
        bytes: Option<u64>,
        /// Why.
        reason: GapReason,
    },
    /// A reader met the end of the stream: every writing end is closed.
    Eof {
        /// The stream.
        stream: StreamId,
    },
    /// A write failed because nobody can read any more (`EPIPE`, `ECONNRESET`).
    Refused {
        /// The stream.
        stream: StreamId,
        /// Who tried to write.
        writer: Pid,
    },
    /// A signal to, or a key read by, a process of the scope.
    Interrupt {
        /// The process that got it.
        pid: Pid,
        /// What it got.
        kind: InterruptKind,
        /// Who sent the signal; `None` for keys and for signals that the kernel made.
        sender: Option<Pid>,
    },
    /// A process of the scope sent bytes to a network peer. Never content.
    NetSend {
        /// Who sent.
        pid: Pid,
        /// How many bytes.
        bytes: u64,
        /// To whom, where known.
        peer: Option<SocketAddr>,
    },
    /// The backend's counters so far. Comes at the end, and whenever something was lost.
    Loss(Loss),
}

/// See [`CaptureEvent::Process`].
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessEvent {
    /// The process.
    pub pid: Pid,
    /// What changed.
    pub change: ProcessChange,
}

/// See [`ProcessEvent`].
#[derive(Clone, Debug, PartialEq)]
pub enum ProcessChange {
    /// It came into view: it was there when the capture began, or it was forked since.
    Seen {
        /// Its parent when it came into view; a later re-parenting does not change it.
        ppid: Option<Pid>,
        /// The executable, where it is known.
        exe: Option<String>,
        /// Its arguments.
        argv: Vec<String>,
        /// Its start time in nanoseconds since boot, where known: tells a reused pid apart.
        start: Option<u64>,
    },
    /// It executed a program.
    Exec {
        /// The executable.
        exe: Option<String>,
        /// Its arguments.
        argv: Vec<String>,
    },
    /// It ended.
    Exit {
        /// How, where known.
        fate: Option<Fate>,
    },
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It returned this status.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

/// An end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The reading end.
    Reader,
    /// The writing end.
    Writer,
}

/// Since when a stream is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joined {
    /// From its first byte.
    Start,
    /// Only since the capture began; what went before is a gap.
    Middle,
}

/// Why bytes are missing. The names are those of the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GapReason {
    /// The ring buffer was full.
    RingFull,
    /// The writer's memory could not be read.
    Unreadable,
    /// The stream was joined in the middle.
    MidStream,
    /// The frame was longer than the limit.
    Oversized,
    /// The bytes moved by a system call that shows no content (splice, `io_uring`, ...).
    UnsupportedSyscall,
}

/// What interrupted a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InterruptKind {
    /// SIGINT.
    Sigint,
    /// SIGTERM.
    Sigterm,
    /// SIGKILL.
    Sigkill,
    /// SIGHUP.
    Sighup,
    /// The key Esc, read from a terminal.
    KeyEsc,
    /// The keys Ctrl-C, read from a terminal in raw mode.
    KeyCtrlC,
}

/// The backend's counters, in bytes of stream content unless said otherwise.
///
/// `seen == submitted + ring_full + unreadable + filtered`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// What the watched processes wrote to streams of the kinds that are watched.
    pub seen: u64,
    /// What was handed to the observer.
    pub submitted: u64,
    /// What was lost because the ring buffer was full.
    pub ring_full: u64,
    /// What could not be read from the writer's memory, or moved by an unsupported system call.
    pub unreadable: u64,
    /// What was left out on purpose: streams that were found to be no MCP.
    pub filtered: u64,
    /// How many records without content (reads, signals, process events) were lost.
    pub events_lost: u64,
}

impl Loss {
    /// Whether everything that was meant to be seen was seen.
    pub const fn complete(&self) -> bool {
        self.ring_full == 0 && self.unreadable == 0 && self.events_lost == 0
    }
}
