//! The copies on their way from the threads that pass bytes on to whoever looks at them.
//!
//! Bounded in bytes. When the bound is reached the passing threads wait, so that nothing goes by
//! unseen (that is backpressure, as a slow server makes it); but not for long: where nothing at all
//! is taken out for [`PATIENCE`], the session matters more than its record, the bytes go by, and
//! what is missing is counted and located. A feed that was muted takes nothing and holds up nobody.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::capture::{CaptureEvent, Captured, Clock, GapReason, Loss, Pid, StreamId, Timestamp};

/// So much content may wait to be looked at, in bytes.
const MOST: usize = 64 * 1024 * 1024;

/// At most about so much is given out at a time, in bytes: progress can be seen then.
const BATCH: usize = 1024 * 1024;

/// So long may the bytes be held up while nothing is taken out.
const PATIENCE: Duration = Duration::from_secs(5);

/// After it was woken, the feed lets this pass before it looks: round trips are not slowed down by
/// a third thread that runs for every message.
const LINGER: Duration = Duration::from_millis(1);

/// Where the copies come out.
#[derive(Debug)]
pub struct Feed {
    shared: Arc<Shared>,
}

/// What [`Feed::receive`] has.
#[derive(Debug)]
pub enum Received {
    /// Events, in the order in which they were seen.
    Events(Vec<Captured>),
    /// The time was up.
    Deadline,
    /// Everything is over, and everything was given out.
    End,
}

/// Where copies go in; one for each thread.
#[derive(Debug)]
pub(super) struct Tap {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    clock: Clock,
    state: Mutex<State>,
    /// Something to take out, or the end.
    news: Condvar,
    /// Room to put something in.
    room: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Captured>,
    /// What waits, in bytes of memory.
    weight: usize,
    /// How often something was taken out.
    takes: u64,
    taps: usize,
    /// Whether the feed sleeps until there is news.
    asleep: bool,
    /// Whether patience has run out, and room has not come since.
    stalled: bool,
    muted: bool,
    loss: Loss,
    loss_told: bool,
}

/// A new queue, whose clock begins now.
pub(super) fn queue() -> (Tap, Feed) {
    let shared = Arc::new(Shared {
        clock: Clock::start(),
        state: Mutex::new(State {
            taps: 1,
            ..State::default()
        }),
        news: Condvar::new(),
        room: Condvar::new(),
    });
    let feed = Feed {
        shared: Arc::clone(&shared),
    };
    (Tap { shared }, feed)
}

impl Feed {
    /// The present, on the clock of the events.
    pub fn now(&self) -> Timestamp {
        self.shared.now()
    }

    /// The next events. Waits for them until `deadline`, or as long as it takes.
    pub fn receive(&self, deadline: Option<Timestamp>) -> Received {
        let mut state = self.shared.lock();
        while state.waiting.is_empty() {
            if state.taps == 0 {
                return self.last(&mut state);
            }
            let patience = deadline.map(|deadline| deadline.since(self.now()));
            if patience == Some(Duration::ZERO) {
                return Received::Deadline;
            }
            state.asleep = true;
            state = wait(&self.shared.news, state, patience);
            state.asleep = false;
            if !state.waiting.is_empty() {
                drop(state);
                thread::sleep(LINGER);
                state = self.shared.lock();
            }
        }
        let mut batch = Vec::new();
        let mut weight = 0;
        while weight < BATCH
            && let Some(captured) = state.waiting.pop_front()
        {
            weight += captured.event.weight();
            batch.push(captured);
        }
        state.weight -= weight;
        state.takes += 1;
        self.shared.room.notify_all();
        Received::Events(batch)
    }

    /// Takes no more events, ever: nobody will be held up by this feed.
    pub fn mute(&self) {
        let mut state = self.shared.lock();
        state.muted = true;
        state.waiting = VecDeque::new();
        state.weight = 0;
        self.shared.room.notify_all();
    }

    /// The counters come last.
    fn last(&self, state: &mut State) -> Received {
        if state.muted || std::mem::replace(&mut state.loss_told, true) {
            return Received::End;
        }
        Received::Events(vec![Captured {
            at: self.now(),
            event: CaptureEvent::Loss(state.loss),
        }])
    }
}

impl Tap {
    pub(super) fn now(&self) -> Timestamp {
        self.shared.now()
    }

    /// What the clock of the events shows at this time of the machine's.
    pub(super) fn time(&self, monotonic: u64) -> Timestamp {
        self.shared.clock.at(monotonic)
    }

    /// Hands over an event without content. Never waits.
    pub(super) fn tell(&self, at: Timestamp, event: CaptureEvent) {
        let mut state = self.shared.lock();
        if !state.muted {
            self.shared.put(&mut state, Captured { at, event });
        }
    }

    /// Whether copies are wanted at all.
    fn is_muted(&self) -> bool {
        self.shared.lock().muted
    }

    /// Hands over a chunk, after what has to stand before it. Waits for room, as the module says;
    /// whether there was.
    fn offer(&self, before: Option<Captured>, chunk: Captured) -> bool {
        let weight = chunk.event.weight();
        let mut state = self.shared.lock();
        state.loss.seen += chunk.event.content();
        let mut until = Instant::now() + PATIENCE;
        let mut takes = state.takes;
        while !state.has_room(weight) {
            if state.takes != takes {
                takes = state.takes;
                until = Instant::now() + PATIENCE;
            }
            let patience = until.saturating_duration_since(Instant::now());
            state.stalled |= patience.is_zero();
            if state.stalled {
                state.loss.ring_full += chunk.event.content();
                return false;
            }
            state = wait(&self.shared.room, state, Some(patience));
        }
        state.stalled = false;
        state.loss.submitted += chunk.event.content();
        if !state.muted {
            for captured in before.into_iter().chain([chunk]) {
                self.shared.put(&mut state, captured);
            }
        }
        true
    }
}

impl Clone for Tap {
    fn clone(&self) -> Self {
        self.shared.lock().taps += 1;
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.taps -= 1;
        if state.taps == 0 {
            self.shared.news.notify_all();
        }
    }
}

impl Shared {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A thread that panicked has left the state whole: all changes are made in one go.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, state: &mut State, captured: Captured) {
        state.weight += captured.event.weight();
        state.waiting.push_back(captured);
        if state.asleep {
            state.asleep = false;
            self.news.notify_one();
        }
    }
}

impl State {
    fn has_room(&self, weight: usize) -> bool {
        self.muted || self.waiting.is_empty() || self.weight + weight <= MOST
    }
}

impl CaptureEvent {
    /// How much content it carries, in bytes.
    fn content(&self) -> u64 {
        match self {
            Self::Chunk { bytes, .. } => bytes.len() as u64,
            _ => 0,
        }
    }

    /// About how much memory it takes, in bytes.
    fn weight(&self) -> usize {
        let content = match self {
            Self::Chunk { bytes, .. } => bytes.len(),
            _ => 0,
        };
        content + size_of::<Captured>()
    }
}

fn wait<'a>(
    condition: &Condvar,
    state: MutexGuard<'a, State>,
    patience: Option<Duration>,
) -> MutexGuard<'a, State> {
    match patience {
        None => condition
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner),
        Some(patience) => {
            let waited = condition.wait_timeout(state, patience);
            waited.unwrap_or_else(PoisonError::into_inner).0
        }
    }
}

/// One direction's copies: numbers its bytes, and locates those for which there was no room.
#[derive(Debug)]
pub(super) struct StreamTap {
    tap: Tap,
    stream: StreamId,
    writer: Pid,
    fd: Option<i32>,
    offset: u64,
    /// Position and number of the bytes that went by since the last that was handed over.
    missed: Option<(u64, u64)>,
}

impl StreamTap {
    /// For a stream into which `writer` writes, through `fd` where that is known.
    pub(super) fn new(tap: Tap, stream: StreamId, writer: Pid, fd: Option<i32>) -> Self {
        Self {
            tap,
            stream,
            writer,
            fd,
            offset: 0,
            missed: None,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.tap.now()
    }

    pub(super) fn writer(&self) -> Pid {
        self.writer
    }

    /// Position after the last byte.
    pub(super) fn position(&self) -> u64 {
        self.offset
    }

    /// These bytes were read from the writer's pipe at `at`, and have been passed on.
    pub(super) fn chunk(&mut self, at: Timestamp, bytes: &[u8]) {
        let offset = self.offset;
        self.offset += bytes.len() as u64;
        if self.tap.is_muted() {
            return;
        }
        let chunk = Captured {
            at,
            event: CaptureEvent::Chunk {
                stream: self.stream,
                offset,
                bytes: Bytes::copy_from_slice(bytes),
                writer: self.writer,
                fd: self.fd,
            },
        };
        let gap = self
            .missed
            .map(|(offset, bytes)| self.gap(at, offset, bytes));
        if self.tap.offer(gap, chunk) {
            self.missed = None;
        } else {
            let (_, missed) = self.missed.get_or_insert((offset, 0));
            *missed += bytes.len() as u64;
        }
    }

    /// Says something about the stream, after all of its bytes.
    pub(super) fn tell(&mut self, event: CaptureEvent) {
        let now = self.now();
        if let Some((offset, bytes)) = self.missed.take() {
            self.tap.tell(now, self.gap(now, offset, bytes).event);
        }
        self.tap.tell(now, event);
    }

    fn gap(&self, at: Timestamp, offset: u64, bytes: u64) -> Captured {
        let event = CaptureEvent::Gap {
            stream: self.stream,
            offset,
            bytes: Some(bytes),
            reason: GapReason::RingFull,
        };
        Captured { at, event }
    }
}
