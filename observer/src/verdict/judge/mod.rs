//! The judge: observed events go in, calls and findings come out. Sans-io; time comes with the
//! events.
//!
//! Owns the state that all rules see, and the order in which they see it. What a message means
//! for the requests is in `hearing`, how a connection ends in `ending`, what speaks for an
//! abandonment in `witness`.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::call::{Call, Clue, Seq};
use super::connection::Connection;
use super::desk::Desk;
use super::occurrence::Occurrence;
use super::process::Processes;
use super::rules::{self, Rule};
use super::timers::Timers;
use super::{Output, Revision, Settings, Summary};
use crate::capture::{GapReason, Loss, Pid, Timestamp};
use crate::session::{ConnId, ConnectionChange, Event, Observed, Side};

/// Says how each call ended and which rules were broken.
pub struct Judge {
    pub(super) state: State,
    pub(super) desk: Desk,
    pub(super) rules: Vec<Box<dyn Rule>>,
    timers: Timers<Due>,
    /// Timers whose connection's clock stands still.
    parked: HashMap<ConnId, Vec<(Duration, Due)>>,
}

/// What every rule may look at.
pub(super) struct State {
    pub(super) settings: Settings,
    pub(super) now: Timestamp,
    pub(super) conns: BTreeMap<ConnId, Connection>,
    pub(super) processes: Processes,
    /// The turn that a thread of a host is in.
    pub(super) turns: HashMap<(Option<Pid>, Box<str>), Box<str>>,
    pub(super) in_flight: usize,
    pub(super) texts: usize,
    pub(super) summary: Summary,
    /// Whether the log breaks off.
    pub(super) cut: bool,
}

/// What falls due for the judge itself.
#[derive(Debug)]
pub(super) enum Due {
    /// Things that are held for a request have been held long enough.
    Held(ConnId, Side),
    /// A connection that has ended: draw the conclusions.
    Settle(ConnId),
    /// A clue has brewed: no cancellation came.
    Ripe(ConnId, Seq),
    /// The grace after an interrupt is over, for all calls up to this one.
    Interrupt(ConnId, Seq, Clue),
    /// The user's time limit for a call is over.
    Deadline(ConnId, Seq),
    /// The call that a server's request belonged to has been over for a while.
    Left(ConnId, Seq, Timestamp),
    /// Lines that looked like the beginning of a JSON text were not gone on with.
    Spread(ConnId, Side),
    /// Two requests under one id, where the first one's answer may only be late.
    Duplicate(ConnId, Side, Seq, Seq),
}

impl State {
    /// The revision that a connection has settled.
    pub(super) fn revision(&self, conn: ConnId) -> Option<Revision> {
        let conn = self.conns.get(&conn)?;
        conn.revision.or(conn.stateless)
    }
}

impl std::fmt::Debug for Judge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Judge")
            .field("connections", &self.state.conns.len())
            .finish_non_exhaustive()
    }
}

impl Judge {
    /// A judge of one log.
    pub fn new(settings: Settings) -> Self {
        let state = State {
            settings,
            now: Timestamp::ZERO,
            conns: BTreeMap::new(),
            processes: Processes::default(),
            turns: HashMap::new(),
            in_flight: 0,
            texts: 0,
            summary: Summary::default(),
            cut: false,
        };
        Self {
            state,
            desk: Desk::default(),
            rules: rules::all(),
            timers: Timers::default(),
            parked: HashMap::new(),
        }
    }

    /// Takes the next event. Timers that were due before it run first.
    pub fn handle_event(&mut self, observed: &Observed) {
        self.run_timers(observed.at - Duration::from_nanos(1));
        self.set_now(observed.at);
        let at = observed.at;
        match &observed.event {
            Event::ProcessSeen {
                pid,
                ppid,
                exe,
                argv,
                ..
            } => {
                self.state.processes.seen(*pid, *ppid, exe.as_deref(), argv);
            }
            Event::ProcessExec { pid, exe, argv } => {
                self.state.processes.executed(*pid, exe.as_deref(), argv);
            }
            Event::ProcessExit { pid, fate } => self.process_exit(*pid, *fate, at),
            Event::Connection { conn, change } => self.connection(*conn, change, at),
            Event::Message {
                conn,
                from,
                offset,
                bytes,
                frame,
            } => {
                self.state.summary.messages += frame.messages().len() as u64;
                self.state.summary.bytes += bytes;
                self.open(*conn);
                self.message(*conn, *from, *offset, *bytes, frame);
            }
            Event::Noise(noise) => self.noise(noise, at),
            Event::Gap {
                conn,
                from,
                offset,
                bytes,
                reason,
            } => {
                self.state.summary.gaps += 1;
                self.open(*conn);
                match reason {
                    GapReason::MidStream => self.cloud_sent_by(*conn, *from, Some(at)),
                    _ => self.cloud(*conn, *from, at),
                }
                // A gap of unknown size may be all that was read by then.
                let end = match bytes {
                    Some(bytes) => offset + bytes,
                    None => (*offset).max(self.open(*conn).delivered(*from).unwrap_or(0)),
                };
                self.hear(*conn, *from, Some(end), at);
                self.tell_of(*conn, |conn| Occurrence::Gap {
                    conn,
                    from: *from,
                    offset: *offset,
                    bytes: *bytes,
                    reason: *reason,
                });
            }
            Event::Eof { conn, from } => self.eof(*conn, *from, at),
            Event::Delivered { conn, from, offset } => {
                self.open(*conn).deliver(*from, *offset);
            }
            Event::Refused { conn, from } => {
                let conn = self.open(*conn);
                if *from == Side::Client {
                    conn.ends.refused.get_or_insert(at);
                }
            }
            Event::Interrupt { pid, kind, sender } => self.interrupt(*pid, *kind, *sender, at),
            Event::NetSend { pid, bytes, peer } => self.net_sent(*pid, *bytes, *peer, at),
            // The timestamps come from a clock that does not count this time.
            Event::Suspended { .. } => {}
            Event::Loss(loss) => self.lose(*loss),
        }
    }

    /// When [`Self::handle_timeout`] wants to be called next.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        [self.timers.next(), self.desk.next_wake()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Runs all timers that are due at `now`.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        self.run_timers(now);
        self.set_now(now);
    }

    /// The next conclusion.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.desk.outputs.pop_front()
    }

    /// What follows will not be seen: the log breaks off here. The summary will say so.
    pub const fn note_cut(&mut self) {
        self.state.cut = true;
    }

    /// The log ends: what is in flight gets its record, then comes the summary.
    pub fn finish(&mut self, now: Timestamp) {
        self.handle_timeout(now);
        let conns: Vec<ConnId> = self.state.conns.keys().copied().collect();
        for conn in conns {
            for side in [Side::Client, Side::Server] {
                self.release_held(conn, side, Timestamp::from_nanos(u64::MAX));
                self.end_spread(conn, side);
            }
            self.conclude(conn, true);
        }
        for place in 0..self.rules.len() {
            self.desk.rule = place;
            self.rules[place].finish(&self.state, &mut self.desk);
        }
        self.desk.unfold(None);
        let mut summary = std::mem::take(&mut self.state.summary);
        summary.at = self.state.now;
        summary.findings = self.desk.tally();
        let lost = summary
            .loss
            .as_ref()
            .is_some_and(|loss| !Loss::complete(loss));
        summary.complete = summary.gaps == 0 && !lost && !self.state.cut;
        self.desk.outputs.push_back(Output::Summary(summary));
    }

    fn set_now(&mut self, now: Timestamp) {
        self.state.now = self.state.now.max(now);
        self.desk.now = self.state.now;
    }

    fn run_timers(&mut self, until: Timestamp) {
        loop {
            let own = self.timers.next().filter(|at| *at <= until);
            let wake = self.desk.next_wake().filter(|at| *at <= until);
            if own.is_some() && (wake.is_none() || own <= wake) {
                if let Some((at, due)) = self.timers.pop(until) {
                    self.set_now(at);
                    self.fall_due(due);
                }
            } else if let Some((at, (place, key))) = self.desk.pop_wake(until) {
                self.set_now(at);
                self.desk.rule = place;
                self.rules[place].due(key, &self.state, &mut self.desk);
            } else {
                return;
            }
        }
    }

    fn fall_due(&mut self, due: Due) {
        match due {
            Due::Held(conn, side) => {
                let until = self.state.now - self.state.settings.reorder;
                self.release_held(conn, side, until);
            }
            Due::Settle(conn) => self.conclude(conn, false),
            Due::Ripe(conn, seq) => self.ripen(conn, seq),
            Due::Interrupt(conn, upto, clue) => self.interrupt_due(conn, upto, &clue),
            Due::Deadline(conn, seq) => self.deadline_due(conn, seq),
            Due::Spread(conn, side) => self.end_spread(conn, side),
            Due::Left(conn, seq, ended) => self.left_due(conn, seq, ended),
            Due::Duplicate(conn, from, older, newer) => {
                self.duplicate_due(conn, from, older, newer);
            }
        }
    }

    pub(super) fn set_timer(&mut self, after: Duration, due: Due) {
        self.timers.set(self.state.now + after, due);
    }

    /// Sets a timer by the connection's clock, which stands still while the server asks back.
    pub(super) fn set_active_timer(&mut self, conn: ConnId, active: Duration, due: Due) {
        let Some(clock) = self.state.conns.get(&conn).map(|conn| conn.clock) else {
            return;
        };
        match clock.when(active) {
            Some(at) => self.timers.set(at, due),
            None => self.parked.entry(conn).or_default().push((active, due)),
        }
    }

    /// Whether it is not yet `active` by the connection's clock: the timer is then set anew.
    pub(super) fn put_off(&mut self, conn: ConnId, active: Duration, due: Due) -> bool {
        let now = self.state.now;
        let early = self
            .state
            .conns
            .get(&conn)
            .is_some_and(|conn| conn.clock.at(now) < active);
        if early {
            self.set_active_timer(conn, active, due);
        }
        early
    }

    /// Stops the connection's clock, or lets it go on, as the server asks back or is answered.
    pub(super) fn set_clock(&mut self, conn: ConnId) {
        let now = self.state.now;
        let Some(connection) = self.state.conns.get_mut(&conn) else {
            return;
        };
        connection.set_clock(now);
        if !connection.asks_back()
            && let Some(parked) = self.parked.remove(&conn)
        {
            for (active, due) in parked {
                self.set_active_timer(conn, active, due);
            }
        }
    }

    /// The connection; a log with only one need not announce it.
    pub(super) fn open(&mut self, conn: ConnId) -> &mut Connection {
        self.state
            .conns
            .entry(conn)
            .or_insert_with(|| Connection::new(conn))
    }

    fn connection(&mut self, conn: ConnId, change: &ConnectionChange, at: Timestamp) {
        match change {
            ConnectionChange::Open { client, server, .. } => {
                let connection = self.open(conn);
                if let Some(client) = client {
                    connection.client = Some(client.pid);
                }
                if let Some(server) = server {
                    connection.server = Some(server.pid);
                }
                for party in [client, server].into_iter().flatten() {
                    self.state
                        .processes
                        .known_as(party.pid, party.exe.as_deref());
                }
            }
            ConnectionChange::Close => {
                self.open(conn).ends.closed = Some(at);
                self.settle(conn);
            }
        }
    }

    /// Tells the rules of something on a connection.
    pub(super) fn tell_of<'a, O>(
        &'a mut self,
        conn: ConnId,
        occurrence: impl FnOnce(&'a Connection) -> O,
    ) where
        O: Into<Option<Occurrence<'a>>>,
    {
        if let Some(conn) = self.state.conns.get(&conn)
            && let Some(occurrence) = occurrence(conn).into()
        {
            tell(&mut self.rules, &occurrence, &self.state, &mut self.desk);
        }
    }

    /// Tells the rules of something about a request in flight.
    pub(super) fn tell_of_call<'a>(
        &'a mut self,
        (conn, from, seq): (ConnId, Side, Seq),
        occurrence: impl FnOnce(&'a Connection, &'a Call) -> Occurrence<'a>,
    ) {
        self.tell_of(conn, |conn| {
            conn.lane(from).get(seq).map(|call| occurrence(conn, call))
        });
    }

    /// Forgets a connection.
    pub(super) fn forget(&mut self, conn: ConnId) {
        self.tell_of(conn, |conn| Occurrence::Gone { conn });
        self.desk.unfold(Some(conn));
        self.state.conns.remove(&conn);
        self.parked.remove(&conn);
    }
}

/// Every rule sees every occurrence, in the order of the list.
pub(super) fn tell(
    rules: &mut [Box<dyn Rule>],
    seen: &Occurrence<'_>,
    state: &State,
    desk: &mut Desk,
) {
    for (place, rule) in rules.iter_mut().enumerate() {
        desk.rule = place;
        rule.see(seen, state, desk);
    }
}

#[cfg(test)]
mod tests;
