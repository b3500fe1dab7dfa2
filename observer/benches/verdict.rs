//! How fast the judge is and how much memory it takes: `cargo bench --bench verdict`.
//!
//! A day of traffic is ten million messages with all that a judge must remember; memory is the
//! process's resident size, read before and after. The number of calls can be given:
//! `cargo bench --bench verdict -- 500000`.

use std::time::{Duration, Instant};

use bytes::Bytes;
use observer::capture::Timestamp;
use observer::jsonrpc::Frame;
use observer::session::{ConnId, Event, Observed, Side};
use observer::verdict::{Judge, Output, Settings};

fn main() {
    let given = std::env::args().filter_map(|arg| arg.parse().ok()).next();
    let calls: u64 = given.unwrap_or(3_333_333);
    println!("{:44}{:>14}{:>14}", "", "ns/message", "resident MB");
    in_flight(100_000);
    in_flight(1_000_000);
    a_day(calls);
}

/// Calls that nobody answers, then all their answers.
fn in_flight(calls: u64) {
    let before = resident();
    let mut judge = Judge::new(Settings::default());
    let started = Instant::now();
    for id in 0..calls {
        judge.handle_event(&message(id, Side::Client, &call(id)));
        drain(&mut judge);
    }
    report(
        &format!("{calls} calls in flight"),
        calls,
        started.elapsed(),
        before,
    );
    let started = Instant::now();
    for id in 0..calls {
        judge.handle_event(&message(calls + id, Side::Server, &answer(id)));
        drain(&mut judge);
    }
    report("  all answered", calls, started.elapsed(), before);
}

/// Calls with progress and an answer, one after the other; a tenth of them is cancelled.
fn a_day(calls: u64) {
    let before = resident();
    let mut judge = Judge::new(Settings::default());
    let tenth = calls / 10;
    for part in 0..10 {
        let started = Instant::now();
        for id in part * tenth..(part + 1) * tenth {
            judge.handle_event(&message(id, Side::Client, &call(id)));
            judge.handle_event(&message(id, Side::Server, &progress(id)));
            let end = if id % 10 == 0 { cancel(id) } else { answer(id) };
            let from = if id % 10 == 0 {
                Side::Client
            } else {
                Side::Server
            };
            judge.handle_event(&message(id, from, &end));
            drain(&mut judge);
        }
        report(
            &format!("message {}", (part + 1) * tenth * 3),
            tenth * 3,
            started.elapsed(),
            before,
        );
    }
}

#[expect(clippy::cast_precision_loss, reason = "a display value")]
fn report(what: &str, messages: u64, time: Duration, before: f64) {
    let each = time.as_nanos() as f64 / messages as f64;
    println!("{what:44}{each:>14.0}{:>14.1}", resident() - before);
}

fn message(number: u64, from: Side, json: &str) -> Observed {
    #[expect(clippy::expect_used, reason = "the texts below are messages")]
    let frame = Frame::parse(Bytes::copy_from_slice(json.as_bytes())).expect("a message");
    let at = Timestamp::from_nanos(number * 8_640_000);
    let bytes = json.len() as u64 + 1;
    Observed {
        at,
        event: Event::Message {
            conn: ConnId(1),
            from,
            offset: None,
            bytes,
            frame,
        },
    }
}

fn call(id: u64) -> String {
    let params = format!(
        r#"{{"name":"search","arguments":{{"query":"words {id}"}},"_meta":{{"progressToken":{id}}}}}"#
    );
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#)
}

fn answer(id: u64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"ok"}}]}}}}"#
    )
}

fn progress(id: u64) -> String {
    let params = format!(r#"{{"progressToken":{id},"progress":1}}"#);
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#)
}

fn cancel(id: u64) -> String {
    let params = format!(r#"{{"requestId":{id},"reason":"timed out"}}"#);
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#)
}

fn drain(judge: &mut Judge) {
    while let Some(output) = judge.poll_output() {
        std::hint::black_box::<Output>(output);
    }
}

/// The process's resident size in megabytes; zero where nobody says.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kilobytes.unwrap_or(0.0) / 1024.0
}
