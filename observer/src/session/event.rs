//! What was observed, with the connection it belongs to: the observed records of the audit log,
//! one variant each. The live session emits these, a replayed log is read back into them, and the
//! verdicts see nothing else.

use std::fmt;
use std::net::SocketAddr;

use bytes::Bytes;

use crate::capture::{Fate, GapReason, InterruptKind, Loss, Pid, Timestamp};
use crate::jsonrpc::Frame;

/// A connection's number in its log: 1, 2, ...
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(pub u32);

impl fmt::Display for ConnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The host: it started the server and sends `initialize` or `server/discover`.
    Client,
    /// The tool server.
    Server,
}

impl Side {
    /// The other side.
    pub const fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// An observed event and its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// When it happened.
    pub at: Timestamp,
    /// What happened.
    pub event: Event,
}

/// See [`Observed`].
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A process of the scope came into view.
    ProcessSeen {
        /// The process.
        pid: Pid,
        /// Its parent when it came into view.
        ppid: Option<Pid>,
        /// Its executable.
        exe: Option<String>,
        /// Its arguments.
        argv: Vec<String>,
        /// Start time, nanoseconds since boot.
        start: Option<u64>,
    },
    /// A process executed a program.
    ProcessExec {
        /// The process.
        pid: Pid,
        /// The executable.
        exe: Option<String>,
        /// Its arguments.
        argv: Vec<String>,
    },
    /// A process ended.
    ProcessExit {
        /// The process.
        pid: Pid,
        /// How.
        fate: Option<Fate>,
    },
    /// A connection opened, became better known (`Open` again, same number), or closed.
    Connection {
        /// Which.
        conn: ConnId,
        /// What changed.
        change: ConnectionChange,
    },
    /// A complete JSON-RPC line.
    Message {
        /// Which connection.
        conn: ConnId,
        /// Who sent it.
        from: Side,
        /// Position of its first byte in its stream, where known.
        offset: Option<u64>,
        /// Its size on the wire, with its line terminator.
        bytes: u64,
        /// The message, verbatim.
        frame: Frame,
    },
    /// A line that is no JSON-RPC message.
    Noise(Noise),
    /// Bytes went by unseen.
    Gap {
        /// Which connection.
        conn: ConnId,
        /// Whose bytes.
        from: Side,
        /// Position of the first missing byte in its stream.
        offset: u64,
        /// How many; `None` where nobody knows.
        bytes: Option<u64>,
        /// Why.
        reason: GapReason,
    },
    /// A side closed its writing end.
    Eof {
        /// Which connection.
        conn: ConnId,
        /// Whose.
        from: Side,
    },
    /// The other side has read up to here.
    Delivered {
        /// Which connection.
        conn: ConnId,
        /// Whose bytes were read.
        from: Side,
        /// Position after the last byte read.
        offset: u64,
    },
    /// A write failed because the other side cannot read any more.
    Refused {
        /// Which connection.
        conn: ConnId,
        /// Who tried to write.
        from: Side,
    },
    /// A signal to, or a key read by, a process of the scope.
    Interrupt {
        /// The process.
        pid: Pid,
        /// What it got.
        kind: InterruptKind,
        /// Who sent the signal.
        sender: Option<Pid>,
    },
    /// A process sent this much to a network peer.
    NetSend {
        /// Who sent.
        pid: Pid,
        /// How many bytes.
        bytes: u64,
        /// To whom.
        peer: Option<SocketAddr>,
    },
    /// The clock that the timestamps come from stood still: the machine was suspended.
    Suspended {
        /// For so many nanoseconds; 0: it did not, but had come so far when the next event, which
        /// is older, became known.
        nanos: u64,
    },
    /// The capture's counters so far.
    Loss(Loss),
}

/// See [`Event::Noise`].
#[derive(Clone, Debug, PartialEq)]
pub struct Noise {
    /// Which connection.
    pub conn: ConnId,
    /// Who wrote it.
    pub from: Side,
    /// Position of its first byte in its stream, where known.
    pub offset: Option<u64>,
    /// Its size on the wire, with its terminator where it has one.
    pub bytes: u64,
    /// What is wrong with it.
    pub kind: NoiseKind,
    /// Its first bytes, at most 4 KiB.
    pub text: Bytes,
}

/// What a line that is no message is instead. The names are those of the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoiseKind {
    /// Text that does not look like JSON.
    Text,
    /// An empty line.
    Blank,
    /// It begins as JSON and is none, or is JSON without being JSON-RPC.
    InvalidJson,
    /// Bytes that are no UTF-8.
    InvalidUtf8,
    /// A `Content-Length:` header.
    ContentLength,
    /// Longer than the frame limit.
    Oversized,
    /// The stream ended in the middle of a line.
    Unterminated,
}

/// See [`Event::Connection`].
#[derive(Clone, Debug, PartialEq)]
pub enum ConnectionChange {
    /// Two streams (or one, so far) are recognised as an MCP stdio connection.
    Open {
        /// The host, where known.
        client: Option<Party>,
        /// The server, where known.
        server: Option<Party>,
        /// What carries it.
        transport: Transport,
        /// What identifies each direction: client to server, server to client.
        streams: [Option<String>; 2],
    },
    /// Both directions are over.
    Close,
}

/// A process that is one side of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Party {
    /// The process.
    pub pid: Pid,
    /// Its executable, where known.
    pub exe: Option<String>,
}

/// What carries a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Two pipes.
    Pipe,
    /// Socket pairs.
    Socketpair,
    /// `observer relay`.
    Relay,
}
