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
        let [client, server] = parties;
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
        let first = self.held.front().map_or(at, |&(_, held, _)| held.min(at));
        let event = Event::Connection {
            conn: number,
            change,
        };
        out.push_back(Output::Observed(Observed { at: first, event }));
        self.number = Some(number);
        self.weight = 0;
        out.extend(self.held.drain(..).map(|(from, at, content)| {
            let event = content.event(number, from);
            Output::Observed(Observed { at, event })
        }));
    }
}
