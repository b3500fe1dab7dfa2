//! What comes out of a connection's streams.

use bytes::Bytes;

use super::world::{INIT, World, call, result};
use crate::capture::{CaptureEvent, GapReason};
use crate::session::{Event, Noise, NoiseKind, Settings, Side};

#[test]
fn deliveries_are_told_once_a_message() {
    let mut world = World::new();
    let host = world.spawn(1);
    let server = world.spawn(host);
    let wire = world.wire();
    let line = format!("{INIT}\n{}\n", call(1));
    let (first, all) = (INIT.len() as u64 + 1, line.len() as u64);
    world.write(host, wire.stdin, 20, line);
    for end in [1, first - 1, first, first + 1, all - 1, all, all] {
        world.event(CaptureEvent::Read {
            stream: wire.stdin,
            end,
            reader: server,
            fd: Some(0),
        });
    }
    world.event(CaptureEvent::Read {
        stream: wire.stdin,
        end: all + 200,
        reader: server,
        fd: None,
    });
    world.write(host, wire.stdin, 20, format!("{}\n", call(2)));
    let delivered: Vec<u64> = world
        .observed()
        .filter_map(|observed| match observed.event {
            Event::Delivered {
                offset,
                from: Side::Client,
                ..
            } => Some(offset),
            _ => None,
        })
        .collect();
    assert_eq!(delivered, [first, all, all + 200]);
}

#[test]
fn what_is_read_of_a_write_that_still_blocks_is_told_before_it() {
    let mut world = World::new();
    let host = world.spawn(1);
    let server = world.spawn(host);
    let wire = world.wire();
    world.ask(host, server, wire, INIT);
    world.answer(server, host, wire, &result(0));
    world.outputs.clear();
    let lines = format!("{}\n{}\n", call(1), call(2));
    let start = INIT.len() as u64 + 1;
    for read in [20, 40] {
        world.event(CaptureEvent::Read {
            stream: wire.stdin,
            end: start + read,
            reader: server,
            fd: Some(0),
        });
    }
    world.answer(server, host, wire, &result(1));
    world.write(host, wire.stdin, 20, lines);
    let told: Vec<Option<u64>> = world
        .observed()
        .filter_map(|observed| match observed.event {
            Event::Delivered {
                offset,
                from: Side::Client,
                ..
            } => Some(Some(offset)),
            Event::Message { .. } => Some(None),
            _ => None,
        })
        .collect();
    assert_eq!(told, [Some(start + 20), None, None, None]);
}

#[test]
fn lines_are_told_with_their_place_and_size() {
    let mut world = World::with(Settings {
        max_frame: 200,
        ..Settings::default()
    });
    let host = world.spawn(1);
    let server = world.spawn(host);
    let wire = world.wire();
    world.ask(host, server, wire, INIT);
    world.answer(server, host, wire, &result(0));
    let long = "x".repeat(5000);
    world.answer(
        server,
        host,
        wire,
        &format!("\r\nlog\n{long}\n{}\r", result(1)),
    );
    let start = result(0).len() as u64 + 1;
    let told: Vec<(u64, u64, usize)> = world
        .observed()
        .filter_map(|observed| match &observed.event {
            Event::Noise(Noise {
                offset,
                bytes,
                text,
                ..
            }) => Some((*offset, *bytes, text.len())),
            Event::Message {
                from: Side::Server,
                offset,
                bytes,
                frame,
                ..
            } => Some((*offset, *bytes, frame.text().len())),
            _ => None,
        })
        .map(|(offset, bytes, text)| (offset.expect("a place"), bytes, text))
        .collect();
    let size = result(1).len();
    let expected = [
        (0, start, size),
        (start, 2, 1),
        (start + 2, 4, 3),
        (start + 6, 5001, 4096),
        (start + 5007, size as u64 + 2, size),
    ];
    assert_eq!(told, expected);
    let kinds: Vec<NoiseKind> = world
        .observed()
        .filter_map(|observed| match &observed.event {
            Event::Noise(noise) => Some(noise.kind),
            _ => None,
        })
        .collect();
    assert_eq!(
        kinds,
        [NoiseKind::Blank, NoiseKind::Text, NoiseKind::Oversized]
    );
}

#[test]
fn a_gap_is_told_at_once_and_the_torn_line_with_it() {
    let mut world = World::new();
    let host = world.spawn(1);
    let server = world.spawn(host);
    let wire = world.wire();
    world.ask(host, server, wire, INIT);
    world.answer(server, host, wire, &result(0));
    world.outputs.clear();
    let start = result(0).len() as u64 + 1;
    world.write(server, wire.stdout, 1, "{\"jsonrpc\"");
    let reason = GapReason::RingFull;
    world.event(CaptureEvent::Gap {
        stream: wire.stdout,
        offset: start + 10,
        bytes: Some(100),
        reason,
    });
    assert_eq!(world.log(), [format!("1 Server gap {start}+110 RingFull")]);
    let bytes = Bytes::from(format!("a tail\"}}\n{}\n", result(1)));
    let (stream, fd) = (wire.stdout, Some(1));
    world.event(CaptureEvent::Chunk {
        stream,
        offset: start + 110,
        bytes,
        writer: server,
        fd,
    });
    let tail = start + 110;
    assert_eq!(
        world.log()[1..],
        [
            format!("1 Server gap {tail}+9 RingFull"),
            "1 Server result 1".to_owned()
        ]
    );
}

#[test]
fn a_whole_message_right_after_a_gap_is_one() {
    let mut world = World::new();
    let host = world.spawn(1);
    let server = world.spawn(host);
    let wire = world.wire();
    world.ask(host, server, wire, INIT);
    let reason = GapReason::RingFull;
    let offset = INIT.len() as u64 + 1;
    world.event(CaptureEvent::Gap {
        stream: wire.stdin,
        offset,
        bytes: Some(50),
        reason,
    });
    let (stream, fd, bytes) = (wire.stdin, Some(20), Bytes::from(call(3) + "\n"));
    world.event(CaptureEvent::Chunk {
        stream,
        offset: offset + 50,
        bytes,
        writer: host,
        fd,
    });
    assert_eq!(
        world.log()[2..],
        ["1 Client gap 89+50 RingFull", "1 Client tools/call 3"]
    );
}
