//! How fast the pure layers are, as ratios against a plain copy of the same bytes in the same
//! run: `cargo bench --bench pure`.
//!
//! Each case is run several times and the best run counts: on a shared machine the others show
//! the neighbours.

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use observer::capture::{
    CaptureEvent, Captured, Pid, ProcessChange, ProcessEvent, StreamId, StreamKind, Timestamp,
};
use observer::jsonrpc::Frame;
use observer::redact::{Key, Plan, Redactor};
use observer::session::{ConnId, Event, Observed, Session, Settings, Side};
use observer::stream::Framer;

const RUNS: usize = 7;
const LIMIT: usize = 64 * 1024 * 1024;

fn main() {
    let mut text = String::new();
    while text.len() < 1_000_000 {
        text.push_str("A line of some tool's output, with \\\"quotes\\\" now and then.\\n");
    }
    let large = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}}}\n"
    );
    let small = "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"ok\"}]}}\n";
    println!(
        "{:34}{:>12}{:>16}{:>14}",
        "", "MB/s", "messages/s", "copies' time"
    );
    for (name, line, count) in [("1 MB", large.as_str(), 32), ("87 B", small, 200_000)] {
        let bytes = Bytes::from(line.repeat(count));
        let copy = best(|| copy(&bytes));
        let report = |what: &str, time: Duration| {
            let seconds = time.as_secs_f64();
            println!(
                "{:34}{:>12.0}{:>16.0}{:>14.1}",
                format!("{name} messages, {what}"),
                bytes.len() as f64 / seconds / 1e6,
                count as f64 / seconds,
                seconds / copy.as_secs_f64(),
            );
        };
        report("copied", copy);
        report("framed", best(|| frame(&bytes, 16 * 1024)));
        report("parsed", best(|| parse(&bytes)));
        report("searched for secrets", best(|| redact(&bytes)));
        report("through a session", best(|| session(&bytes, 16 * 1024)));
        if count > 1000 {
            report(
                "a session, a write each",
                best(|| session(&bytes, line.len())),
            );
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a benchmark is there to measure time"
)]
fn best(mut run: impl FnMut()) -> Duration {
    let time = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    (0..RUNS).map(|_| time(&mut run)).min().unwrap_or_default()
}

/// What it costs to move the bytes once, in pieces of the probe's record size.
fn copy(bytes: &Bytes) {
    let mut buffer = vec![0; 16 * 1024];
    for chunk in bytes.chunks(buffer.len()) {
        buffer[..chunk.len()].copy_from_slice(chunk);
        black_box(&buffer);
    }
}

fn frame(bytes: &Bytes, size: usize) {
    let mut framer = Framer::new(LIMIT);
    for offset in (0..bytes.len()).step_by(size) {
        framer.push(
            offset as u64,
            bytes.slice(offset..bytes.len().min(offset + size)),
        );
        while let Some(piece) = framer.poll() {
            black_box(piece);
        }
    }
}

fn parse(bytes: &Bytes) {
    let mut rest = bytes.clone();
    while let Some(end) = memchr::memchr(b'\n', &rest) {
        let line = rest.split_to(end + 1);
        assert!(black_box(Frame::parse(line)).is_ok());
    }
}

/// Parsed, and looked through for what must not be written down: there is nothing.
fn redact(bytes: &Bytes) {
    let redactor = Redactor::new(Plan::default(), Key::new([7; 32]));
    let (mut rest, mut offset) = (bytes.clone(), 0);
    while let Some(end) = memchr::memchr(b'\n', &rest) {
        let line = rest.split_to(end + 1);
        let size = line.len() as u64;
        let Ok(frame) = Frame::parse(line) else {
            continue;
        };
        black_box(redactor.redact(Observed {
            at: Timestamp::ZERO,
            event: Event::Message {
                conn: ConnId(1),
                from: Side::Server,
                offset: Some(offset),
                bytes: size,
                frame,
            },
        }));
        offset += size;
    }
}

fn session(bytes: &Bytes, size: usize) {
    let mut session = Session::new(Settings::default());
    let mut now = 0;
    let mut event = |session: &mut Session, event| {
        now += 1000;
        session.handle_event(Captured {
            at: Timestamp::from_nanos(now),
            event,
        });
        while let Some(output) = session.poll_output() {
            black_box(output);
        }
    };
    let stream = |object| StreamId {
        kind: StreamKind::Pipe,
        object,
        scope: 0,
    };
    let (host, server) = (Pid(10), Pid(11));
    let seen = ProcessChange::Seen {
        ppid: Some(host),
        exe: None,
        argv: Vec::new(),
        start: None,
    };
    event(
        &mut session,
        CaptureEvent::Process(ProcessEvent {
            pid: server,
            change: seen,
        }),
    );
    let call = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\"}\n".into();
    let write = |object, offset, bytes, writer, fd| CaptureEvent::Chunk {
        stream: stream(object),
        offset,
        bytes,
        writer,
        fd: Some(fd),
    };
    let read = |object, end, reader| CaptureEvent::Read {
        stream: stream(object),
        end,
        reader,
        fd: None,
    };
    event(&mut session, write(1, 0, call, host, 20));
    event(&mut session, read(1, 20, server));
    for offset in (0..bytes.len()).step_by(size) {
        let chunk = bytes.slice(offset..bytes.len().min(offset + size));
        let end = (offset + chunk.len()) as u64;
        event(&mut session, write(2, offset as u64, chunk, server, 1));
        event(&mut session, read(2, end, host));
    }
}
