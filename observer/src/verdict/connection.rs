//! What is known of one connection: its two sides, its requests, how it ended.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use super::call::{Call, Seq};
use super::host::KnownHost;
use super::lane::Lane;
use super::reading::ClientInfo;
use super::witness::Burst;
use super::{Revision, Settings};
use crate::capture::{Fate, InterruptKind, Pid, Timestamp};
use crate::jsonrpc::Id;
use crate::session::{ConnId, Noise, Side};

/// See the module.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) id: ConnId,
    pub(super) client: Option<Pid>,
    pub(super) server: Option<Pid>,
    pub(super) info: Option<ClientInfo>,
    pub(super) known: Option<KnownHost>,
    /// What `initialize` settled, or asked for while it is unanswered.
    pub(super) revision: Option<Revision>,
    /// The revision of the last request that named one itself.
    pub(super) stateless: Option<Revision>,
    pub(super) server_name: Option<Box<str>>,
    lanes: [Lane; 2],
    seqs: Seq,
    /// The last `initialize`: what was sent before it belongs to another session.
    session: Option<Session>,
    pub(super) clock: Stopwatch,
    /// How far each side's bytes have been read, where that is seen.
    delivered: [Option<u64>; 2],
    pub(super) ends: Ends,
    /// Where the last line of each side that was seen ends, and when that was.
    heard: [Heard; 2],
    /// Equal calls in flight that no retry speaks against yet, oldest first.
    pub(super) repeats: HashMap<u64, VecDeque<Seq>>,
    /// The last signal to the host, or Ctrl-C: it may be why the host leaves.
    pub(super) host_signal: Option<(Timestamp, InterruptKind)>,
    /// When the user last interrupted the host.
    pub(super) interrupted: Option<Timestamp>,
    /// When Esc was last pressed.
    pub(super) escaped: Option<Timestamp>,
    /// When Esc last answered something that the server asks.
    pub(super) escaped_question: Option<Timestamp>,
    /// What the host last sent to each of its network peers, the newest last.
    pub(super) bursts: Vec<Burst>,
    /// Lines that may be one JSON text over several lines, by side.
    pub(super) spread: [Vec<Noise>; 2],
    /// The last gap of each side.
    pub(super) gaps: [Option<Timestamp>; 2],
}

/// How a session began on the connection.
#[derive(Clone, Debug)]
pub(super) struct Session {
    /// The id of its `initialize`.
    id: Id,
    at: Timestamp,
    first: Seq,
}

/// How far a side's stream is known.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    end: Option<u64>,
    at: Option<Timestamp>,
}

/// What has ended a connection so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Ends {
    pub(super) client_eof: Option<Timestamp>,
    pub(super) server_eof: Option<Timestamp>,
    pub(super) client_exit: Option<Timestamp>,
    pub(super) server_exit: Option<(Timestamp, Option<Fate>)>,
    /// The server was signalled.
    pub(super) stop: Option<Stop>,
    pub(super) closed: Option<Timestamp>,
    /// The client wrote, and the server could not read any more.
    pub(super) refused: Option<Timestamp>,
    /// A timer is set that draws the conclusions.
    pub(super) settling: bool,
}

/// A signal to the server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    pub(super) at: Timestamp,
    pub(super) kind: InterruptKind,
    pub(super) sender: Option<Pid>,
    /// The sender is the host.
    pub(super) by_host: bool,
}

/// Who ended a connection.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cause {
    /// The host: it closed, left, or stopped the server. Also a signal of the terminal to both.
    Host,
    /// The server, by itself.
    Server,
    /// A process that is neither.
    Stranger(Stop),
}

impl Ends {
    /// When the connection could carry no answer any more.
    pub(super) fn over(&self) -> Option<Timestamp> {
        let exit = self.server_exit.map(|(at, _)| at);
        [self.server_eof, self.client_exit, exit, self.closed]
            .into_iter()
            .flatten()
            .min()
    }

    /// Who ended it, as far as is seen.
    pub(super) fn cause(&self, settings: &Settings) -> Cause {
        let exit = self.server_exit.map(|(at, _)| at);
        let server_end = [self.server_eof, exit].into_iter().flatten().min();
        let stop = self.stop.filter(|stop| {
            server_end.is_none_or(|end| end.since(stop.at) <= settings.orphan && stop.at <= end)
        });
        let before = |at: Option<Timestamp>, slack: Duration| {
            at.is_some_and(|at| server_end.is_none_or(|end| at <= end + slack))
        };
        // A crash of the server may make the host leave; a common Ctrl-C ends both.
        let slack = if self.crashed() {
            Duration::ZERO
        } else {
            settings.reorder
        };
        if before(self.client_eof, Duration::ZERO) || before(self.client_exit, slack) {
            return Cause::Host;
        }
        match stop {
            Some(Stop { by_host: true, .. } | Stop { sender: None, .. }) => Cause::Host,
            Some(stop) => Cause::Stranger(stop),
            None if server_end.is_none() => Cause::Host,
            None => Cause::Server,
        }
    }

    /// Another session begins on the same wire. What has ended the one before does not end it.
    pub(super) fn begin_anew(&mut self) {
        *self = Self {
            closed: self.closed,
            settling: self.settling,
            ..Self::default()
        };
    }

    fn crashed(&self) -> bool {
        match self.server_exit {
            Some((_, Some(Fate::Code(code)))) => code != 0,
            // HUP, INT, KILL, PIPE, TERM: somebody else's doing.
            Some((_, Some(Fate::Signal(signal)))) => !matches!(signal, 1 | 2 | 9 | 13 | 15),
            _ => false,
        }
    }

    /// When the host began to end it.
    pub(super) fn host_began(&self) -> Option<Timestamp> {
        let stop = self.stop.map(|stop| stop.at);
        [self.client_eof, self.client_exit, stop]
            .into_iter()
            .flatten()
            .min()
    }
}

pub(super) const fn index(side: Side) -> usize {
    match side {
        Side::Client => 0,
        Side::Server => 1,
    }
}

impl Connection {
    pub(super) fn new(id: ConnId) -> Self {
        Self {
            id,
            client: None,
            server: None,
            info: None,
            known: None,
            revision: None,
            stateless: None,
            server_name: None,
            lanes: Default::default(),
            seqs: 0,
            session: None,
            clock: Stopwatch::default(),
            delivered: [None; 2],
            ends: Ends::default(),
            heard: Default::default(),
            repeats: HashMap::new(),
            host_signal: None,
            interrupted: None,
            escaped: None,
            escaped_question: None,
            bursts: Vec::new(),
            spread: Default::default(),
            gaps: [None; 2],
        }
    }

    /// The requests that a side sent.
    pub(super) const fn lane(&self, from: Side) -> &Lane {
        &self.lanes[index(from)]
    }

    pub(super) const fn lane_mut(&mut self, from: Side) -> &mut Lane {
        &mut self.lanes[index(from)]
    }

    /// The host sends `initialize`: ids may be used anew. Whether that certainly begins a session
    /// that knows nothing of the one before, as the ids begin anew too.
    pub(super) fn begin_session(&mut self, id: &Id, at: Timestamp) -> bool {
        let lane = self.lane(Side::Client);
        let last = lane.by_id(id).and_then(|seq| lane.get(seq));
        let last = last.or_else(|| lane.past(id).map(|past| &past.call));
        // A probe that found nobody is followed by the handshake.
        let used = last.is_some_and(|call| call.method.as_ref() != "server/discover");
        let anew = used || self.session.as_ref().is_some_and(|before| before.id == *id);
        self.session = Some(Session {
            id: id.clone(),
            at,
            first: self.seqs + 1,
        });
        for lane in &mut self.lanes {
            lane.forget_past();
        }
        anew
    }

    /// When the host began another session than the one that the request belongs to.
    pub(super) fn outlived(&self, call: &Call) -> Option<Timestamp> {
        let session = self.session.as_ref()?;
        (call.seq < session.first).then_some(session.at)
    }

    pub(super) const fn next_seq(&mut self) -> Seq {
        self.seqs += 1;
        self.seqs
    }

    /// How far the other side has read what `from` wrote, where that is seen.
    pub(super) const fn delivered(&self, from: Side) -> Option<u64> {
        self.delivered[index(from)]
    }

    pub(super) fn deliver(&mut self, from: Side, offset: u64) {
        let delivered = &mut self.delivered[index(from)];
        *delivered = (*delivered).max(Some(offset));
    }

    pub(super) const fn gap(&self, from: Side) -> Option<Timestamp> {
        self.gaps[index(from)]
    }

    pub(super) const fn set_gap(&mut self, from: Side, at: Timestamp) {
        self.gaps[index(from)] = Some(at);
    }

    /// A line of that side was seen, or a gap, and ends there.
    pub(super) fn hear(&mut self, from: Side, end: Option<u64>, at: Timestamp) {
        let heard = &mut self.heard[index(from)];
        heard.end = heard.end.max(end);
        heard.at = Some(at);
    }

    /// When that side last said something that was seen.
    pub(super) const fn spoke(&self, from: Side) -> Option<Timestamp> {
        self.heard[index(from)].at
    }

    /// Whether a side has read more than was seen: an answer or a cancellation may be in it.
    pub(super) fn has_unseen(&self) -> bool {
        [Side::Client, Side::Server]
            .into_iter()
            .any(|from| self.has_unseen_of(from))
    }

    /// Whether the other side has read more of `from`'s than was seen: a write that still blocks
    /// is seen when it returns.
    pub(super) fn has_unseen_of(&self, from: Side) -> bool {
        let heard = match self.heard[index(from)] {
            Heard { at: None, .. } => Some(0),
            Heard { end, .. } => end,
        };
        let read = self.delivered(from).zip(heard);
        read.is_some_and(|(read, heard)| read > heard)
    }

    /// Whether the other side has read what ends at `end` of `from`'s stream; `None` where
    /// nobody can say.
    pub(super) fn has_read(&self, from: Side, end: Option<u64>) -> Option<bool> {
        Some(self.delivered(from)? >= end?)
    }

    /// A request is over: no later one is its retry.
    pub(super) fn forget_repeat(&mut self, call: &Call) {
        if let Some(print) = call.fingerprint
            && let Some(equals) = self.repeats.get_mut(&print)
        {
            equals.retain(|seq| *seq != call.seq);
            if equals.is_empty() {
                self.repeats.remove(&print);
            }
        }
    }

    /// The host's requests in flight that work for somebody.
    pub(super) fn work(&self) -> impl Iterator<Item = &Call> {
        self.lane(Side::Client)
            .calls()
            .filter(|call| call.is_work())
    }

    /// Whether the server waits for an answer of the host, in the middle of a call.
    pub(super) fn asks_back(&self) -> bool {
        self.lane(Side::Server).nested().next().is_some()
    }

    /// Whether the server waits for an answer that a person gives.
    pub(super) fn asks_person(&self) -> bool {
        self.lane(Side::Server)
            .calls()
            .any(|call| !call.left && !matches!(call.method.as_ref(), "ping" | "roots/list"))
    }

    /// Starts or stops the clock as the server asks back or is answered.
    pub(super) fn set_clock(&mut self, now: Timestamp) {
        if self.asks_back() {
            self.clock.stop(now);
        } else {
            self.clock.go_on(now);
        }
    }
}

/// A clock that can stand still.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stopwatch {
    lost: Duration,
    stopped: Option<Timestamp>,
}

impl Stopwatch {
    pub(super) fn stop(&mut self, now: Timestamp) {
        self.stopped.get_or_insert(now);
    }

    pub(super) fn go_on(&mut self, now: Timestamp) {
        if let Some(stopped) = self.stopped.take() {
            self.lost += now.since(stopped);
        }
    }

    /// How long it has run by `now`, counted from the beginning of the capture.
    pub(super) fn at(&self, now: Timestamp) -> Duration {
        let until = self.stopped.map_or(now, |stopped| stopped.min(now));
        until.since(Timestamp::ZERO).saturating_sub(self.lost)
    }

    /// When it will show `active` if it does not stop again; `None` while it stands still.
    pub(super) fn when(&self, active: Duration) -> Option<Timestamp> {
        match self.stopped {
            None => Some(Timestamp::ZERO + active + self.lost),
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_clock_stands_still() {
        let at = |seconds| Timestamp::ZERO + Duration::from_secs(seconds);
        let mut clock = Stopwatch::default();
        clock.stop(at(10));
        assert_eq!(clock.at(at(30)), Duration::from_secs(10));
        assert_eq!(clock.when(Duration::from_secs(12)), None);
        clock.go_on(at(40));
        assert_eq!(clock.at(at(41)), Duration::from_secs(11));
        assert_eq!(clock.when(Duration::from_secs(12)), Some(at(42)));
    }
}
