//! Reads the ring until it is told to stop.
//!
//! Owns the loop, its waiting and its chores; what the records mean is decided in
//! [`super::assemble`]. Delivery blocks when the pipeline is slow: then the ring fills, and the
//! kernel counts what it drops.

use std::fs;
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use observer_ebpf::wire::{StreamKey, StreamState};
use tokio::sync::mpsc::Sender;

use crate::capture::{CaptureEvent, Captured, Loss, Pid, ProcessChange, ProcessEvent, Timestamp};

use super::assemble::Assembler;
use super::decode::arguments;
use super::streams::{id, key};
use super::writers::Writers;
use super::{Control, Probe, ProbeError};

/// How long the reader lets records gather while there is traffic. The programs do not wake it
/// meanwhile, unless the ring fills: the observed processes need not pay for that.
const NAP: Duration = Duration::from_millis(4);

/// After how long without a record the reader asks to be woken by the next.
const IDLE_AFTER: Duration = Duration::from_millis(50);

/// How long it sleeps at most: a belt against a wake-up that went lost.
const SLEEP: Duration = Duration::from_millis(200);

/// How often the counters are looked at while there is traffic.
const CHORES_EVERY: Duration = Duration::from_millis(100);

/// How long a system call may take from counting its bytes to handing them in.
const SETTLE: Duration = Duration::from_millis(20);

/// How many events are delivered at once.
const BATCH: usize = 512;

/// How many bytes of content are delivered at once.
const BATCH_BYTES: usize = 4 << 20;

/// Nobody receives any more.
struct Gone;

/// A probe at work.
struct Reader {
    probe: Probe,
    events: Sender<Vec<Captured>>,
    assembler: Assembler,
    batch: Vec<Captured>,
    batch_bytes: usize,
    last_record: Timestamp,
    last_chores: Timestamp,
    /// The counters when they were last looked at.
    loss: Loss,
    /// The kernel's view of all streams, from just after a loss was noticed.
    snapshot: Option<(Timestamp, Vec<(StreamKey, StreamState)>)>,
    /// Records that made no sense. None ever should.
    faults: u64,
}

impl Probe {
    /// Delivers events until it is told to stop or nobody receives any more; then detaches,
    /// delivers what is left, and returns the counters. Blocks: give it a thread of its own.
    ///
    /// # Errors
    ///
    /// Where the kernel does not let the ring or the maps be read.
    pub fn run(self, events: Sender<Vec<Captured>>) -> Result<Loss, ProbeError> {
        let now = self.clock.now();
        let mut assembler = Assembler::new(self.clock);
        for stream in &self.joined {
            assembler.streams.join(key(*stream));
        }
        let mut reader = Reader {
            assembler,
            probe: self,
            events,
            batch: Vec::new(),
            batch_bytes: 0,
            last_record: now,
            last_chores: now,
            loss: Loss::default(),
            snapshot: None,
            faults: 0,
        };
        if reader.read_until_stopped()?.is_ok() {
            // Whoever has gone by now has seen the summary they wanted.
            let _gone = reader.finish()?;
        }
        reader.counters()
    }
}

impl Reader {
    fn read_until_stopped(&mut self) -> Result<Result<(), Gone>, ProbeError> {
        loop {
            if self.obey()? {
                return Ok(Ok(()));
            }
            if self.drain().is_err() {
                return Ok(Err(Gone));
            }
            if let Some(log) = &mut self.probe.log {
                log.flush();
            }
            let now = self.probe.clock.now();
            self.assembler.handle_timeout(now, &mut self.batch);
            if now.since(self.last_chores) >= CHORES_EVERY {
                self.last_chores = now;
                self.chores(now)?;
            }
            if self.deliver().is_err() {
                return Ok(Err(Gone));
            }
            self.wait(now)?;
        }
    }

    /// Does what it is told; whether it is to stop.
    fn obey(&mut self) -> Result<bool, ProbeError> {
        self.probe.control.silence();
        while let Some(control) = self.probe.control.next() {
            match control {
                Control::GiveUp(stream) => {
                    self.assembler.streams.give_up(key(stream));
                    self.probe.maps.give_up(key(stream))?;
                }
                Control::Forget(stream) => {
                    self.assembler.streams.forget(key(stream));
                    self.probe.maps.forget(key(stream));
                }
                Control::Watch(pid) => self.probe.maps.watch(pid)?,
                Control::Unwatch(pid) => self.probe.maps.unwatch(pid),
                Control::Stop => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Takes in every record that is in the ring.
    fn drain(&mut self) -> Result<(), Gone> {
        let mut any = false;
        loop {
            let before = self.batch.len();
            let Some(item) = self.probe.ring.next() else {
                break;
            };
            let taken = self.assembler.handle_bytes(&item, &mut self.batch);
            self.faults += u64::from(taken.is_err());
            // Gives the record's room in the ring back.
            drop(item);
            any = true;
            for captured in &mut self.batch[before..] {
                complete(captured);
                self.batch_bytes += content_len(captured);
            }
            if self.batch.len() >= BATCH || self.batch_bytes >= BATCH_BYTES {
                self.deliver()?;
            }
        }
        if any {
            self.last_record = self.probe.clock.now();
        }
        Ok(())
    }

    /// Hands the batch on; waits where the pipeline is slow.
    fn deliver(&mut self) -> Result<(), Gone> {
        self.batch_bytes = 0;
        if self.batch.is_empty() {
            return Ok(());
        }
        self.events
            .blocking_send(std::mem::take(&mut self.batch))
            .map_err(|_| Gone)
    }

    /// Looks for losses that no record tells of.
    fn chores(&mut self, now: Timestamp) -> Result<(), ProbeError> {
        if let Some((_, streams)) = self.snapshot.take_if(|(at, _)| now.since(*at) >= SETTLE) {
            self.reconcile(now, &streams);
        }
        if self.assembler.streams.is_crowded() {
            self.assembler
                .streams
                .retain(&self.probe.maps.all_streams());
        }
        let loss = self.counters()?;
        if grew(&self.loss, &loss) {
            self.snapshot
                .get_or_insert_with(|| (now, self.probe.maps.all_streams()));
            self.batch.push(Captured {
                at: now,
                event: CaptureEvent::Loss(loss),
            });
        }
        self.loss = loss;
        self.look_for_unseen_writes(now);
        Ok(())
    }

    fn look_for_unseen_writes(&mut self, now: Timestamp) {
        // The kernel is asked before and after: a write that has come or gone in between, or that
        // somebody is still in, may account for the bytes.
        let suspects: Vec<_> = self
            .assembler
            .streams
            .suspects(now)
            .into_iter()
            .filter_map(|key| Some((key, self.probe.maps.stream(key)?)))
            .collect();
        if suspects.is_empty() {
            return;
        }
        let writers = Writers::find(&self.probe.maps.watched());
        for (key, state) in suspects {
            if writers.may_be_writing_to(id(key)) || self.probe.maps.stream(key) != Some(state) {
                self.assembler.streams.acquit(now, key);
            } else {
                self.assembler
                    .streams
                    .judge(now, key, &state, &mut self.batch);
            }
        }
    }

    fn reconcile(&mut self, now: Timestamp, streams: &[(StreamKey, StreamState)]) {
        for (key, state) in streams {
            if !self.assembler.streams.has_given_up(*key) {
                self.assembler
                    .streams
                    .reconcile(now, *key, state, &mut self.batch);
            }
        }
    }

    /// Waits for records, for controls, or until something is due.
    fn wait(&mut self, now: Timestamp) -> Result<(), ProbeError> {
        let idle = now.since(self.last_record) >= IDLE_AFTER;
        let due = self.assembler.poll_timeout().map(|due| due.since(now));
        let limit = if idle { SLEEP } else { NAP };
        let timeout = due.map_or(limit, |due| due.min(limit));
        if idle {
            self.probe.maps.set_asleep(true)?;
        }
        self.sleep(timeout)?;
        if idle {
            self.probe.maps.set_asleep(false)?;
        }
        Ok(())
    }

    fn sleep(&self, timeout: Duration) -> Result<(), ProbeError> {
        let bell = self.probe.control.bell();
        let mut fds = [
            PollFd::new(self.probe.ring.as_fd(), PollFlags::POLLIN),
            PollFd::new(bell, PollFlags::POLLIN),
        ];
        // Rounded up: a wait of less than a millisecond must not become a busy loop.
        let millis = u16::try_from(timeout.as_millis() + 1).unwrap_or(u16::MAX);
        match poll(&mut fds, PollTimeout::from(millis)) {
            Ok(_) | Err(nix::Error::EINTR) => Ok(()),
            Err(errno) => Err(ProbeError::Io {
                operation: "poll the ring",
                source: errno.into(),
            }),
        }
    }

    /// Detaches, and delivers what is left.
    fn finish(&mut self) -> Result<Result<(), Gone>, ProbeError> {
        self.probe.links.clear();
        // Programs that run at this moment on other CPUs come to their end.
        thread::sleep(SETTLE);
        let streams = self.probe.maps.all_streams();
        if self.drain().is_err() {
            return Ok(Err(Gone));
        }
        let now = self.probe.clock.now();
        self.assembler
            .handle_timeout(now + Duration::from_secs(1), &mut self.batch);
        self.reconcile(now, &streams);
        let loss = self.counters()?;
        self.batch.push(Captured {
            at: now,
            event: CaptureEvent::Loss(loss),
        });
        Ok(self.deliver())
    }

    /// The counters, with records that made no sense among the lost ones.
    fn counters(&self) -> Result<Loss, ProbeError> {
        let mut loss = self.probe.counters()?;
        loss.events_lost += self.faults;
        Ok(loss)
    }
}

/// Whether more was lost than before.
const fn grew(before: &Loss, now: &Loss) -> bool {
    now.ring_full > before.ring_full
        || now.unreadable > before.unreadable
        || now.events_lost > before.events_lost
}

fn content_len(captured: &Captured) -> usize {
    match &captured.event {
        CaptureEvent::Chunk { bytes, .. } => bytes.len(),
        _ => 0,
    }
}

/// The kernel reports the path that was executed; for a script the program is its interpreter,
/// and links are not followed. `/proc` knows better, as long as it is still the same program.
fn complete(captured: &mut Captured) {
    if let CaptureEvent::Process(ProcessEvent {
        pid,
        change: ProcessChange::Exec { exe, argv },
    }) = &mut captured.event
        && let Some(found) = executable(*pid, argv)
    {
        *exe = Some(found);
    }
}

fn executable(Pid(pid): Pid, argv: &[String]) -> Option<String> {
    let path = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let cmdline = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let current = arguments(&cmdline);
    current
        .iter()
        .zip(argv)
        .all(|(a, b)| a.starts_with(b.as_str()))
        .then_some(())?;
    Some(path.to_string_lossy().into_owned())
}
