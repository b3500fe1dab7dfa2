//! Runs a child under a probe and gathers what the probe saw.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use observer::capture::ebpf::{DEFAULT_RING, Handle, Options, Probe, ProbeError, Scope};
use observer::capture::{CaptureEvent, Captured, GapReason, Loss, Pid};

use crate::child;

/// What a probe saw.
pub(crate) struct Seen {
    pub(crate) events: Vec<Captured>,
    pub(crate) loss: Loss,
}

/// A child that moved bytes through one stream, when it has ended.
pub(crate) struct Moved {
    pub(crate) child: Pid,
    pub(crate) seen: Seen,
    /// The stream's name, such as `pipe:[123]`.
    pub(crate) stream: String,
    pub(crate) arrived: Arrived,
    /// How many bytes the child moved.
    pub(crate) total: u64,
}

/// What arrived of one stream.
#[derive(Debug, Default)]
pub(crate) struct Arrived {
    /// Chunks by offset.
    pub(crate) chunks: Vec<(u64, Vec<u8>)>,
    /// Gaps: offset, size, reason.
    pub(crate) gaps: Vec<(u64, u64, GapReason)>,
    /// How far it was read.
    pub(crate) read: u64,
    pub(crate) eof: bool,
    pub(crate) refused: bool,
}

/// A loaded probe, or a reason not to run the test.
pub(crate) fn load(options: &Options) -> Option<Probe> {
    let error = match Probe::load(options) {
        Ok(probe) => return Some(probe),
        Err(error) => error,
    };
    if let ProbeError::Rejected { log, .. } = &error {
        panic!("{error}:\n{log}");
    }
    let mut reason = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        reason = format!("{reason}: {cause}");
        source = cause.source();
    }
    assert!(
        std::env::var_os("OBSERVER_REQUIRE_KERNEL").is_none(),
        "the kernel tests are required, and cannot run: {reason}"
    );
    // Not through `eprintln!`, which the test harness swallows.
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
    None
}

/// A child under a probe.
pub(crate) struct Watch {
    pub(crate) handle: Handle,
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    probe: JoinHandle<Result<Loss, ProbeError>>,
    events: Arc<Mutex<Vec<Captured>>>,
    gather: JoinHandle<()>,
}

impl Watch {
    /// Starts a child of `super::child` that will do `what`, and watches it; `None` where this
    /// machine lets no probe in.
    pub(crate) fn start(what: &str) -> Option<Self> {
        Self::with_ring(what, DEFAULT_RING)
    }

    /// The same, with a ring of this size.
    pub(crate) fn with_ring(what: &str, ring_bytes: u32) -> Option<Self> {
        let options = Options {
            ring_bytes,
            ..Options::new(Scope::Pids(Vec::new()))
        };
        let probe = load(&options)?;
        Some(Self::command(probe, &mut child::command(what)))
    }

    /// Watches any command; its stdin and stdout are pipes to the test.
    pub(crate) fn command(mut probe: Probe, command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child starts");
        probe.watch_pid(Pid(child.id())).unwrap();
        let handle = probe.handle();
        let (sender, mut receiver) = tokio::sync::mpsc::channel(64);
        let events = Arc::new(Mutex::new(Vec::new()));
        let gathered = Arc::clone(&events);
        let stdin = child.stdin.take();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self {
            handle,
            child,
            stdin,
            lines,
            probe: std::thread::spawn(move || probe.run(sender)),
            events,
            gather: std::thread::spawn(move || {
                while let Some(batch) = receiver.blocking_recv() {
                    gathered.lock().unwrap().extend(batch);
                }
            }),
        }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid(self.child.id())
    }

    /// Lets the child take its next step.
    pub(crate) fn step(&mut self) {
        self.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    /// The next thing that the child says (lines that begin with `@ `; the rest is the harness's).
    pub(crate) fn line(&mut self) -> String {
        let said = self
            .lines
            .find_map(|line| Some(line.ok()?.strip_prefix("@ ")?.to_owned()));
        said.expect("the child says something")
    }

    /// Lets a child of one step move its bytes; it says through which stream, and how many.
    pub(crate) fn moved(mut self) -> Moved {
        self.step();
        let (stream, total) = (self.line(), self.line().parse().unwrap());
        let child = self.pid();
        let seen = self.finish();
        Moved {
            child,
            arrived: seen.stream(&stream),
            seen,
            stream,
            total,
        }
    }

    /// Waits until something was seen.
    pub(crate) fn wait_for(&self, wanted: impl Fn(&CaptureEvent) -> bool) {
        for _ in 0..1000 {
            if self
                .events
                .lock()
                .unwrap()
                .iter()
                .any(|captured| wanted(&captured.event))
            {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("what was waited for never came");
    }

    /// Waits for the child's end, stops the probe, and returns what it saw.
    pub(crate) fn finish(mut self) -> Seen {
        drop(self.stdin.take());
        self.child.wait().unwrap();
        self.handle.stop();
        let loss = self.probe.join().unwrap().unwrap();
        self.gather.join().unwrap();
        Seen {
            events: std::mem::take(&mut self.events.lock().unwrap()),
            loss,
        }
    }
}

impl Seen {
    /// What arrived of the stream that the child called by this name, such as `pipe:[123]`.
    pub(crate) fn stream(&self, name: &str) -> Arrived {
        let mut arrived = Arrived::default();
        for captured in &self.events {
            match &captured.event {
                CaptureEvent::Chunk {
                    stream,
                    offset,
                    bytes,
                    ..
                } if stream.to_string() == name => {
                    arrived.chunks.push((*offset, bytes.to_vec()));
                }
                CaptureEvent::Gap {
                    stream,
                    offset,
                    bytes,
                    reason,
                } if stream.to_string() == name => {
                    arrived.gaps.push((*offset, bytes.unwrap_or(0), *reason));
                }
                CaptureEvent::Read { stream, end, .. } if stream.to_string() == name => {
                    arrived.read = arrived.read.max(*end);
                }
                CaptureEvent::Eof { stream } if stream.to_string() == name => arrived.eof = true,
                CaptureEvent::Refused { stream, .. } if stream.to_string() == name => {
                    arrived.refused = true;
                }
                _ => {}
            }
        }
        arrived
    }

    /// The events that a filter lets through.
    pub(crate) fn select<T>(&self, filter: impl Fn(&CaptureEvent) -> Option<T>) -> Vec<T> {
        self.events
            .iter()
            .filter_map(|captured| filter(&captured.event))
            .collect()
    }

    /// Fails unless the counters add up.
    pub(crate) fn assert_reconciles(&self) {
        let Loss {
            seen,
            submitted,
            ring_full,
            unreadable,
            filtered,
            ..
        } = self.loss;
        assert_eq!(
            seen,
            submitted + ring_full + unreadable + filtered,
            "{:?}",
            self.loss
        );
    }
}

impl Arrived {
    /// Fails unless chunks and gaps, in the order in which they came, tile the first `total`
    /// bytes, and every chunk is what `expected` says; returns how many bytes are missing.
    pub(crate) fn assert_tiles(&self, total: u64, expected: impl Fn(u64, &[u8]) -> bool) -> u64 {
        let chunks = self
            .chunks
            .iter()
            .map(|(offset, bytes)| (*offset, bytes.len() as u64));
        let gaps = self.gaps.iter().map(|(offset, len, _)| (*offset, *len));
        let mut pieces: Vec<_> = chunks.chain(gaps).collect();
        pieces.sort_unstable();
        let end = pieces.iter().fold(0, |end, (offset, len)| {
            assert_eq!(
                end, *offset,
                "chunks and gaps leave no hole and do not overlap"
            );
            end + len
        });
        assert_eq!(end, total, "everything that moved is a chunk or a gap");
        assert!(
            self.chunks.is_sorted_by_key(|(offset, _)| *offset),
            "chunks come in order"
        );
        for (offset, bytes) in &self.chunks {
            assert!(
                expected(*offset, bytes),
                "the chunk at {offset} holds what was written"
            );
        }
        self.gaps.iter().map(|(_, len, _)| len).sum()
    }
}
