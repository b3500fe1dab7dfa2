//! The target for the probe's records.

#[cfg(target_os = "linux")]
use std::collections::HashMap;

#[cfg(target_os = "linux")]
use observer::capture::{CaptureEvent, Captured, StreamId};

/// Any bytes as records of the probe: nothing panics, and of every stream chunks and gaps follow
/// each other without a hole and without an overlap.
#[cfg(target_os = "linux")]
pub fn records(data: &[u8]) {
    use observer::capture::ebpf::Assembler;
    use observer::capture::{Clock, Timestamp};

    let mut assembler = Assembler::new(Clock::since(0));
    let mut events = Vec::new();
    for bytes in data.chunks(24) {
        // As they are, and made up to look like a record.
        let _fault = assembler.handle_bytes(bytes, &mut events);
        let _fault = assembler.handle_bytes(&plausible(bytes), &mut events);
        if bytes[0] % 8 == 0 {
            let later = Timestamp::from_nanos(u64::from(bytes[0]) << 24);
            assembler.handle_timeout(later, &mut events);
        }
    }
    assembler.handle_timeout(Timestamp::from_nanos(u64::MAX), &mut events);
    assert_contiguous(&events);
}

/// There is no probe on this system.
#[cfg(not(target_os = "linux"))]
pub fn records(_data: &[u8]) {}

/// A record of one of two streams, with small numbers, so that records have to do with each other.
#[cfg(target_os = "linux")]
fn plausible(bytes: &[u8]) -> Vec<u8> {
    use observer_ebpf::wire::{ABI, Transfer};
    use zerocopy::{FromZeros, IntoBytes};

    let at = |i: usize| bytes.get(i).copied().unwrap_or(0);
    let mut record = Transfer::new_zeroed();
    record.header.abi = ABI;
    record.header.kind = u16::from(at(0) % 12);
    record.header.len = u32::from(at(1) % 16);
    record.header.at = u64::from(at(2)) << 20;
    record.stream.object = u64::from(at(3) % 2);
    record.stream.kind = 1;
    record.offset = u64::from(at(4) % 64);
    record.lost = u64::from(at(5) % 64);
    record.loss = u32::from(at(6) % 3);
    record.generation = u32::from(at(7) > 250);
    [record.as_bytes(), bytes].concat()
}

#[cfg(target_os = "linux")]
fn assert_contiguous(events: &[Captured]) {
    let mut ends: HashMap<StreamId, u64> = HashMap::new();
    for captured in events {
        let (stream, offset, len) = match &captured.event {
            CaptureEvent::Chunk {
                stream,
                offset,
                bytes,
                ..
            } => (*stream, *offset, bytes.len() as u64),
            CaptureEvent::Gap {
                stream,
                offset,
                bytes,
                ..
            } => (*stream, *offset, bytes.unwrap_or(0)),
            _ => continue,
        };
        let end = ends.entry(stream).or_default();
        assert_eq!(*end, offset, "a hole or an overlap in {stream}");
        *end += len;
    }
}
