//! What comes out of the pipeline as lines of text. Pure: a row in, its text out.

use std::collections::HashMap;
use std::fmt::Write;

use anstyle::Style;

use super::finding::{self, Standing};
use super::message::Place;
use super::palette::Palette;
use super::{Detail, row};
use crate::capture::{Pid, Timestamp};
use crate::jsonrpc::Id;
use crate::pipeline::Output;
use crate::record::Word;
use crate::session::{ConnId, ConnectionChange, Event, Observed, Party};
use crate::verdict::{self, Summary};
use crate::wording::Names;
use crate::wording::{observed, size, span};

/// What identifies a stream is cut to this many characters.
const STREAM: usize = 80;

/// Renders outputs.
#[derive(Debug)]
pub(super) struct View {
    pub(super) detail: Detail,
    pub(super) palette: Palette,
    pub(super) names: Names,
    pub(super) connections: HashMap<ConnId, Connection>,
    /// The hosts and servers among the processes.
    pub(super) parties: HashMap<Pid, u32>,
    standing: Standing,
    /// The summary of what was passed over.
    summary: Option<Summary>,
}

#[derive(Debug, Default)]
pub(super) struct Connection {
    /// Client and server.
    parties: [Option<Party>; 2],
    /// `client -> server`, as they were called when it opened: a process may be gone by its end.
    title: String,
    /// The `initialize` request that is open, and who sent it.
    pub(super) initialize: Option<(Id, String)>,
    /// Whether its revision was shown.
    pub(super) ready: bool,
    /// How many noisy lines it had.
    pub(super) noise: u32,
}

impl View {
    pub(super) fn new(detail: Detail, palette: Palette) -> Self {
        Self {
            detail,
            palette,
            names: Names::default(),
            connections: HashMap::new(),
            parties: HashMap::new(),
            standing: Standing::default(),
            summary: None,
        }
    }

    /// Appends the lines of an output; often none.
    pub(super) fn render(&mut self, output: &Output, out: &mut Vec<u8>) {
        let mut text = String::new();
        match output {
            Output::Observed(observed) => self.observed(observed, &mut text),
            Output::Derived(verdict::Output::Call(call)) => self.call(call, &mut text),
            Output::Derived(verdict::Output::Finding(finding)) => {
                let style = self.palette.severity(finding.severity);
                let word = finding.severity.word();
                self.row(&mut text, finding.at, finding.conn, style, word);
                finding::render(finding, self.detail, &self.palette, &mut text);
                self.standing.handle_finding(finding);
            }
            Output::Derived(verdict::Output::Summary(summary)) => {
                self.standing
                    .render_summary(summary, &self.palette, &mut text);
            }
            Output::GiveUp(_) | Output::Forget(_) => {}
        }
        out.extend_from_slice(text.as_bytes());
    }

    /// Takes an output that is shown elsewhere: only its part in the end is kept.
    pub(super) fn pass_over(&mut self, output: &Output) {
        match output {
            Output::Derived(verdict::Output::Finding(finding)) => {
                self.standing.handle_finding(finding);
            }
            Output::Derived(verdict::Output::Summary(summary)) => {
                self.summary = Some(summary.clone());
            }
            Output::Derived(verdict::Output::Call(_))
            | Output::Observed(_)
            | Output::GiveUp(_)
            | Output::Forget(_) => {}
        }
    }

    /// Appends what was passed over amounts to, where its end has come.
    pub(super) fn conclude(&mut self, out: &mut Vec<u8>) {
        let mut text = String::new();
        if let Some(summary) = self.summary.take() {
            self.standing
                .render_summary(&summary, &self.palette, &mut text);
        }
        out.extend_from_slice(text.as_bytes());
    }

    pub(super) fn row(
        &self,
        out: &mut String,
        at: Timestamp,
        conn: impl Into<Option<ConnId>>,
        style: Style,
        word: &str,
    ) {
        row::begin(out, &self.palette, Some(at), conn.into(), style, word);
    }

    pub(super) fn shows(&self, detail: Detail) -> bool {
        self.detail >= detail
    }

    fn observed(&mut self, Observed { at, event }: &Observed, out: &mut String) {
        let at = *at;
        self.names.handle_event(event);
        match event {
            Event::ProcessSeen { pid, ppid, .. } => self.process_seen(at, *pid, *ppid, out),
            Event::ProcessExec { pid, .. } => self.process_row(at, *pid, "exec", "", out),
            Event::ProcessExit { pid, fate } => self.process_exit(at, *pid, *fate, out),
            Event::Connection { conn, change } => self.connection(at, *conn, change, out),
            Event::Message {
                conn,
                from,
                bytes,
                frame,
                ..
            } => {
                let place = Place {
                    at,
                    conn: *conn,
                    from: *from,
                };
                for message in frame.messages() {
                    self.message(place, *bytes, frame, message, out);
                }
            }
            Event::Noise(noise) => self.noise(at, noise, out),
            Event::Interrupt { pid, kind, sender } => {
                self.interrupt(at, *pid, *kind, *sender, out);
            }
            _ if self.detail == Detail::Quiet => {}
            _ => self.disturbance(at, event, out),
        }
    }

    /// What goes wrong with the bytes and, in detail, how they move.
    fn disturbance(&self, at: Timestamp, event: &Event, out: &mut String) {
        let Palette {
            warning, note, dim, ..
        } = self.palette;
        let detailed = self.shows(Detail::Verbose);
        let _ = match event {
            Event::Gap {
                conn,
                from,
                offset,
                bytes,
                reason,
            } => {
                self.row(out, at, *conn, warning, "gap");
                let missing = bytes.map_or("bytes".into(), size);
                let (from, reason) = (from.word(), reason.word());
                writeln!(
                    out,
                    "{missing} from the {from} unseen at byte {offset}: {reason}"
                )
            }
            Event::Refused { conn, from } => {
                self.row(out, at, *conn, note, "refused");
                let (from, peer) = (from.word(), from.peer().word());
                writeln!(out, "the {from} wrote, and the {peer} cannot read any more")
            }
            Event::Suspended { nanos } if *nanos > 0 => {
                self.row(out, at, None, note, "clock");
                let slept = span(std::time::Duration::from_nanos(*nanos));
                writeln!(out, "the machine was suspended for {slept}")
            }
            Event::Loss(loss) if !loss.complete() || detailed => {
                self.row(
                    out,
                    at,
                    None,
                    if loss.complete() { dim } else { warning },
                    "loss",
                );
                writeln!(
                    out,
                    "{} of {} lost to a full ring, {} unreadable, {} events lost",
                    size(loss.ring_full),
                    size(loss.seen),
                    size(loss.unreadable),
                    loss.events_lost
                )
            }
            Event::Eof { conn, from } if detailed => {
                self.row(out, at, *conn, dim, "eof");
                writeln!(out, "the {} closed its writing end", from.word())
            }
            Event::Delivered { conn, from, offset } if detailed => {
                self.row(out, at, *conn, dim, "delivered");
                writeln!(out, "{} read up to byte {offset}", from.peer().word())
            }
            Event::NetSend { pid, bytes, peer } if detailed => {
                self.row(out, at, None, dim, "net-send");
                let peer = peer.map_or("the network".into(), |peer| peer.to_string());
                writeln!(
                    out,
                    "{} sent {} to {peer}",
                    self.names.of(*pid),
                    size(*bytes)
                )
            }
            _ => Ok(()),
        };
    }

    fn connection(
        &mut self,
        at: Timestamp,
        id: ConnId,
        change: &ConnectionChange,
        out: &mut String,
    ) {
        match change {
            ConnectionChange::Open {
                client,
                server,
                transport,
                streams,
            } => {
                if !self.open(id, [client.clone(), server.clone()]) || !self.shows(Detail::Normal) {
                    return;
                }
                self.row(out, at, id, self.palette.strong, "open");
                let title = &self.connections[&id].title;
                let _ = write!(out, "{title} ({})", transport.word());
                let detailed = self.shows(Detail::Verbose);
                for stream in streams.iter().flatten().filter(|_| detailed) {
                    let _ = write!(out, " {}", observed(stream, STREAM));
                }
                out.push('\n');
            }
            ConnectionChange::Close => {
                let Some(closed) = self.connections.remove(&id) else {
                    return;
                };
                if self.shows(Detail::Normal) {
                    self.row(out, at, id, self.palette.dim, "close");
                    let _ = writeln!(out, "{}", closed.title);
                }
                self.count_parties(&[None, None], &closed.parties);
            }
        }
    }

    /// Notes who is at the ends; returns whether that is news.
    fn open(&mut self, id: ConnId, parties: [Option<Party>; 2]) -> bool {
        let [client, server] = &parties;
        let client = self.names.of_party(client.as_ref());
        let server = self.names.of_party(server.as_ref());
        let connection = self.connections.entry(id).or_default();
        let new = connection.title.is_empty() || connection.parties != parties;
        connection.title = format!("{client} -> {server}");
        let before = std::mem::replace(&mut connection.parties, parties);
        let after = connection.parties.clone();
        self.count_parties(&after, &before);
        new
    }

    fn count_parties(&mut self, new: &[Option<Party>; 2], old: &[Option<Party>; 2]) {
        for party in new.iter().flatten() {
            *self.parties.entry(party.pid).or_insert(0) += 1;
        }
        for party in old.iter().flatten() {
            if let Some(count) = self.parties.get_mut(&party.pid) {
                *count -= 1;
                if *count == 0 {
                    self.parties.remove(&party.pid);
                }
            }
        }
    }
}
