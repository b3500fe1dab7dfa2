//! The probe's records, from bytes. Pure; whatever the bytes are, the answer is a value.

use observer_ebpf::wire::{self, ABI, Header, NetSend, Process, Signal, Transfer, kind};
use zerocopy::{FromBytes, Immutable, KnownLayout};

/// No stream is longer than this: 256 TB. Sums of positions cannot overflow.
const MAX_OFFSET: u64 = 1 << 48;

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
    Exec {
        header: Header,
        pid: u32,
        path: &'a [u8],
        argv: &'a [u8],
    },
    /// A process ended.
    Exit(Process),
    /// A process was sent a signal.
    Signal(Signal),
    /// A process sent bytes to the network.
    NetSend(NetSend),
}

/// A record that this reader cannot understand: the object and the reader do not belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Shorter than its kind's fixed part, or than the payload it announces.
    Short,
    /// Of another version.
    Abi(u16),
    /// Of no known kind.
    Kind(u16),
    /// At a position that no stream reaches.
    Offset(u64),
}

/// Decodes one record; what comes after its payload is room that it did not use.
pub(super) fn decode(bytes: &[u8]) -> Result<Record<'_>, Fault> {
    let header = fixed::<Header>(bytes)?;
    if header.abi != ABI {
        return Err(Fault::Abi(header.abi));
    }
    Ok(match header.kind {
        kind::CONTENT => Record::Content(transfer(bytes)?, payload(bytes, header.len)?),
        kind::UNSEEN => Record::Unseen(transfer(bytes)?),
        kind::READ => Record::Read(transfer(bytes)?),
        kind::EOF => Record::Eof(transfer(bytes)?),
        kind::REFUSED => Record::Refused(transfer(bytes)?),
        kind::KEYS => Record::Keys(transfer(bytes)?, payload(bytes, header.len)?),
        kind::FORK => Record::Fork(fixed(bytes)?),
        kind::EXEC => exec(bytes)?,
        kind::EXIT => Record::Exit(fixed(bytes)?),
        kind::SIGNAL => Record::Signal(fixed(bytes)?),
        kind::NET_SEND => Record::NetSend(fixed(bytes)?),
        unknown => return Err(Fault::Kind(unknown)),
    })
}

fn transfer(bytes: &[u8]) -> Result<Transfer, Fault> {
    let transfer: Transfer = fixed(bytes)?;
    if transfer.offset > MAX_OFFSET {
        return Err(Fault::Offset(transfer.offset));
    }
    Ok(transfer)
}

fn exec(bytes: &[u8]) -> Result<Record<'_>, Fault> {
    let (exec, _) = wire::Exec::ref_from_prefix(bytes).map_err(|_| Fault::Short)?;
    // The kernel counts the path's final NUL in some versions of the helper.
    let path = exec
        .path
        .get(..exec.path_len as usize)
        .ok_or(Fault::Short)?;
    let argv = exec
        .argv
        .get(..exec.argv_len as usize)
        .ok_or(Fault::Short)?;
    Ok(Record::Exec {
        header: exec.header,
        pid: exec.pid,
        path,
        argv,
    })
}

fn fixed<T: FromBytes + KnownLayout + Immutable>(bytes: &[u8]) -> Result<T, Fault> {
    T::read_from_prefix(bytes)
        .map(|(record, _)| record)
        .map_err(|_| Fault::Short)
}

fn payload(bytes: &[u8], len: u32) -> Result<&[u8], Fault> {
    bytes
        .get(size_of::<Transfer>()..)
        .and_then(|rest| rest.get(..len as usize))
        .ok_or(Fault::Short)
}

/// A block of NUL-ended strings, as `/proc/PID/cmdline` and the probe deliver arguments.
pub(super) fn arguments(argv: &[u8]) -> Vec<String> {
    let argv = argv.strip_suffix(&[0]).unwrap_or(argv);
    if argv.is_empty() {
        return Vec::new();
    }
    argv.split(|&byte| byte == 0)
        .map(|arg| String::from_utf8_lossy(arg).into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use observer_ebpf::wire::{StreamKey, stream_kind};
    use zerocopy::{FromZeros, IntoBytes};

    use super::*;

    fn transfer(kind: u16, len: u32) -> Transfer {
        let mut transfer = Transfer::new_zeroed();
        transfer.header = Header {
            abi: ABI,
            kind,
            len,
            at: 5,
        };
        transfer.stream = StreamKey {
            object: 7,
            scope: 0,
            kind: stream_kind::PIPE,
        };
        transfer
    }

    #[test]
    fn content_is_as_long_as_the_header_says() {
        let record = transfer(kind::CONTENT, 3);
        let bytes = [record.as_bytes(), b"abc garbage"].concat();
        assert_eq!(decode(&bytes), Ok(Record::Content(record, b"abc")));
    }

    #[test]
    fn content_that_is_shorter_than_the_header_says_is_a_fault() {
        let bytes = [transfer(kind::CONTENT, 4).as_bytes(), b"abc"].concat();
        assert_eq!(decode(&bytes), Err(Fault::Short));
        let bytes = [transfer(kind::KEYS, u32::MAX).as_bytes(), b"abc"].concat();
        assert_eq!(decode(&bytes), Err(Fault::Short));
    }

    #[test]
    fn another_version_is_refused() {
        let mut record = transfer(kind::READ, 0);
        record.header.abi = ABI + 1;
        assert_eq!(decode(record.as_bytes()), Err(Fault::Abi(ABI + 1)));
        record.header.abi = ABI;
        record.header.kind = 999;
        assert_eq!(decode(record.as_bytes()), Err(Fault::Kind(999)));
    }

    #[test]
    fn an_exec_keeps_its_lengths() {
        let mut exec = wire::Exec::new_zeroed();
        exec.header = transfer(kind::EXEC, 0).header;
        exec.pid = 9;
        exec.path[..4].copy_from_slice(b"/a/b");
        exec.path_len = 4;
        exec.argv[..4].copy_from_slice(b"b\0c\0");
        exec.argv_len = 4;
        let Ok(Record::Exec {
            pid, path, argv, ..
        }) = decode(exec.as_bytes())
        else {
            panic!("it is an exec");
        };
        assert_eq!(
            (pid, path, argv),
            (9, b"/a/b".as_slice(), b"b\0c\0".as_slice())
        );
        exec.argv_len = wire::MAX_ARGV + 1;
        assert_eq!(decode(exec.as_bytes()), Err(Fault::Short));
    }

    #[test]
    fn no_bytes_panic() {
        for kind in 0..20 {
            for len in [0, 1, 64, u32::MAX] {
                let record = transfer(kind, len);
                let bytes = [record.as_bytes(), &[0xff; 3000]].concat();
                for end in (0..200).chain([bytes.len()]) {
                    let _ = decode(&bytes[..end]);
                }
            }
        }
    }

    #[test]
    fn arguments_end_with_a_nul_each() {
        assert_eq!(arguments(b"sh\0-c\0\0"), ["sh", "-c", ""]);
        assert_eq!(arguments(b"cut sho"), ["cut sho"]);
        assert_eq!(arguments(b"bad \xff\0"), ["bad \u{fffd}"]);
        assert!(arguments(b"").is_empty());
    }
}
