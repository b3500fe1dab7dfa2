//! A log that is replayed gives the verdicts of the live run, record for record.
#![expect(
    clippy::expect_used,
    reason = "a test fails by panicking, in its helpers too"
)]

use std::time::Duration;

use bytes::Bytes;
use observer::capture::{
    CaptureEvent, Captured, Fate, GapReason, InterruptKind, Pid, ProcessChange, ProcessEvent,
    StreamId, StreamKind, Timestamp,
};
use observer::pipeline::{Output, Pipeline};
use observer::record::{Record, parse_line};
use observer::{session, verdict};
use proptest::prelude::*;

const HOST: Pid = Pid(10);
const SERVER: Pid = Pid(11);

/// What happens next in a run.
#[derive(Clone, Debug)]
enum Step {
    /// The host sends a request: the tool's number.
    Request(u8),
    /// The server answers the request with this number.
    Answer(u8),
    /// The host cancels it.
    Cancel(u8),
    /// The server reports progress, or prints something.
    Noise,
    Esc,
    Gap,
    /// The host or the server ends.
    Exit(bool),
    /// Nothing, and the clock is looked at meanwhile.
    Silence,
}

fn any_step() -> impl Strategy<Value = (Step, u64)> {
    let step = prop_oneof![
        4 => (0u8..3).prop_map(Step::Request),
        3 => (0u8..6).prop_map(Step::Answer),
        1 => (0u8..6).prop_map(Step::Cancel),
        1 => Just(Step::Noise),
        1 => Just(Step::Esc),
        1 => Just(Step::Gap),
        1 => any::<bool>().prop_map(Step::Exit),
        3 => Just(Step::Silence),
    ];
    // Nanoseconds until then: the log keeps microseconds.
    (step, prop_oneof![0..2_000u64, 0..4_000_000_000u64])
}

/// The live run: a pipeline, its clock, and what came out of it.
struct Run {
    pipeline: Pipeline,
    now: Timestamp,
    sent: [u64; 2],
    requests: u8,
    outputs: Vec<Output>,
}

impl Run {
    fn new() -> Self {
        let mut run = Self {
            pipeline: pipeline(),
            now: Timestamp::ZERO,
            sent: [0; 2],
            requests: 0,
            outputs: Vec::new(),
        };
        for (pid, program) in [(HOST, "codex"), (SERVER, "server")] {
            let change = ProcessChange::Seen {
                ppid: (pid == SERVER).then_some(HOST),
                exe: Some(format!("/usr/bin/{program}")),
                argv: vec![program.into()],
                start: Some(pid.0.into()),
            };
            run.event(CaptureEvent::Process(ProcessEvent { pid, change }));
        }
        run.write(HOST, r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"codex-mcp-client","version":"0.137.0"}}}"#);
        run.write(SERVER, r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"lab","version":"1"}}}"#);
        run
    }

    fn step(&mut self, step: &Step, after: u64) {
        self.now = self.now + Duration::from_nanos(after);
        match step {
            Step::Request(tool) => {
                self.requests += 1;
                let id = self.requests;
                self.write(HOST, &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"tool{tool}","arguments":{{}}}}}}"#));
            }
            Step::Answer(id) => {
                self.write(
                    SERVER,
                    &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#),
                );
            }
            Step::Cancel(id) => {
                self.write(HOST, &format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#));
            }
            Step::Noise => self.write(SERVER, "Listening on \u{1b}[1mstdio"),
            Step::Esc => self.event(CaptureEvent::Interrupt {
                pid: HOST,
                kind: InterruptKind::KeyEsc,
                sender: None,
            }),
            Step::Gap => {
                let offset = self.sent[1];
                self.sent[1] += 100;
                self.event(CaptureEvent::Gap {
                    stream: stream(SERVER),
                    offset,
                    bytes: Some(100),
                    reason: GapReason::RingFull,
                });
            }
            Step::Exit(host) => {
                let pid = if *host { HOST } else { SERVER };
                let change = ProcessChange::Exit {
                    fate: Some(Fate::Code(0)),
                };
                self.event(CaptureEvent::Process(ProcessEvent { pid, change }));
            }
            Step::Silence => {
                self.pipeline.handle_timeout(self.now);
                self.drain();
            }
        }
    }

    fn write(&mut self, writer: Pid, line: &str) {
        let index = usize::from(writer == SERVER);
        let bytes = Bytes::from(format!("{line}\n"));
        let offset = self.sent[index];
        self.sent[index] += bytes.len() as u64;
        let reader = if writer == HOST { SERVER } else { HOST };
        let (stream, end) = (stream(writer), self.sent[index]);
        self.event(CaptureEvent::Chunk {
            stream,
            offset,
            bytes,
            writer,
            fd: Some(1),
        });
        self.event(CaptureEvent::Read {
            stream,
            end,
            reader,
            fd: Some(0),
        });
    }

    fn event(&mut self, event: CaptureEvent) {
        self.pipeline.handle_event(Captured {
            at: self.now,
            event,
        });
        self.drain();
    }

    fn drain(&mut self) {
        self.outputs
            .extend(std::iter::from_fn(|| self.pipeline.poll_output()));
    }

    fn finish(mut self) -> Vec<Output> {
        self.pipeline.finish(self.now);
        self.drain();
        self.outputs
    }
}

fn pipeline() -> Pipeline {
    Pipeline::new(session::Settings::default(), verdict::Settings::default())
}

/// The pipe that a process writes to.
fn stream(writer: Pid) -> StreamId {
    StreamId {
        kind: StreamKind::Pipe,
        object: writer.0.into(),
        scope: 0,
    }
}

/// The log of what came out.
fn log(outputs: &[Output]) -> Vec<u8> {
    let mut log = Vec::new();
    for output in outputs {
        match output {
            Output::Observed(observed) => Record::from(observed).write_line(&mut log),
            Output::Derived(derived) => Record::from(derived).write_line(&mut log),
            Output::GiveUp(_) | Output::Forget(_) => {}
        }
    }
    log
}

fn replay(log: &[u8]) -> Vec<Output> {
    let mut pipeline = pipeline();
    let mut end = Timestamp::ZERO;
    let mut outputs = Vec::new();
    for line in log
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
    {
        let record = parse_line(line).expect("a record").expect("a known record");
        end = end.max(record.t());
        if let Some(observed) = record.into_observed() {
            pipeline.handle_observed(observed);
        }
        outputs.extend(std::iter::from_fn(|| pipeline.poll_output()));
    }
    pipeline.finish(end);
    outputs.extend(std::iter::from_fn(|| pipeline.poll_output()));
    outputs
}

proptest! {
    #[test]
    fn a_replay_concludes_what_the_live_run_did(
        steps in proptest::collection::vec(any_step(), 0..40),
    ) {
        let mut run = Run::new();
        for (step, after) in &steps {
            run.step(step, *after);
        }
        let live = log(&run.finish());
        let again = log(&replay(&live));
        prop_assert_eq!(String::from_utf8(again), String::from_utf8(live));
    }
}

#[test]
fn the_runs_of_this_test_have_verdicts() {
    let mut run = Run::new();
    for after in [0, 6_000_000_000, 3_000_000_000] {
        run.step(&Step::Request(1), after);
    }
    run.step(&Step::Silence, 5_000_000_000);
    run.step(&Step::Answer(1), 0);
    let log = String::from_utf8(log(&run.finish())).expect("UTF-8");
    assert!(log.contains(r#""rule":"abandoned-call""#), "{log}");
    assert!(log.contains(r#""outcome":"abandoned""#), "{log}");
}
