//! The probe's records, from bytes. Pure; whatever the bytes are, the answer is a value.

use observer_ebpf::wire::{self, ABI, Header, NetSend, Process, Signal, Transfer, kind};
use zerocopy::{FromBytes, Immutable, KnownLayout};

/// One record. The bytes it borrows are the ring's own.
#[derive(Debug, PartialEq)]
pub(super) enum Record<'a> {
    /// Bytes were written.
    Content(Transfer, &'a [u8]),
    /// Bytes were written by a call that shows none.
    Unseen(Transfer),
    /// Bytes were read.
    Read(Transfer),
    /// A reader met the end.
    Eof(Transfer),
    /// A write failed for want of a reader.
    Refused(Transfer),
    /// Bytes were read from a terminal.
    Keys(Transfer, &'a [u8]),
    /// A process was forked.
    Fork(Process),
    /// A process executed a program.
    Exec { header: Header, pid: u32, path: &'a [u8], argv: &'a [u8] },
    /// A process ended.
    Exit(Process),
    /// A process was sent a signal.
    Signal(Signal),
    /// A process sent bytes to the network.
    NetSend(NetSend),
}

/// A record that this reader cannot understand: the object and the reader do not belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Shorter than its kind's fixed part, or than the payload it announces.
    Short,
    /// Of another version.
    Abi(u16),
    /// Of no known kind.
    Kind(u16),
}

/// Decodes one record; what comes after its payload is room that it did not use.
pub(super) fn decode(bytes: &[u8]) -> Result<Record<'_>, Fault> {
    let header = fixed::<Header>(bytes)?;
    if header.abi != ABI {
        return Err(Fault::Abi(header.abi));
    }
    Ok(match header.kind {
        kind::CONTENT => Record::Content(fixed(bytes)?, payload(bytes, header.len)?),
        kind::UNSEEN => Record::Unseen(fixed(bytes)?),
        kind::READ => Record::Read(fixed(bytes)?),
        kind::EOF => Record::Eof(fixed(bytes)?),
        kind::REFUSED => Record::Refused(fixed(bytes)?),
        kind::KEYS => Record::Keys(fixed(bytes)?, payload(bytes, header.len)?),
        kind::FORK => Record::Fork(fixed(bytes)?),
        kind::EXEC => exec(bytes)?,
        kind::EXIT => Record::Exit(fixed(bytes)?),
        kind::SIGNAL => Record::Signal(fixed(bytes)?),
        kind::NET_SEND => Record::NetSend(fixed(bytes)?),
        unknown => return Err(Fault::Kind(unknown)),
    })
}

fn exec(bytes: &[u8]) -> Result<Record<'_>, Fault> {
    let (exec, _) = wire::Exec::ref_from_prefix(bytes).map_err(|_| Fault::Short)?;
    // The kernel counts the path's final NUL in some versions of the helper.
    let path = exec.path.get(..exec.path_len as usize).ok_or(Fault::Short)?;
    let argv = exec.argv.get(..exec.argv_len as usize).ok_or(Fault::Short)?;
    Ok(Record::Exec { header: exec.header, pid: exec.pid, path, argv })
}

fn fixed<T: FromBytes + KnownLayout + Immutable>(bytes: &[u8]) -> Result<T, Fault> {
    T::read_from_prefix(bytes).map(|(record, _)| record).map_err(|_| Fault::Short)
}

fn payload(bytes: &[u8], len: u32) -> Result<&[u8], Fault> {
    bytes.get(size_of::<Transfer>()..).and_then(|rest| rest.get(..len as usize)).ok_or(Fault::Short)
}

/// A block of NUL-ended strings, as `/proc/PID/cmdline` and the probe deliver arguments.
pub(super) fn arguments(argv: &[u8]) -> Vec<String> {
    let argv = argv.strip_suffix(&[0]).unwrap_or(argv);
    if argv.is_empty() {
        return Vec::new();
    }
    argv.split(|&byte| byte == 0).map(|arg| String::from_utf8_lossy(arg).into_owned()).collect()
}
