//! What the filter shows, as an audit log.

use std::collections::BTreeSet;

use super::Model;
use super::frame::{Body, Frame, Place};
use crate::capture::Timestamp;
use crate::record::Record;
use crate::session::{ConnId, Observed};
use crate::tui::message::SavedLine;
use crate::verdict;

impl Model {
    /// The lines of a log with the calls that the filter shows, and what their verdicts rest on:
    /// the handshake of their connections, the frames that the evidence names, signals, processes,
    /// gaps and noise. Also how many frames could not be kept because their text has left memory.
    pub(crate) fn saved(&self) -> (Vec<SavedLine>, usize) {
        let ledger = &self.ledger;
        let calls: BTreeSet<u32> = self.calls.rows().iter().copied().collect();
        let chosen = || calls.iter().filter_map(|number| ledger.calls.get(*number));
        let conns: BTreeSet<ConnId> = chosen().map(|call| call.conn).collect();
        let founds = || {
            let places = chosen().flat_map(|call| &call.findings);
            places.filter_map(|at| ledger.findings.get(*at as usize))
        };
        let named: BTreeSet<Timestamp> = founds()
            .flat_map(|found| &found.finding.evidence)
            .map(|piece| piece.at)
            .collect();
        let everything = self.filter.1.is_empty() && self.only.is_none();

        let mut lines = vec![text(&Record::Header(Box::new(self.source.header.clone())))];
        let mut lost = 0;
        for (_, frame) in ledger.frames.iter() {
            let wanted = everything
                || match frame.place {
                    Place::Connection(conn) if frame.is_message() => {
                        conns.contains(&conn)
                            && (frame.call.is_some_and(|call| calls.contains(&call))
                                || self.is_handshake(frame)
                                || named.contains(&frame.at))
                    }
                    Place::Connection(conn) => conns.contains(&conn),
                    Place::Process(_) | Place::Everything => true,
                };
            if wanted {
                match line(frame) {
                    Some(line) => lines.push(line),
                    None => lost += 1,
                }
            }
        }
        lines.extend(founds().map(|found| {
            text(&Record::from(&verdict::Output::Finding(
                found.finding.clone(),
            )))
        }));
        (lines, lost)
    }

    /// Whether it belongs to the beginning of its connection, which tells the revision.
    fn is_handshake(&self, frame: &Frame) -> bool {
        let call = frame.call.and_then(|call| self.ledger.calls.get(call));
        let method = call.map(|call| &*call.method);
        matches!(method, Some("initialize" | "server/discover"))
            || &*frame.label == "notifications/initialized"
    }
}

fn line(frame: &Frame) -> Option<SavedLine> {
    match &frame.body {
        Body::Here(event) => {
            let observed = Observed {
                at: frame.at,
                event: (**event).clone(),
            };
            Some(text(&Record::from(&observed)))
        }
        Body::InLog(place) => Some(SavedLine::InLog(*place)),
        Body::Gone => None,
    }
}

fn text(record: &Record) -> SavedLine {
    let mut line = Vec::new();
    record.write_line(&mut line);
    SavedLine::Text(line)
}
