//! Runs a command under the tracer, and keeps all that was captured.

use std::collections::BTreeMap;
use std::ffi::OsString;

use observer::capture::ptrace::Trace;
use observer::capture::spawn::{ChildChange, InheritedSignals, Owner, Paused, Streams};
use observer::capture::{CaptureEvent, Captured, Clock, Fate, Loss};
use tokio::sync::mpsc;

/// What was captured of a command.
#[derive(Debug)]
pub(crate) struct Observation {
    pub(crate) fate: Fate,
    pub(crate) events: Vec<Captured>,
    pub(crate) loss: Loss,
}

/// What was captured of one stream.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Stream {
    pub(crate) bytes: Vec<u8>,
    pub(crate) gaps: u64,
    pub(crate) read: u64,
    pub(crate) ended: bool,
    pub(crate) refused: bool,
}

/// Runs `words` to their end.
pub(crate) fn observe<W: AsRef<str>>(words: &[W]) -> Observation {
    let (program, arguments) = words.split_first().unwrap();
    let arguments: Vec<OsString> = arguments.iter().map(|word| word.as_ref().into()).collect();
    let signals = InheritedSignals::read(&[]);
    let paused = Paused::spawn(
        program.as_ref().into(),
        &arguments,
        &Owner::Same,
        signals,
        Streams::Ours,
    )
    .unwrap();
    let pid = paused.pid();
    let (sender, mut receiver) = mpsc::channel(8);
    let trace = Trace::start(Clock::start()).unwrap();
    trace.deliver_to(sender);
    let mut changes = trace.watch_child(pid).unwrap();
    let collector = std::thread::spawn(move || {
        let mut events = Vec::new();
        while let Some(batch) = receiver.blocking_recv() {
            events.extend(batch);
        }
        events
    });
    paused.release().unwrap();
    let fate = loop {
        match changes
            .wait()
            .expect("the command ends before the trace does")
        {
            ChildChange::Ended(fate) => break fate,
            ChildChange::Stopped | ChildChange::None => {}
        }
    };
    trace.handle().stop();
    let loss = trace.join().unwrap();
    Observation {
        fate,
        events: collector.join().unwrap(),
        loss,
    }
}

impl Observation {
    /// All streams; asserts that chunks come in order.
    pub(crate) fn streams(&self) -> BTreeMap<String, Stream> {
        let mut streams: BTreeMap<String, Stream> = BTreeMap::new();
        for Captured { event, .. } in &self.events {
            match event {
                CaptureEvent::Chunk {
                    stream,
                    offset,
                    bytes,
                    ..
                } => {
                    let entry = streams.entry(stream.to_string()).or_default();
                    assert_eq!(*offset, entry.bytes.len() as u64 + entry.gaps, "{stream}");
                    entry.bytes.extend_from_slice(bytes);
                }
                CaptureEvent::Gap {
                    stream,
                    offset,
                    bytes,
                    ..
                } => {
                    let entry = streams.entry(stream.to_string()).or_default();
                    assert_eq!(*offset, entry.bytes.len() as u64 + entry.gaps, "{stream}");
                    entry.gaps += bytes.unwrap_or(0);
                }
                CaptureEvent::Read { stream, end, .. } => {
                    let entry = streams.entry(stream.to_string()).or_default();
                    assert!(*end > entry.read, "{stream}");
                    entry.read = *end;
                }
                CaptureEvent::Eof { stream } => {
                    streams.entry(stream.to_string()).or_default().ended = true;
                }
                CaptureEvent::Refused { stream, .. } => {
                    streams.entry(stream.to_string()).or_default().refused = true;
                }
                _ => {}
            }
        }
        streams
    }
}
