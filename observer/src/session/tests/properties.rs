//! What holds for any traffic.

use bytes::Bytes;
use proptest::prelude::*;
use proptest::sample::Index;

use super::world::{INIT, SECOND, Wire, World, call, result};
use crate::capture::{
    CaptureEvent, End, GapReason, Joined, Pid, ProcessChange, ProcessEvent, StreamId, StreamKind,
};
use crate::session::{Event, Output, Side};

/// The messages of a connection by direction, from the log.
fn by_direction(log: &[String], conn: usize) -> [Vec<String>; 2] {
    ["Client", "Server"].map(|side| {
        let start = format!("{conn} {side} ");
        log.iter()
            .filter_map(|line| line.strip_prefix(&start))
            .map(str::to_owned)
            .collect()
    })
}

/// One host, three servers; each pair of streams has its script. The order in which the streams
/// go on is arbitrary.
fn interleaved(order: &[Index], chunk: usize) -> Vec<String> {
    let mut world = World::new();
    let host = world.spawn(1);
    let mut scripts: Vec<(Pid, Pid, StreamId, Vec<u8>)> = Vec::new();
    for number in 0..3 {
        let server = world.spawn(host);
        let Wire { stdin, stdout, .. } = world.wire();
        let asked = format!("{INIT}\n{}\n", call(number + 1));
        let told = format!("{}\nnoise\n{}\n", result(0), result(number + 1));
        scripts.push((host, server, stdin, asked.into()));
        scripts.push((server, host, stdout, told.into()));
    }
    let mut order = order.iter().cycle();
    while !scripts.is_empty() {
        let index = order.next().map_or(0, |index| index.index(scripts.len()));
        let (writer, reader, stream, text) = &mut scripts[index];
        let rest = text.split_off(chunk.min(text.len()));
        let (writer, reader, stream) = (*writer, *reader, *stream);
        world.write(writer, stream, 7, std::mem::replace(text, rest));
        world.read(reader, stream, 8);
        scripts.retain(|(.., text)| !text.is_empty());
    }
    world.wait(2 * SECOND);
    world.finish();
    world.log()
}

/// Anything that a backend could say, of a few processes and streams.
fn event() -> impl Strategy<Value = CaptureEvent> {
    let pid = || (1..6u32).prop_map(Pid);
    let stream = || {
        (0..4u64).prop_map(|object| StreamId {
            kind: StreamKind::Pipe,
            object,
            scope: 0,
        })
    };
    let fd = || prop::option::of(0..4i32);
    let offset = || prop_oneof![3 => 0..300u64, 1 => any::<u64>()];
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Bytes::from),
        Just(Bytes::from(format!("{INIT}\n"))),
        (0..3u32).prop_map(|id| Bytes::from(call(id) + "\n")),
        (0..3u32).prop_map(|id| Bytes::from(result(id) + "\n")),
        Just(Bytes::from(
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n"
        )),
    ];
    let seen = (pid(), prop::option::of(pid()), prop::option::of(0..3u64)).prop_map(
        |(pid, ppid, start)| ProcessEvent {
            pid,
            change: ProcessChange::Seen {
                ppid,
                exe: None,
                argv: Vec::new(),
                start,
            },
        },
    );
    let exit = pid().prop_map(|pid| ProcessEvent {
        pid,
        change: ProcessChange::Exit { fate: None },
    });
    let end = prop_oneof![Just(End::Reader), Just(End::Writer)];
    let joined = prop_oneof![Just(Joined::Start), Just(Joined::Middle)];
    prop_oneof![
        1 => seen.prop_map(CaptureEvent::Process),
        1 => exit.prop_map(CaptureEvent::Process),
        1 => (stream(), pid(), end, 0..4i32, joined).prop_map(|(stream, pid, end, fd, joined)| {
            CaptureEvent::Holds { stream, pid, end, fd, joined }
        }),
        5 => (stream(), offset(), bytes, pid(), fd()).prop_map(
            |(stream, offset, bytes, writer, fd)| {
                CaptureEvent::Chunk { stream, offset, bytes, writer, fd }
            }
        ),
        3 => (stream(), offset(), pid(), fd()).prop_map(|(stream, end, reader, fd)| {
            CaptureEvent::Read { stream, end, reader, fd }
        }),
        1 => (stream(), offset(), prop::option::of(0..50u64)).prop_map(
            |(stream, offset, bytes)| {
                CaptureEvent::Gap { stream, offset, bytes, reason: GapReason::RingFull }
            }
        ),
        1 => stream().prop_map(|stream| CaptureEvent::Eof { stream }),
        1 => (stream(), pid()).prop_map(|(stream, writer)| CaptureEvent::Refused { stream, writer }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_interleaving_gives_the_same_messages_per_direction(
        order in prop::collection::vec(any::<Index>(), 1..40), chunk in 1..200usize,
    ) {
        let log = interleaved(&order, chunk);
        let opened = log.iter().filter(|line| line.contains("open") && line.ends_with("by 2"));
        prop_assert_eq!(opened.count(), 3, "{:?}", &log);
        let mut last = Vec::new();
        for conn in 1..=3 {
            let [client, server] = by_direction(&log, conn);
            prop_assert_eq!(client.len(), 2, "{:?}", &log);
            prop_assert_eq!(&client[0], "initialize 0");
            let number = client[1].strip_prefix("tools/call ").unwrap_or_default().to_owned();
            let expected = ["result 0".to_owned(), "Text 6".to_owned(), format!("result {number}")];
            prop_assert_eq!(server, expected, "{:?}", &log);
            last.push(number);
        }
        last.sort();
        prop_assert_eq!(last, ["1", "2", "3"]);
    }

    #[test]
    fn a_gap_anywhere_never_invents_a_message(
        cuts in prop::collection::vec(any::<Index>(), 2), split in 1..50usize,
    ) {
        let mut world = World::new();
        let host = world.spawn(1);
        let server = world.spawn(host);
        let wire = world.wire();
        world.ask(host, server, wire, INIT);
        world.answer(server, host, wire, &result(0));
        let inner = result(5).replace('"', "\\\"");
        let nested = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"a\":{},\"b\":\"{inner}\",\"c\":[{}]}}}}\n",
            result(6), result(7),
        );
        let text = format!("noise\n{nested}{}\n", result(2)).into_bytes();
        let start = result(0).len() as u64 + 1;
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.sort_unstable();
        let (stream, fd, writer) = (wire.stdout, Some(1), server);
        let mut offset = start;
        for piece in text[..cuts[0]].chunks(split) {
            let bytes = Bytes::copy_from_slice(piece);
            world.event(CaptureEvent::Chunk { stream, offset, bytes, writer, fd });
            offset += piece.len() as u64;
        }
        let lost = (cuts[1] - cuts[0]) as u64;
        let reason = GapReason::RingFull;
        world.event(CaptureEvent::Gap { stream, offset, bytes: Some(lost), reason });
        offset += lost;
        for piece in text[cuts[1]..].chunks(split) {
            let bytes = Bytes::copy_from_slice(piece);
            world.event(CaptureEvent::Chunk { stream, offset, bytes, writer, fd });
            offset += piece.len() as u64;
        }
        let [_, told] = by_direction(&world.log(), 1);
        for line in &told {
            let known = ["result 0", "result 1", "result 2", "Text 6"].contains(&line.as_str());
            prop_assert!(known || line.starts_with("gap"), "{:?}", &told);
        }
        let mut position = 0;
        for observed in world.observed() {
            let (offset, bytes) = match &observed.event {
                Event::Message { from: Side::Server, offset, bytes, .. } => (offset.unwrap_or(0), *bytes),
                Event::Noise(noise) => (noise.offset.unwrap_or(0), noise.bytes),
                Event::Gap { offset, bytes, .. } => (*offset, bytes.unwrap_or(0)),
                _ => continue,
            };
            prop_assert_eq!(offset, position, "messages, noise and gaps tile the stream");
            position += bytes;
        }
        prop_assert_eq!(position, start + text.len() as u64);
    }

    #[test]
    fn whatever_the_backend_says_the_session_holds(
        events in prop::collection::vec((event(), 0..400u64), 0..80)
    ) {
        let mut world = World::new();
        for (event, pause) in events {
            world.event(event);
            world.wait(std::time::Duration::from_millis(pause));
        }
        world.finish();
        let mut open = std::collections::HashSet::new();
        for output in &world.outputs {
            let Output::Observed(observed) = output else { continue };
            let conn = match &observed.event {
                Event::Connection { conn, change: crate::session::ConnectionChange::Open { .. } } => {
                    open.insert(*conn);
                    continue;
                }
                Event::Connection { conn, .. } => {
                    prop_assert!(open.remove(conn), "closed once");
                    continue;
                }
                Event::Message { conn, .. } | Event::Eof { conn, .. } | Event::Gap { conn, .. }
                | Event::Delivered { conn, .. } | Event::Refused { conn, .. } => *conn,
                Event::Noise(noise) => noise.conn,
                _ => continue,
            };
            prop_assert!(open.contains(&conn), "{:?} outside its connection", observed);
        }
    }
}
