//! How long the live view takes to answer a key, with 100,000 calls in its lists and a message of
//! 64 MiB among them: `cargo bench --bench view`.
//!
//! A frame of the screen is 16 ms; the longest of all tries counts.

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use observer::capture::{Pid, Timestamp};
use observer::jsonrpc::Frame;
use observer::pipeline::Pipeline;
use observer::record::{Backend, Header, Payload, SCHEMA};
use observer::session::{self, ConnId, ConnectionChange, Event, Observed, Party, Side, Transport};
use observer::tui::{Arrival, Source, Still, Theme};
use observer::verdict;
use ratatui::crossterm::event::KeyCode;

const CALLS: u64 = 100_000;
const FRAME: Duration = Duration::from_millis(16);
const MEMORY: usize = 1 << 30;

fn main() {
    let (mut view, arriving) = full();
    println!("{:44}{:>12}{:>12}", "", "median", "longest");
    report("a batch of 512 outputs", arriving, "");

    let keys = [
        ("a row down, drawn", "j"),
        ("to the last row and back, drawn", "Gg"),
        ("the next finding, drawn", "n"),
        ("another screen, drawn", "1"),
        ("the frames, drawn", "4"),
        ("the timeline, drawn", "5"),
        ("back to the calls, drawn", "2"),
        ("details and back, drawn", "\nq"),
    ];
    for (name, keys) in keys {
        let mut press = || {
            view.type_in(keys);
            black_box(view.draw());
        };
        report(name, (0..20).map(|_| timed(&mut press)).collect(), "");
    }
    for (name, filter) in [
        ("filter by outcome", "outcome:abandoned"),
        ("filter by any word", "tool-77"),
        ("filter by text", "text:nowhere"),
    ] {
        view.type_in(&format!("/{filter}"));
        let first = timed(|| {
            view.press(KeyCode::Enter);
            black_box(view.draw());
        });
        let rest: Vec<Duration> = (0..2000).map(|_| timed(|| view.go_on())).collect();
        let whole: Duration = rest.iter().sum();
        report(&format!("{name}, the key"), vec![first], "");
        report(
            &format!("{name}, a piece of the rest"),
            rest,
            &format!("{whole:.0?} in all"),
        );
        view.press(KeyCode::Esc);
        view.finish();
    }
    for name in [
        "sort by how long they took",
        "sort by state",
        "sort by name",
        "sort by size",
    ] {
        report(
            name,
            vec![timed(|| {
                view.type_in("s");
                black_box(view.draw());
            })],
            "",
        );
    }
    view.type_in("s");
    huge(&mut view);
    report(
        "a 64 MiB message opened, drawn",
        vec![timed(|| {
            view.type_in("G\n");
            black_box(view.draw());
        })],
        "",
    );
    report(
        "a line down in it, drawn",
        vec![timed(|| {
            view.type_in("j");
            black_box(view.draw());
        })],
        "",
    );
    report(
        "more lines of it, drawn",
        vec![timed(|| {
            view.type_in("G ");
            black_box(view.draw());
        })],
        "",
    );
}

fn report(name: &str, mut times: Vec<Duration>, note: &str) {
    times.sort();
    let longest = times.last().copied().unwrap_or_default();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    let late = if longest > FRAME {
        "  over a frame"
    } else {
        ""
    };
    println!("{name:44}{median:>12.1?}{longest:>12.1?}  {note}{late}");
}

fn timed(run: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    run();
    begun.elapsed()
}

fn source() -> Source {
    let header = Header {
        t: Timestamp::ZERO,
        schema: SCHEMA.into(),
        observer: String::new(),
        started: String::new(),
        backend: Backend::Replay,
        hooks: Vec::new(),
        platform: None,
        kernel: None,
        payload: Payload::Full,
        scope: None,
        settings: None,
        part: None,
    };
    Source {
        header,
        title: "bench".into(),
        live: false,
    }
}

/// A view with all the calls, and how long each batch took to be taken in.
fn full() -> (Still, Vec<Duration>) {
    let mut pipeline = Pipeline::new(session::Settings::default(), verdict::Settings::default());
    let theme = Theme {
        colors: true,
        unicode: true,
        light: false,
    };
    let mut view = Still::new(source(), theme, MEMORY, (160, 50));
    let mut waiting = Vec::new();
    let mut times = Vec::new();
    let mut feed = |at: u64, event: Event| {
        pipeline.handle_observed(Observed {
            at: Timestamp::from_nanos(at),
            event,
        });
        while let Some(output) = pipeline.poll_output() {
            waiting.push(Arrival {
                output,
                place: None,
            });
        }
        if waiting.len() >= 512 {
            let batch = std::mem::take(&mut waiting);
            times.push(timed(|| view.arrive(batch)));
        }
    };
    let party = |pid, exe: &str| {
        Some(Party {
            pid: Pid(pid),
            exe: Some(exe.into()),
        })
    };
    let change = ConnectionChange::Open {
        client: party(1, "/usr/bin/host"),
        server: party(2, "/usr/bin/server"),
        transport: Transport::Pipe,
        streams: [None, None],
    };
    feed(
        0,
        Event::Connection {
            conn: ConnId(1),
            change,
        },
    );
    for id in 0..CALLS {
        let at = id * 10_000_000;
        let tool = id % 100;
        feed(
            at,
            message(
                Side::Client,
                format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"tool-{tool}","arguments":{{"n":{id}}}}}}}"#
                ),
            ),
        );
        if id % 100 != 99 {
            feed(
                at + 5_000_000,
                message(
                    Side::Server,
                    format!(
                        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"ok"}}]}}}}"#
                    ),
                ),
            );
        }
    }
    view.arrive(waiting);
    view.end();
    (view, times)
}

#[expect(clippy::expect_used, reason = "the texts are messages")]
fn message(from: Side, json: String) -> Event {
    Event::Message {
        conn: ConnId(1),
        from,
        offset: None,
        bytes: json.len() as u64 + 1,
        frame: Frame::parse(Bytes::from(json)).expect("a frame"),
    }
}

/// A call whose request has 64 MiB.
fn huge(view: &mut Still) {
    let item = r#"{"key":"a value of some length","numbers":[1,2,3],"more":{"nested":true}},"#;
    let items = item.repeat((64 << 20) / item.len());
    let json = format!(
        r#"{{"jsonrpc":"2.0","id":"huge","method":"tools/call","params":{{"name":"huge","arguments":[{items}0]}}}}"#
    );
    let at = Timestamp::from_nanos(CALLS * 10_000_000);
    let event = message(Side::Client, json);
    let output = observer::pipeline::Output::Observed(Observed { at, event });
    view.arrive(vec![Arrival {
        output,
        place: None,
    }]);
}
