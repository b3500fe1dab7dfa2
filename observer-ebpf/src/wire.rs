//! The records that the probe writes into its ring buffer, and the maps' keys and values.
//!
//! Every record begins with a [`Header`]; every field is explicit, padding included, and every
//! size is asserted. Byte order is the machine's. All times are `bpf_ktime_get_ns()`:
//! nanoseconds on `CLOCK_MONOTONIC`. All pids are tgids of the initial PID namespace.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Changes whenever a type of this module or of [`crate::config`] changes its meaning or layout.
pub const ABI: u16 = 1;

/// Payload sizes that a [`Transfer`] record is reserved with, smallest first. A piece of content
/// takes the first that holds it, so at most half of its room in the ring is waste.
pub const PAYLOAD_SIZES: [u32; 10] = [64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768];

/// The largest piece of content in one record, in bytes.
pub const MAX_PIECE: u32 = 32768;

/// How much of one read from a terminal is reported, in bytes.
pub const MAX_KEYS: u32 = 4096;

/// How much of a program's arguments is reported, in bytes.
pub const MAX_ARGV: u32 = 2048;

/// How much of a program's path is reported, in bytes.
pub const MAX_PATH: u32 = 256;

/// What a record is, in [`Header::kind`].
pub mod kind {
    /// [`Transfer`](super::Transfer) and its bytes: written to a stream.
    pub const CONTENT: u16 = 1;
    /// [`Transfer`](super::Transfer): written to a stream by a call that shows no bytes.
    pub const UNSEEN: u16 = 2;
    /// [`Transfer`](super::Transfer): read from a stream, up to `offset`.
    pub const READ: u16 = 3;
    /// [`Transfer`](super::Transfer): a read met the end of the stream.
    pub const EOF: u16 = 4;
    /// [`Transfer`](super::Transfer): a write failed, nobody reads any more.
    pub const REFUSED: u16 = 5;
    /// [`Transfer`](super::Transfer) and its bytes: read from a terminal.
    pub const KEYS: u16 = 6;
    /// [`Process`](super::Process): forked.
    pub const FORK: u16 = 7;
    /// [`Exec`](super::Exec): executed a program.
    pub const EXEC: u16 = 8;
    /// [`Process`](super::Process): its last thread ended.
    pub const EXIT: u16 = 9;
    /// [`Signal`](super::Signal): was sent a signal.
    pub const SIGNAL: u16 = 10;
    /// [`NetSend`](super::NetSend): sent bytes to a network peer.
    pub const NET_SEND: u16 = 11;
}

/// What a [`StreamKey`] names, in [`StreamKey::kind`].
pub mod stream_kind {
    /// A pipe or a named pipe.
    pub const PIPE: u32 = 1;
    /// One way through an `AF_UNIX` stream socket pair.
    pub const SOCKET: u32 = 2;
    /// A terminal (in [`KEYS`](super::kind::KEYS) records only).
    pub const TERMINAL: u32 = 3;
}

/// Why bytes of a stream were lost, in [`Transfer::loss`].
pub mod loss {
    /// Nothing was lost.
    pub const NONE: u32 = 0;
    /// The ring buffer was full.
    pub const RING_FULL: u32 = 1;
    /// The writer's memory could not be read.
    pub const UNREADABLE: u32 = 2;
}

/// How every record begins.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct Header {
    /// [`ABI`].
    pub abi: u16,
    /// One of [`kind`].
    pub kind: u16,
    /// How many bytes of payload count; the rest of the record's room is garbage.
    /// In an [`UNSEEN`](kind::UNSEEN) record: how many bytes were moved.
    pub len: u32,
    /// When, in nanoseconds.
    pub at: u64,
}
const _: () = assert!(size_of::<Header>() == 16);

/// The kernel object that carries one direction of bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct StreamKey {
    /// Inode of the pipe, or of the socket that the bytes are written to. Terminal: its device.
    pub object: u64,
    /// Device of a named pipe, in the kernel's own encoding (`major << 20 | minor`); else 0.
    pub scope: u32,
    /// One of [`stream_kind`].
    pub kind: u32,
}
const _: () = assert!(size_of::<StreamKey>() == 16);

/// What the probe remembers of a stream.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct StreamState {
    /// Bytes written since the stream was first seen.
    pub written: u64,
    /// Bytes read since the stream was first seen.
    pub read: u64,
    /// Of the bytes written, those that never reached the ring.
    pub lost: u64,
    /// Why the last of them were lost: one of [`loss`].
    pub loss: u32,
    /// A random number: another one means that the probe forgot the stream in between.
    pub generation: u32,
}
const _: () = assert!(size_of::<StreamState>() == 32);

/// Bytes that moved, or could not move.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct Transfer {
    /// How every record begins.
    pub header: Header,
    /// Where.
    pub stream: StreamKey,
    /// Position in the stream of the first byte; in a read, of the byte after the last.
    pub offset: u64,
    /// [`StreamState::lost`] when the record was made.
    pub lost: u64,
    /// Who.
    pub pid: u32,
    /// Through which descriptor.
    pub fd: i32,
    /// [`StreamState::loss`] when the record was made.
    pub loss: u32,
    /// [`StreamState::generation`].
    pub generation: u32,
}
const _: () = assert!(size_of::<Transfer>() == 64);

/// A process came or went.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct Process {
    /// How every record begins.
    pub header: Header,
    /// The process.
    pub pid: u32,
    /// Its parent.
    pub ppid: u32,
    /// Its start, in nanoseconds since boot (`CLOCK_BOOTTIME`).
    pub start: u64,
    /// In an exit: the status, as `wait(2)` encodes it.
    pub status: u32,
    /// Always 0.
    pub padding: u32,
}
const _: () = assert!(size_of::<Process>() == 40);

/// A process executed a program.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct Exec {
    /// How every record begins.
    pub header: Header,
    /// The process.
    pub pid: u32,
    /// How many bytes of `path` count.
    pub path_len: u32,
    /// How many bytes of `argv` count.
    pub argv_len: u32,
    /// Always 0.
    pub padding: u32,
    /// The path that it executed, without a final NUL.
    pub path: [u8; MAX_PATH as usize],
    /// Its arguments, each ended by a NUL.
    pub argv: [u8; MAX_ARGV as usize],
}
const _: () = assert!(size_of::<Exec>() == 32 + 256 + 2048);

/// A process was sent a signal.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct Signal {
    /// How every record begins.
    pub header: Header,
    /// The process that it was sent to.
    pub pid: u32,
    /// The process that sent it; 0: the kernel.
    pub sender: u32,
    /// Its number.
    pub signal: u32,
    /// Always 0.
    pub padding: u32,
}
const _: () = assert!(size_of::<Signal>() == 32);

/// A process sent bytes to a network peer.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct NetSend {
    /// How every record begins.
    pub header: Header,
    /// The process.
    pub pid: u32,
    /// `AF_INET` or `AF_INET6`.
    pub family: u16,
    /// The peer's port, in network order; 0: unknown.
    pub port: [u8; 2],
    /// How many bytes.
    pub bytes: u64,
    /// The peer's address, in network order; `AF_INET` uses the first four bytes.
    pub address: [u8; 16],
}
const _: () = assert!(size_of::<NetSend>() == 48);

/// The probe's counters, one set a CPU. Bytes, unless said otherwise.
///
/// `seen == submitted + ring_full + unreadable + filtered`, once no system call is under way.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
pub struct Counters {
    /// Written to streams by processes of the scope.
    pub seen: u64,
    /// Put into the ring.
    pub submitted: u64,
    /// Lost because the ring was full.
    pub ring_full: u64,
    /// Lost because memory could not be read, or the call shows no bytes.
    pub unreadable: u64,
    /// Left out because user space gave the stream up.
    pub filtered: u64,
    /// How many records without content were lost.
    pub events_lost: u64,
}
const _: () = assert!(size_of::<Counters>() == 48);
