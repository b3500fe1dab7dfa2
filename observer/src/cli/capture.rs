//! The backend: its options, and the one place that chooses and starts it.

use std::io;
use std::thread::{self, JoinHandle};

use tokio::sync::mpsc;

use super::size::parse_size;
use super::{Exit, Failure, say};
use crate::capture::ebpf::{self, Control, DEFAULT_RING, Handle, Options, Probe, ProbeError};
use crate::capture::{Captured, Clock, Loss, StreamId};
use crate::record::{Backend, Header, Payload, SCHEMA, Scope};
use crate::session;
use crate::verdict;

/// How many batches may wait for the pipeline. Beyond it the ring fills, and the kernel counts
/// what it then drops.
const WAITING_BATCHES: usize = 8;

/// Options of what is captured.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Capture")]
pub(super) struct CaptureArgs {
    /// The ring buffer between kernel and observer: a power of two, at least 64KiB
    /// [default: 64MiB]
    ///
    /// A larger one takes longer bursts without a gap.
    #[arg(long, value_name = "SIZE", value_parser = parse_ring_size)]
    ring_size: Option<u32>,
    /// The longest line that is taken for a message; longer ones count as noise
    /// [default: 64MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_frame: Option<usize>,
}

impl CaptureArgs {
    /// Loads the backend. From then on nothing of `scope` goes by unseen. With a verbosity of 2
    /// the probe's own diagnostics are shown.
    ///
    /// # Errors
    ///
    /// Where nothing can be captured here, with the remedy.
    pub(super) fn load(&self, scope: ebpf::Scope, verbosity: u8) -> Result<Probe, Failure> {
        let mut options = Options::new(scope);
        options.ring_bytes = self.ring_bytes();
        options.log = (verbosity >= 2).then_some(show as fn(&str));
        Ok(Probe::load(&options)?)
    }

    /// The ring buffer's size.
    pub(super) fn ring_bytes(&self) -> u32 {
        self.ring_size.unwrap_or(DEFAULT_RING)
    }

    /// The session's settings.
    pub(super) fn session(&self) -> session::Settings {
        let mut settings = session::Settings::default();
        settings.max_frame = self.max_frame.unwrap_or(settings.max_frame);
        settings
    }
}

fn show(diagnostic: &str) {
    say(diagnostic);
}

fn parse_ring_size(text: &str) -> Result<u32, String> {
    let size = parse_size(text)?;
    u32::try_from(size)
        .ok()
        .filter(|size| size.is_power_of_two() && *size >= ebpf::SMALLEST_RING)
        .ok_or_else(|| "give a power of two from 64KiB to 2GiB, such as 16MiB".into())
}

/// A log's first line for a capture that has just begun.
pub(super) fn header(scope: Scope, settings: verdict::Settings) -> Header {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok();
    Header {
        t: crate::capture::Timestamp::ZERO,
        schema: SCHEMA.into(),
        observer: env!("CARGO_PKG_VERSION").into(),
        started: format!("{:.9}", jiff::Timestamp::now()),
        backend: Backend::Ebpf,
        hooks: Probe::hooks()
            .map(|hook| format!("raw_tracepoint/{hook}"))
            .collect(),
        platform: Some(format!(
            "{}-{}",
            std::env::consts::OS,
            std::env::consts::ARCH
        )),
        kernel: kernel.map(|release| release.trim().to_owned()),
        payload: Payload::Full,
        scope: Some(scope),
        settings: Some(settings),
    }
}

/// A backend at work on its own thread. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Capture {
    events: mpsc::Receiver<Vec<Captured>>,
    handle: Handle,
    clock: Clock,
    reader: JoinHandle<Result<Loss, ProbeError>>,
}

impl Capture {
    /// Starts to deliver.
    ///
    /// # Errors
    ///
    /// Where no thread can be made.
    pub(super) fn start(probe: Probe) -> io::Result<Self> {
        let (sender, events) = mpsc::channel(WAITING_BATCHES);
        let (handle, clock) = (probe.handle(), probe.clock());
        let reader = thread::Builder::new()
            .name("probe".into())
            .spawn(move || probe.run(sender))?;
        Ok(Self {
            events,
            handle,
            clock,
            reader,
        })
    }

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
        self.handle.send(Control::GiveUp(stream));
    }

    /// The stream is over.
    pub(super) fn forget(&self, stream: StreamId) {
        self.handle.send(Control::Forget(stream));
    }

    /// Asks it to detach, and to deliver what is left.
    pub(super) fn stop(&self) {
        self.handle.stop();
    }

    /// Waits until it has ended; what it has delivered by then must have been taken.
    ///
    /// # Errors
    ///
    /// Why it ended of its own accord.
    pub(super) fn join(self) -> Result<Loss, Failure> {
        match self.reader.join() {
            Ok(result) => Ok(result?),
            Err(_) => Err(Failure::new(
                Exit::Failed,
                "the thread that captures panicked",
            )),
        }
    }
}
