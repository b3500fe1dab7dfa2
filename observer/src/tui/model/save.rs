//! What the filter shows, as what was observed of it: an audit log is made of that.

use std::collections::{BTreeSet, HashMap};

use super::Model;
use super::frame::{Body, Frame, Place};
use crate::capture::Timestamp;
use crate::session::{ConnId, Observed};
use crate::tui::message::{Saved, SavedEvent};

impl Model {
    /// The calls that the filter shows, and what their verdicts rest on: the handshake of their
    /// connections, the frames that the evidence names and the calls of these, signals, processes,
    /// gaps and noise.
    pub(crate) fn saved(&self) -> Saved {
        let ledger = &self.ledger;
        let (calls, named) = self.calls_to_save();
        let known = calls.iter().filter_map(|call| ledger.calls.get(*call));
        let conns: BTreeSet<ConnId> = known.map(|call| call.conn).collect();
        let everything = self.filter.1.is_empty() && self.only.is_none();
        let (mut events, mut lost) = (Vec::new(), 0);
        for (_, frame) in ledger.frames.iter() {
            let wanted = everything
                || match frame.place {
                    Place::Connection(conn) if frame.is_message() => {
                        conns.contains(&conn)
                            && (frame.call.is_some_and(|call| calls.contains(&call))
                                || self.is_handshake(frame)
                                || named.contains(&(conn, frame.at)))
                    }
                    Place::Connection(conn) => conns.contains(&conn),
                    Place::Process(_) | Place::Everything => true,
                };
            match event(frame).filter(|_| wanted) {
                Some(event) => events.push(event),
                None => lost += usize::from(wanted),
            }
        }
        let unseen = lost > 0 || self.cut || ledger.totals.skipped > 0;
        Saved {
            header: self.source.header.clone(),
            events,
            end: self.now.max(ledger.newest),
            lost,
            complete: !unseen,
        }
    }

    /// The calls that are shown, and all that their findings rest on in turn: half a call would be
    /// judged to be what it is not. Also when what the evidence names happened.
    fn calls_to_save(&self) -> (BTreeSet<u32>, BTreeSet<(ConnId, Timestamp)>) {
        let ledger = &self.ledger;
        let mut at: HashMap<(ConnId, Timestamp), Vec<u32>> = HashMap::new();
        for (_, frame) in ledger.frames.iter() {
            if let (Some(call), Place::Connection(conn)) = (frame.call, frame.place) {
                at.entry((conn, frame.at)).or_default().push(call);
            }
        }
        let mut calls: BTreeSet<u32> = self.calls.rows().iter().copied().collect();
        let mut waiting: Vec<u32> = calls.iter().copied().collect();
        let mut named = BTreeSet::new();
        while let Some(call) = waiting.pop().and_then(|number| ledger.calls.get(number)) {
            let findings = call.findings.iter();
            let findings = findings.filter_map(|place| ledger.findings.get(*place as usize));
            for piece in findings.flat_map(|found| &found.finding.evidence) {
                let moment = (call.conn, piece.at);
                named.insert(moment);
                let others = at.get(&moment).into_iter().flatten();
                waiting.extend(others.filter(|other| calls.insert(**other)));
            }
        }
        (calls, named)
    }

    /// Whether it belongs to the beginning of its connection, which tells the revision.
    fn is_handshake(&self, frame: &Frame) -> bool {
        let call = frame.call.and_then(|call| self.ledger.calls.get(call));
        let method = call.map(|call| &*call.method);
        matches!(method, Some("initialize" | "server/discover"))
            || &*frame.label == "notifications/initialized"
    }
}

fn event(frame: &Frame) -> Option<SavedEvent> {
    match &frame.body {
        Body::Here(event) => Some(SavedEvent::Here(Box::new(Observed {
            at: frame.at,
            event: (**event).clone(),
        }))),
        Body::InLog(place) => Some(SavedEvent::InLog(frame.at, *place)),
        Body::Gone => None,
    }
}
