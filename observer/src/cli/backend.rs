//! The backends behind one face: ready to be told whom to watch, then at work.
//!
//! Which one it is, is chosen elsewhere.

use std::thread::{self, JoinHandle};

use tokio::sync::mpsc;

use super::{Exit, Failure};
use crate::capture::ebpf::{self, Control, Probe, ProbeError};
use crate::capture::ptrace::{self, ChildChanges, Trace};
use crate::capture::{CaptureEvent, Captured, Clock, Loss, Pid, StreamId, Timestamp};
use crate::record::{Backend, Header, Payload, SCHEMA, Scope};
use crate::verdict;

/// How many batches may wait for the pipeline. Beyond it the probe's ring fills, and the kernel
/// counts what it then drops; a tracer waits.
const WAITING_BATCHES: usize = 8;

/// A backend that can be told whom to watch.
pub(super) struct Ready(Kind);

enum Kind {
    Probe(Box<Probe>),
    Trace(Trace),
}

impl Ready {
    /// The kernel probe, loaded.
    pub(super) fn probe(probe: Probe) -> Self {
        Self(Kind::Probe(Box::new(probe)))
    }

    /// The tracing thread, started.
    pub(super) fn trace(trace: Trace) -> Self {
        Self(Kind::Trace(trace))
    }

    /// Watches a running process, and all that it starts from now on.
    ///
    /// # Errors
    ///
    /// Where it may not be watched, with the remedy.
    pub(super) fn watch_pid(&mut self, pid: Pid) -> Result<(), Failure> {
        match &mut self.0 {
            Kind::Probe(probe) => Ok(probe.watch_pid(pid)?),
            Kind::Trace(trace) => Ok(trace.watch_pid(pid)?),
        }
    }

    /// Says what is known of the streams that were open before.
    pub(super) fn note_joined(&mut self, events: &[Captured]) {
        let Kind::Probe(probe) = &mut self.0 else {
            return;
        };
        for captured in events {
            if let CaptureEvent::Holds { stream, .. } = captured.event {
                probe.note_joined(stream);
            }
        }
    }

    /// Watches a child that waits to be released, and all that it starts. Returns what tells of
    /// its end, where that is not to be had from `wait(2)` any more.
    ///
    /// # Errors
    ///
    /// Where it may not be watched, with the remedy.
    pub(super) fn watch_child(&mut self, pid: Pid) -> Result<Option<ChildChanges>, Failure> {
        match &mut self.0 {
            Kind::Probe(probe) => {
                probe.watch_pid(pid)?;
                Ok(None)
            }
            Kind::Trace(trace) => Ok(Some(trace.watch_child(pid)?)),
        }
    }

    /// The zero of all timestamps.
    pub(super) fn clock(&self) -> Clock {
        match &self.0 {
            Kind::Probe(probe) => probe.clock(),
            Kind::Trace(trace) => trace.clock(),
        }
    }

    /// The first line of the log of what it captures.
    pub(super) fn header(&self, scope: Scope, settings: verdict::Settings) -> Header {
        let (backend, hooks) = match &self.0 {
            Kind::Probe(probe) => (Backend::Ebpf, probe.hooks()),
            Kind::Trace(_) => (Backend::Ptrace, under("syscall", Trace::hooks())),
        };
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok();
        let platform = format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH);
        Header {
            t: Timestamp::ZERO,
            schema: SCHEMA.into(),
            observer: env!("CARGO_PKG_VERSION").into(),
            started: format!("{:.9}", jiff::Timestamp::now()),
            backend,
            hooks,
            platform: Some(platform),
            kernel: kernel.map(|release| release.trim().to_owned()),
            payload: Payload::Full,
            scope: Some(scope),
            settings: Some(settings),
            part: None,
        }
    }

    /// Starts to deliver.
    ///
    /// # Errors
    ///
    /// Where no thread can be made.
    pub(super) fn start(self) -> Result<Capture, Failure> {
        let (sender, events) = mpsc::channel(WAITING_BATCHES);
        let clock = self.clock();
        let work = match self.0 {
            Kind::Probe(probe) => {
                let handle = probe.handle();
                let reader = thread::Builder::new()
                    .name("probe".into())
                    .spawn(move || probe.run(sender));
                let reader = reader.map_err(|error| {
                    Failure::new(Exit::Failed, format_args!("cannot start a thread: {error}"))
                })?;
                Work::Probe(handle, reader)
            }
            Kind::Trace(trace) => {
                trace.deliver_to(sender);
                Work::Trace(trace.handle(), trace)
            }
        };
        Ok(Capture {
            events,
            clock,
            work,
        })
    }
}

fn under(folder: &str, names: impl Iterator<Item = &'static str>) -> Vec<String> {
    names.map(|name| format!("{folder}/{name}")).collect()
}

/// A backend at work on its own thread. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Capture {
    events: mpsc::Receiver<Vec<Captured>>,
    clock: Clock,
    work: Work,
}

#[derive(Debug)]
enum Work {
    Probe(ebpf::Handle, JoinHandle<Result<Loss, ProbeError>>),
    Trace(ptrace::Handle, Trace),
}

impl Capture {
    /// The next events; `None` once the backend has ended. Nothing is lost where the future is
    /// dropped.
    pub(super) async fn next(&mut self) -> Option<Vec<Captured>> {
        self.events.recv().await
    }

    /// Whether more events wait already.
    pub(super) fn has_waiting(&self) -> bool {
        !self.events.is_empty()
    }

    /// The zero of all timestamps.
    pub(super) fn clock(&self) -> Clock {
        self.clock
    }

    /// The stream is no MCP.
    pub(super) fn give_up(&self, stream: StreamId) {
        match &self.work {
            Work::Probe(handle, _) => handle.send(Control::GiveUp(stream)),
            Work::Trace(handle, _) => handle.give_up(stream),
        }
    }

    /// The stream is over.
    pub(super) fn forget(&self, stream: StreamId) {
        match &self.work {
            Work::Probe(handle, _) => handle.send(Control::Forget(stream)),
            Work::Trace(handle, _) => handle.forget(stream),
        }
    }

    /// Asks it to let go, and to deliver what is left.
    pub(super) fn stop(&self) {
        match &self.work {
            Work::Probe(handle, _) => handle.stop(),
            Work::Trace(handle, _) => handle.stop(),
        }
    }

    /// Waits until it has ended; what it has delivered by then must have been taken.
    ///
    /// # Errors
    ///
    /// Why it ended of its own accord.
    pub(super) fn join(self) -> Result<Loss, Failure> {
        match self.work {
            Work::Probe(_, reader) => match reader.join() {
                Ok(result) => Ok(result?),
                Err(_) => Err(Failure::new(
                    Exit::Failed,
                    "the thread that captures panicked",
                )),
            },
            Work::Trace(_, trace) => Ok(trace.join()?),
        }
    }
}
