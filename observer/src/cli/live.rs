//! The live loop: from the backend through the pipeline to the sinks, and back to the backend.
//!
//! Owns the pipeline's clock. Whatever ends the observation, what was seen is concluded and
//! written. When to end is its caller's.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::backend::Capture;
use super::{Failure, Outputs, say};
use crate::capture::{
    CaptureEvent, Captured, Clock, Loss, Pid, ProcessChange, ProcessEvent, Timestamp,
};
use crate::pipeline::{Output, Pipeline};
use crate::record::Header;
use crate::session::{self, Event, Observed};
use crate::verdict::{self, Summary};

/// How far the pipeline's timers stay behind the clock while nothing comes in. An event may be
/// on its way for that long (in the ring, or waiting for an earlier one of its stream), and no
/// timer may take it for silence.
const LAG: Duration = Duration::from_millis(250);

/// How often the clocks are compared.
const TICK: Duration = Duration::from_secs(1);

/// The machine was suspended if the clocks are further apart than they were by this much.
const SUSPENDED: Duration = Duration::from_millis(10);

/// An observation in progress.
pub(super) struct Live {
    capture: Capture,
    pipeline: Pipeline,
    outputs: Outputs,
    clock: Clock,
    suspension: Suspension,
    alive: BTreeSet<Pid>,
    summary: Option<Summary>,
}

/// The backend has ended of its own accord; [`Live::finish`] says why.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CaptureEnded;

/// What an observation amounts to.
pub(super) struct Finished {
    /// The sinks, flushed.
    pub(super) outputs: Outputs,
    /// The last record.
    pub(super) summary: Option<Summary>,
    /// The counters, or why the backend failed.
    pub(super) captured: Result<Loss, Failure>,
}

impl Live {
    /// Begins: the header is written.
    pub(super) fn begin(
        capture: Capture,
        mut outputs: Outputs,
        header: Header,
        session: session::Settings,
    ) -> Self {
        let settings = header.settings.clone().unwrap_or_default();
        outputs.begin(header, Some(capture.clock()));
        outputs.flush();
        Self {
            clock: capture.clock(),
            capture,
            pipeline: Pipeline::new(session, settings).redacting(outputs.redactor()),
            outputs,
            suspension: Suspension::default(),
            alive: BTreeSet::new(),
            summary: None,
        }
    }

    /// Whether the user has left the live view.
    pub(super) fn is_left(&mut self) -> bool {
        self.outputs.is_left()
    }

    /// The zero of all timestamps.
    pub(super) fn clock(&self) -> Clock {
        self.clock
    }

    /// The processes of the scope that have not ended, as far as is known.
    pub(super) fn alive(&self) -> &BTreeSet<Pid> {
        &self.alive
    }

    /// Takes in what was seen.
    pub(super) fn handle_events(&mut self, events: Vec<Captured>) {
        for event in events {
            self.note_process(&event);
            self.pipeline.handle_event(event);
            self.drain();
        }
        self.outputs.flush_due(Instant::now());
    }

    /// Waits for something to happen or to be due, and takes it in. Nothing is lost where the
    /// future is dropped.
    pub(super) async fn step(&mut self) -> Result<(), CaptureEnded> {
        let wait = self.wait();
        tokio::select! {
            biased;
            events = self.capture.next() => {
                self.handle_events(events.ok_or(CaptureEnded)?);
            }
            () = tokio::time::sleep(wait) => {}
        }
        if !self.capture.has_waiting() {
            self.let_time_pass();
            self.outputs.flush();
        }
        Ok(())
    }

    /// Ends: the backend is detached, what it has left is taken in, all is concluded and written.
    pub(super) async fn finish(mut self) -> Finished {
        self.capture.stop();
        while let Some(events) = self.capture.next().await {
            self.handle_events(events);
        }
        self.pipeline.finish(self.clock.now());
        self.drain();
        self.outputs.flush();
        let captured = self.capture.join();
        if captured.is_err() {
            self.outputs.note_incomplete();
        }
        Finished {
            outputs: self.outputs,
            summary: self.summary,
            captured,
        }
    }

    /// How long until something is due.
    fn wait(&self) -> Duration {
        let now = self.clock.now();
        let due = self
            .pipeline
            .poll_timeout()
            .map(|due| (due + LAG).since(now));
        due.map_or(TICK, |due| due.min(TICK))
    }

    fn let_time_pass(&mut self) {
        let now = self.clock.now() - LAG;
        if let Some(gap) = self.suspension.check() {
            let nanos = u64::try_from(gap.as_nanos()).unwrap_or(u64::MAX);
            let event = Event::Suspended { nanos };
            self.pipeline.handle_observed(Observed { at: now, event });
        }
        if self.pipeline.poll_timeout().is_some_and(|due| due <= now) {
            self.pipeline.handle_timeout(now);
        }
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.pipeline.poll_output() {
            match &output {
                Output::GiveUp(stream) => self.capture.give_up(*stream),
                Output::Forget(stream) => self.capture.forget(*stream),
                Output::Derived(verdict::Output::Summary(summary)) => {
                    self.summary = Some(summary.clone());
                }
                Output::Observed(_) | Output::Derived(_) => {}
            }
            self.outputs.handle_output(&output, None);
        }
    }

    fn note_process(&mut self, captured: &Captured) {
        let CaptureEvent::Process(ProcessEvent { pid, change }) = &captured.event else {
            return;
        };
        match change {
            ProcessChange::Seen { .. } | ProcessChange::Exec { .. } => self.alive.insert(*pid),
            ProcessChange::Exit { .. } => self.alive.remove(pid),
        };
    }
}

impl Finished {
    /// Shows the end in the live view, until the user leaves it; `leave` ends it at once.
    pub(super) fn shown(mut self, leave: bool) -> Self {
        let why = self
            .captured
            .as_ref()
            .err()
            .map(|failure| format!("observing ended: {failure}"));
        self.outputs.close(why, leave);
        self
    }

    /// Says what no record does: why the backend ended early; and with `-vv` its counters.
    pub(super) fn report(&self, verbosity: u8) {
        match &self.captured {
            Err(failure) => say(format_args!("observing ended early: {failure}")),
            Ok(loss) if verbosity >= 2 => say(format_args!(
                "the capture saw {} bytes and handed over {}; {} were lost to a full ring, {} could \
                 not be read, {} were not wanted; {} other events were lost",
                loss.seen,
                loss.submitted,
                loss.ring_full,
                loss.unreadable,
                loss.filtered,
                loss.events_lost
            )),
            Ok(_) => {}
        }
    }
}

/// Notices that the machine was suspended: `CLOCK_MONOTONIC` stands still then, and
/// `CLOCK_BOOTTIME` does not.
#[derive(Debug)]
struct Suspension {
    ahead: Duration,
}

impl Default for Suspension {
    fn default() -> Self {
        Self { ahead: ahead() }
    }
}

impl Suspension {
    /// For how long, since this was last asked.
    fn check(&mut self) -> Option<Duration> {
        self.advance(ahead())
    }

    fn advance(&mut self, ahead: Duration) -> Option<Duration> {
        let gap = ahead.saturating_sub(self.ahead);
        (gap >= SUSPENDED).then(|| {
            self.ahead = ahead;
            gap
        })
    }
}

/// How far `CLOCK_BOOTTIME` is ahead of `CLOCK_MONOTONIC`.
fn ahead() -> Duration {
    let read = |clock| {
        nix::time::clock_gettime(clock)
            .map(Duration::from)
            .unwrap_or_default()
    };
    let monotonic = read(nix::time::ClockId::CLOCK_MONOTONIC);
    read(nix::time::ClockId::CLOCK_BOOTTIME).saturating_sub(monotonic)
}

/// A process that the backend does not report itself: it was there before.
pub(super) fn seen(at: Timestamp, pid: Pid, ppid: Pid, start: Option<u64>) -> Captured {
    let change = ProcessChange::Seen {
        ppid: Some(ppid),
        exe: None,
        argv: Vec::new(),
        start,
    };
    Captured {
        at,
        event: CaptureEvent::Process(ProcessEvent { pid, change }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suspension_is_told_once_and_a_drift_is_none() {
        let ms = Duration::from_millis;
        let mut suspension = Suspension { ahead: ms(500) };
        assert_eq!(suspension.advance(ms(500)), None);
        assert_eq!(suspension.advance(ms(509)), None);
        assert_eq!(suspension.advance(ms(3_500)), Some(ms(3_000)));
        assert_eq!(suspension.advance(ms(3_500)), None);
        assert_eq!(suspension.advance(ms(3_400)), None);
    }
}
