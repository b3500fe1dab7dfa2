//! One connection: its two streams and parties, and what is held until it is shown.

use std::collections::VecDeque;

use super::Output;
use super::content::Content;
use super::event::{ConnId, ConnectionChange, Event, Observed, Party, Side, Transport};
use super::processes::ProcId;
use crate::capture::{StreamId, StreamKind, Timestamp};
use crate::jsonrpc::{Id, Kind};

/// Names a connection inside the session, before it has its number in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ConnKey(pub(super) u64);

/// More content than this is not held back for the parties to become known, in bytes.
const HELD: usize = 16 * 1024 * 1024;

/// The last so many requests of the client are remembered to recognise the answers' stream.
const ASKED: usize = 64;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Connection {
    pub(super) number: Option<ConnId>,
    /// What the client sends.
    pub(super) client: Option<StreamId>,
    /// What the server sends.
    pub(super) server: Option<StreamId>,
    pub(super) parties: [Option<ProcId>; 2],
    /// The client's requests, while the server's stream is not known.
    pub(super) asked: Vec<Id>,
    held: VecDeque<(Side, Timestamp, Content)>,
    weight: usize,
    /// What was last said of it.
    shown: Option<ConnectionChange>,
}

impl Connection {
    pub(super) fn stream(&self, side: Side) -> Option<StreamId> {
        match side {
            Side::Client => self.client,
            Side::Server => self.server,
        }
    }

    pub(super) fn bind(&mut self, side: Side, stream: StreamId) {
        match side {
            Side::Client => self.client = Some(stream),
            Side::Server => {
                self.server = Some(stream);
                self.asked = Vec::new();
            }
        }
    }

    /// Whether one of its streams is still missing.
    pub(super) fn is_half(&self) -> bool {
        self.client.is_none() || self.server.is_none()
    }

    /// Passes content on, or holds it while the connection is not open.
    pub(super) fn put(
        &mut self,
        from: Side,
        at: Timestamp,
        content: Content,
        out: &mut VecDeque<Output>,
    ) {
        if from == Side::Client && self.server.is_none() {
            self.remember(&content);
        }
        match self.number {
            Some(number) => {
                let event = content.event(number, from);
                out.push_back(Output::Observed(Observed { at, event }));
            }
            None => {
                self.weight += content.weight();
                self.held.push_back((from, at, content));
            }
        }
    }

    fn remember(&mut self, content: &Content) {
        let Content::Message { frame, .. } = content else {
            return;
        };
        for message in frame.messages() {
            if let Kind::Request { id, .. } = &message.kind {
                if self.asked.len() == ASKED {
                    self.asked.remove(0);
                }
                self.asked.push(id.clone());
            }
        }
    }

    /// Whether it holds so much that it must be opened.
    pub(super) fn is_full(&self) -> bool {
        self.weight > HELD
    }

    /// Says what is known of it, if that is more than was said; at first, gives it its number
    /// and lets go of what was held.
    pub(super) fn show(
        &mut self,
        number: ConnId,
        parties: [Option<Party>; 2],
        at: Timestamp,
        out: &mut VecDeque<Output>,
    ) {
        let [client, server] = self.as_named(parties);
        let kind = self.client.or(self.server).map(|id| id.kind);
        let change = ConnectionChange::Open {
            client,
            server,
            transport: match kind {
                Some(StreamKind::Socket) => Transport::Socketpair,
                Some(StreamKind::Relay) => Transport::Relay,
                Some(StreamKind::Pipe) | None => Transport::Pipe,
            },
            streams: [self.client, self.server].map(|id| id.map(|id| id.to_string())),
        };
        if self.shown.as_ref() == Some(&change) {
            return;
        }
        self.shown = Some(change.clone());
        let held = self.take_held();
        let first = held.first().map_or(at, |&(_, held, _)| held.min(at));
        let event = Event::Connection {
            conn: number,
            change,
        };
        out.push_back(Output::Observed(Observed { at: first, event }));
        self.number = Some(number);
        out.extend(held.into_iter().map(|(from, at, content)| {
            let event = content.event(number, from);
            Output::Observed(Observed { at, event })
        }));
    }

    /// A party keeps the executable that it had when it became known: what it executes later (a
    /// shell that makes way for its last command) is told by its own events.
    fn as_named(&self, parties: [Option<Party>; 2]) -> [Option<Party>; 2] {
        let Some(ConnectionChange::Open { client, server, .. }) = &self.shown else {
            return parties;
        };
        let keep = |named: &Option<Party>, party: Option<Party>| match named {
            Some(named) if party.as_ref().is_some_and(|party| party.pid == named.pid) => {
                let exe = named.exe.clone().or(party.and_then(|party| party.exe));
                Some(Party {
                    pid: named.pid,
                    exe,
                })
            }
            _ => party,
        };
        let [one, other] = parties;
        [keep(client, one), keep(server, other)]
    }

    /// What was held, in order of time as far as that reorders nothing within a direction.
    fn take_held(&mut self) -> Vec<(Side, Timestamp, Content)> {
        self.weight = 0;
        let held = std::mem::take(&mut self.held);
        let mut sorted = Vec::with_capacity(held.len());
        let (client, server): (Vec<_>, Vec<_>) = held
            .into_iter()
            .partition(|&(from, ..)| from == Side::Client);
        let (mut client, mut server) =
            (client.into_iter().peekable(), server.into_iter().peekable());
        while let (Some((_, one, _)), Some((_, other, _))) = (client.peek(), server.peek()) {
            sorted.extend(if one <= other {
                client.next()
            } else {
                server.next()
            });
        }
        sorted.extend(client.chain(server));
        sorted
    }
}
