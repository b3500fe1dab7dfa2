//! What is known of a stream, and where bytes of it are missing.

use observer_ebpf::wire::{Header, kind, loss, stream_kind};

use super::*;

const KEY: StreamKey = StreamKey {
    object: 7,
    scope: 0,
    kind: stream_kind::PIPE,
};

/// A record about the stream: an offset, how much was lost by then.
fn transfer(offset: u64, lost: u64) -> Transfer {
    Transfer {
        header: Header {
            abi: 1,
            kind: kind::CONTENT,
            len: 0,
            at: 0,
        },
        stream: KEY,
        offset,
        lost,
        pid: 1,
        fd: 1,
        loss: if lost > 0 {
            loss::UNREADABLE
        } else {
            loss::NONE
        },
        generation: 1,
    }
}

fn state(written: u64, read: u64, lost: u64) -> StreamState {
    StreamState {
        written,
        read,
        lost,
        loss: if lost > 0 {
            loss::RING_FULL
        } else {
            loss::NONE
        },
        generation: 1,
    }
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_nanos(millis * 1_000_000)
}

/// The streams, and all that they have said, in short.
#[derive(Default)]
struct Log {
    streams: Streams,
    events: Vec<Captured>,
}

impl Log {
    fn write(&mut self, millis: u64, offset: u64, bytes: &'static str, lost: u64) -> &mut Self {
        let bytes = Some(Bytes::from_static(bytes.as_bytes()));
        self.streams
            .written(at(millis), &transfer(offset, lost), bytes, &mut self.events);
        self
    }

    fn read(&mut self, millis: u64, end: u64) -> &mut Self {
        self.streams
            .read(at(millis), &transfer(end, 0), &mut self.events);
        self
    }

    fn said(&mut self) -> Vec<String> {
        let events = std::mem::take(&mut self.events);
        let said = events.into_iter().map(|captured| match captured.event {
            CaptureEvent::Chunk { offset, bytes, .. } => {
                format!("{offset} {}", String::from_utf8_lossy(&bytes))
            }
            CaptureEvent::Gap {
                offset,
                bytes,
                reason,
                ..
            } => format!("{offset} gap {bytes:?} {reason:?}"),
            CaptureEvent::Read { end, .. } => format!("read {end}"),
            CaptureEvent::Eof { .. } => "eof".to_owned(),
            other => format!("{other:?}"),
        });
        said.collect()
    }
}

#[test]
fn pieces_that_overtake_each_other_come_out_in_order() {
    let mut log = Log::default();
    log.write(0, 5, "fghij", 0);
    assert!(log.said().is_empty(), "the piece before it is under way");
    log.write(1, 0, "abcde", 0);
    assert_eq!(log.said(), ["0 abcde", "5 fghij"]);
}

#[test]
fn a_jump_that_the_kernel_explains_is_a_gap_at_once() {
    let mut log = Log::default();
    log.write(0, 0, "abc", 0).write(1, 10, "k", 7);
    assert_eq!(log.said(), ["0 abc", "3 gap Some(7) Unreadable", "10 k"]);
    log.write(2, 12, "m", 7);
    assert!(log.said().is_empty(), "those seven bytes are accounted for");
}

#[test]
fn a_hole_that_nobody_fills_is_a_gap_after_a_while() {
    let mut log = Log::default();
    log.write(0, 3, "def", 0);
    let due = log.streams.poll_timeout().unwrap();
    assert_eq!(due, at(0) + PATIENCE);
    log.streams.handle_timeout(at(99), &mut log.events);
    assert!(log.said().is_empty());
    log.streams.handle_timeout(due, &mut log.events);
    assert_eq!(log.said(), ["0 gap Some(3) RingFull", "3 def"]);
    assert_eq!(log.streams.poll_timeout(), None);
    log.write(200, 0, "abc", 0);
    assert!(log.said().is_empty(), "too late: the gap has been told");
}

#[test]
fn bytes_that_a_call_moved_unseen_are_a_gap_in_place() {
    let mut log = Log::default();
    log.write(0, 0, "abc", 0);
    let mut unseen = transfer(3, 0);
    unseen.header.len = 4;
    log.streams.written(at(1), &unseen, None, &mut log.events);
    log.write(2, 7, "h", 0);
    assert_eq!(
        log.said(),
        ["0 abc", "3 gap Some(4) UnsupportedSyscall", "7 h"]
    );
}

#[test]
fn a_loss_at_the_end_is_found_by_what_the_kernel_counted() {
    let mut log = Log::default();
    log.write(0, 0, "abc", 0);
    log.streams
        .reconcile(at(1), KEY, &state(3, 0, 0), &mut log.events);
    assert_eq!(log.said(), ["0 abc"]);
    log.streams
        .reconcile(at(2), KEY, &state(9, 0, 6), &mut log.events);
    assert_eq!(log.said(), ["3 gap Some(6) RingFull"]);
    log.streams
        .reconcile(at(3), KEY, &state(9, 0, 6), &mut log.events);
    assert!(log.said().is_empty(), "told once");
    log.write(4, 9, "j", 6);
    assert_eq!(log.said(), ["9 j"]);
}

#[test]
fn a_stream_of_which_nothing_arrived_is_a_gap_too() {
    let mut log = Log::default();
    log.streams
        .reconcile(at(1), KEY, &state(9, 0, 9), &mut log.events);
    assert_eq!(log.said(), ["0 gap Some(9) RingFull"]);
}

#[test]
fn a_reader_that_stays_ahead_was_fed_by_somebody_unseen() {
    let mut log = Log::default();
    log.write(0, 0, "abc", 0).read(1, 5);
    assert_eq!(log.said(), ["0 abc", "read 5"]);
    assert!(
        log.streams.suspects(at(900)).is_empty(),
        "a write may be returning"
    );
    assert_eq!(log.streams.suspects(at(1_001)), [KEY]);
    log.streams
        .judge(at(1_001), KEY, &state(3, 5, 0), &mut log.events);
    assert_eq!(log.said(), ["3 gap Some(2) UnsupportedSyscall"]);
    log.write(1_100, 3, "f", 0);
    assert_eq!(
        log.said(),
        ["5 f"],
        "later positions count the unseen bytes"
    );
    assert!(log.streams.suspects(at(9_000)).is_empty());
}

#[test]
fn what_waited_in_a_stream_that_was_joined_is_no_call_that_is_not_supported() {
    let mut log = Log::default();
    log.streams.join(KEY);
    log.read(0, 5);
    assert_eq!(log.said(), ["read 5"]);
    log.streams
        .judge(at(1_001), KEY, &state(0, 5, 0), &mut log.events);
    assert_eq!(log.said(), ["0 gap Some(5) MidStream"]);
    // More than can have waited.
    log.read(2_000, 1 << 20);
    log.streams
        .judge(at(3_001), KEY, &state(0, 1 << 20, 0), &mut log.events);
    assert_eq!(
        log.said(),
        [
            "read 1048576".to_owned(),
            "5 gap Some(1048571) UnsupportedSyscall".to_owned()
        ]
    );
}

#[test]
fn a_reader_that_is_caught_up_with_is_no_suspect() {
    let mut log = Log::default();
    log.read(0, 3).write(1, 0, "abc", 0);
    assert!(log.streams.suspects(at(9_000)).is_empty());
}

#[test]
fn the_end_tells_what_never_came() {
    let mut log = Log::default();
    log.write(0, 0, "abc", 0);
    log.streams.ended(at(1), &transfer(8, 5), &mut log.events);
    assert_eq!(log.said(), ["0 abc", "3 gap Some(5) Unreadable", "eof"]);
}

#[test]
fn a_stream_that_the_kernel_forgot_goes_on_after_a_gap_of_unknown_size() {
    let mut log = Log::default();
    log.write(0, 0, "abc", 0);
    let mut again = transfer(0, 0);
    again.generation = 2;
    log.streams.written(
        at(1),
        &again,
        Some(Bytes::from_static(b"xyz")),
        &mut log.events,
    );
    assert_eq!(log.said(), ["0 abc", "3 gap None MidStream", "3 xyz"]);
}

#[test]
fn every_order_of_pieces_gives_the_same_bytes() {
    let pieces = [(0, "ab"), (2, "c"), (3, "defg"), (7, "h")];
    for order in 0..24usize {
        let mut left: Vec<_> = pieces.to_vec();
        let mut log = Log::default();
        let mut rest = order;
        while !left.is_empty() {
            let (offset, bytes) = left.remove(rest % left.len());
            rest /= left.len() + 1;
            log.write(0, offset, bytes, 0);
        }
        assert_eq!(
            log.said(),
            ["0 ab", "2 c", "3 defg", "7 h"],
            "order {order}"
        );
    }
}
