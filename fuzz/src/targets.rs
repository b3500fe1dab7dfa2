//! The targets: what is fed, and what must hold.

use std::collections::HashSet;

use bytes::Bytes;
use observer::capture::{
    CaptureEvent, Captured, End, GapReason, Joined, Pid, ProcessChange, ProcessEvent, StreamId,
    StreamKind, Timestamp,
};
use observer::jsonrpc::{Frame, Id, as_str, elements, members};
use observer::session::{ConnectionChange, Event, Output, Session, Settings};
use observer::stream::{Framer, HEAD, Piece};
use serde_json::value::RawValue;

use crate::input::Input;

const LIMIT: usize = 256;

/// Any line: what is taken for a frame is JSON in all its parts, and `serde_json` agrees.
pub fn jsonrpc(data: &[u8]) {
    let Ok(frame) = Frame::parse(Bytes::copy_from_slice(data)) else {
        return;
    };
    assert_json(frame.text());
    assert!(!frame.messages().is_empty());
    for message in frame.messages() {
        for part in [
            frame.params(message),
            frame.result(message),
            frame.error(message),
        ] {
            part.into_iter().for_each(assert_json);
        }
        if let Some(id) = message.id() {
            assert_eq!(
                Id::from_raw(&id.to_string()).as_ref(),
                Some(id),
                "an id shows itself"
            );
            assert!(id.loosely_equals(id));
        }
    }
    walk(frame.text(), 8);
}

fn assert_json(text: &str) {
    assert!(
        serde_json::from_str::<&RawValue>(text).is_ok(),
        "no JSON: {text:?}"
    );
}

fn walk(raw: &str, depth: usize) {
    if depth == 0 {
        return;
    }
    as_str(raw);
    members(raw).for_each(|(_, value)| walk(value, depth - 1));
    elements(raw).for_each(|value| walk(value, depth - 1));
}

/// Any chunks, gaps and ends of files: the pieces tile the stream, and none is too big.
pub fn framer(data: &[u8]) {
    let mut input = Input::new(data);
    let mut framer = Framer::new(LIMIT);
    let (mut next, mut reached) = (0u64, 0u64);
    while !input.is_empty() {
        match input.byte() % 8 {
            0 => framer.gap(input.number(), Some(input.number()), GapReason::RingFull),
            1 => framer.gap(input.number(), None, GapReason::MidStream),
            2 => framer.eof(),
            3 => {
                let offset = input.number();
                framer.push(offset, Bytes::copy_from_slice(input.line()));
            }
            _ => {
                let count = usize::from(input.byte());
                let bytes = Bytes::copy_from_slice(input.bytes(count));
                let length = bytes.len() as u64;
                framer.push(next, bytes);
                next = next.saturating_add(length);
            }
        }
        while let Some(piece) = framer.poll() {
            reached = reached.max(extent(&piece, reached));
        }
        assert!(
            framer.partial().len() <= LIMIT.max(HEAD),
            "memory is bounded"
        );
    }
}

/// Where a piece ends; it must begin where the last one ended, but after a gap of unknown length.
fn extent(piece: &Piece, reached: u64) -> u64 {
    let (offset, bytes) = match piece {
        Piece::Line {
            offset,
            bytes,
            text,
            after,
        } => {
            assert!(text.len() <= LIMIT && !text.contains(&b'\n'));
            assert!(*offset == reached || after.is_some());
            (*offset, *bytes)
        }
        Piece::Oversized {
            offset,
            bytes,
            head,
        }
        | Piece::Unterminated {
            offset,
            bytes,
            head,
        } => {
            assert!(head.len() <= HEAD && *offset == reached);
            (*offset, *bytes)
        }
        Piece::Gap { offset, bytes, .. } => (*offset, bytes.unwrap_or(0)),
    };
    assert!(offset >= reached, "pieces come in order");
    offset.saturating_add(bytes)
}

/// Anything that a backend could say: no panic, events only of open connections, no timer left.
pub fn session(data: &[u8]) {
    let mut input = Input::new(data);
    let mut session = Session::new(Settings {
        max_frame: LIMIT,
        ..Settings::default()
    });
    let mut now = 0;
    let mut open = HashSet::new();
    while !input.is_empty() {
        now += input.number().min(1 << 31);
        let at = Timestamp::from_nanos(now);
        if session.poll_timeout().is_some_and(|due| due <= at) {
            session.handle_timeout(at);
        }
        let event = event(&mut input);
        session.handle_event(Captured { at, event });
        drain(&mut session, &mut open);
    }
    session.finish(Timestamp::from_nanos(now));
    drain(&mut session, &mut open);
    assert_eq!(session.poll_timeout(), None);
}

fn event(input: &mut Input<'_>) -> CaptureEvent {
    let kind = input.byte();
    let stream = StreamId {
        kind: [StreamKind::Pipe, StreamKind::Socket, StreamKind::Relay][usize::from(kind >> 4) % 3],
        object: u64::from(input.byte() % 4),
        scope: 0,
    };
    let pid = Pid(u32::from(input.byte() % 5));
    let fd = i32::from(input.byte() % 4);
    match kind % 16 {
        0 => process(pid, ProcessChange::Exit { fate: None }),
        1 => {
            let (ppid, start) = (Some(Pid(u32::from(input.byte() % 5))), Some(input.number()));
            process(
                pid,
                ProcessChange::Seen {
                    ppid,
                    exe: None,
                    argv: Vec::new(),
                    start,
                },
            )
        }
        2 => CaptureEvent::Holds {
            stream,
            pid,
            end: End::Reader,
            fd,
            joined: Joined::Middle,
        },
        3 => CaptureEvent::Holds {
            stream,
            pid,
            end: End::Writer,
            fd,
            joined: Joined::Start,
        },
        4 => CaptureEvent::Eof { stream },
        5 => CaptureEvent::Refused {
            stream,
            writer: pid,
        },
        6 => CaptureEvent::Gap {
            stream,
            offset: input.number(),
            bytes: Some(input.number()),
            reason: GapReason::Unreadable,
        },
        7..=10 => CaptureEvent::Read {
            stream,
            end: input.number(),
            reader: pid,
            fd: Some(fd),
        },
        _ => CaptureEvent::Chunk {
            stream,
            offset: input.number(),
            bytes: Bytes::copy_from_slice(input.line()),
            writer: pid,
            fd: Some(fd),
        },
    }
}

fn process(pid: Pid, change: ProcessChange) -> CaptureEvent {
    CaptureEvent::Process(ProcessEvent { pid, change })
}

fn drain(session: &mut Session, open: &mut HashSet<u32>) {
    while let Some(output) = session.poll_output() {
        let Output::Observed(observed) = output else {
            continue;
        };
        let conn = match observed.event {
            Event::Connection {
                conn,
                change: ConnectionChange::Open { .. },
            } => {
                open.insert(conn.0);
                continue;
            }
            Event::Connection {
                conn,
                change: ConnectionChange::Close,
            } => {
                assert!(open.remove(&conn.0), "closed without being open");
                continue;
            }
            Event::Message { conn, .. }
            | Event::Gap { conn, .. }
            | Event::Eof { conn, .. }
            | Event::Delivered { conn, .. }
            | Event::Refused { conn, .. } => conn,
            Event::Noise(noise) => noise.conn,
            _ => continue,
        };
        assert!(
            open.contains(&conn.0),
            "an event of a connection that is not open"
        );
    }
}
