//! One stream: its lines, who is at its ends, and what it has shown of itself.

use std::collections::VecDeque;

use super::connection::ConnKey;
use super::content::Content;
use super::ends::Ends;
use super::event::{NoiseKind, Side};
use super::method::{Sender, sender};
use crate::capture::{StreamId, StreamKind, Timestamp};
use crate::jsonrpc::{Frame, Id, Kind};
use crate::stream::Framer;

/// A stream that has not shown a message after so many bytes is none of ours.
const UNDECIDED: u64 = 64 * 1024;

/// A line of JSON in progress may be longer than that: a big answer, joined in its middle.
const UNDECIDED_LINE: u64 = 16 * 1024 * 1024;

/// JSON-RPC that has had its time to find a partner is held on so far: bytes, and messages.
const HELD: usize = 4 * 1024 * 1024;
const HELD_MESSAGES: usize = 64;

/// So many answers of a stream are compared with the requests of a connection.
const ANSWERS: usize = 64;

/// Message ends that wait for their read. When a reader is out of sight, the oldest go.
const UNREAD: usize = 1024;

/// See the module.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) id: StreamId,
    pub(super) writers: Ends,
    pub(super) readers: Ends,
    pub(super) framer: Framer,
    pub(super) role: Role,
    pub(super) delivery: Delivery,
    /// Its end was seen (or concluded) and nothing came since.
    pub(super) over: bool,
    /// A write failed because nobody can read it any more.
    pub(super) refused: bool,
    /// When something last happened to it.
    pub(super) touched: Timestamp,
}

/// What the stream is.
#[derive(Debug)]
pub(super) enum Role {
    /// Not known yet.
    Undecided(Undecided),
    /// One direction of a connection: what `from` sends.
    Bound { conn: ConnKey, from: Side },
    /// No MCP; nothing of it is looked at any more.
    GivenUp,
}

/// What an undecided stream has carried so far.
#[derive(Debug, Default)]
pub(super) struct Undecided {
    pub(super) held: Vec<(Timestamp, Content)>,
    pub(super) evidence: Evidence,
    weight: usize,
    /// How much of what it carried was no message, in bytes.
    noise: u64,
}

/// What the content of a stream says about its role.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// JSON-RPC lines.
    pub(super) frames: usize,
    /// Who sends messages with such methods, from the first that says it.
    pub(super) sender: Option<Side>,
    /// A method of MCP.
    pub(super) mcp: bool,
    /// Ids that it answers.
    pub(super) answers: Vec<Id>,
    /// Headers as LSP and DAP have them.
    headers: bool,
    /// Until when it waits for a partner that fits it fully; set by its first message.
    pub(super) waits_until: Option<Timestamp>,
}

impl Stream {
    pub(super) fn new(id: StreamId, max_frame: usize, at: Timestamp) -> Self {
        Self {
            id,
            writers: Ends::default(),
            readers: Ends::default(),
            framer: Framer::new(max_frame),
            role: Role::Undecided(Undecided::default()),
            delivery: Delivery::default(),
            over: false,
            refused: false,
            touched: at,
        }
    }

    /// Whether one process writes and reads it, and nobody else has an end of it.
    pub(super) fn is_private(&self) -> bool {
        let mut all = self.writers.all().chain(self.readers.all());
        let used = self.writers.is_used() && self.readers.is_used();
        let one = all.next();
        used && self.id.kind != StreamKind::Relay && all.all(|other| Some(other) == one)
    }

    pub(super) fn undecided(&self) -> Option<&Undecided> {
        match &self.role {
            Role::Undecided(undecided) => Some(undecided),
            Role::Bound { .. } | Role::GivenUp => None,
        }
    }

    /// About how much memory it holds while undecided, in bytes.
    pub(super) fn weight(&self) -> usize {
        self.undecided().map_or(0, |undecided| {
            undecided.weight + self.framer.partial().len()
        })
    }

    /// Whether it has carried enough by now to know that it is no MCP.
    pub(super) fn is_hopeless(&self, now: Timestamp) -> bool {
        let Some(Undecided {
            evidence,
            weight,
            noise,
            ..
        }) = self.undecided()
        else {
            return false;
        };
        if self.id.kind == StreamKind::Relay {
            return false;
        }
        if evidence.frames > 0 {
            let much = *weight > HELD || evidence.frames > HELD_MESSAGES;
            return much && evidence.waits_until.is_some_and(|until| until < now);
        }
        let line = self.framer.pending();
        let json = self.framer.is_torn()
            || matches!(
                self.framer.partial().trim_ascii_start().first(),
                None | Some(b'{' | b'[')
            );
        let excused = if json && line <= UNDECIDED_LINE {
            0
        } else {
            line
        };
        evidence.headers || noise.saturating_add(excused) > UNDECIDED
    }
}

impl Undecided {
    pub(super) fn hold(&mut self, at: Timestamp, content: Content) {
        match &content {
            Content::Message { frame, .. } => self.evidence.note(frame),
            Content::Noise { kind, bytes, .. } => {
                self.noise = self.noise.saturating_add(*bytes);
                self.evidence.headers |= *kind == NoiseKind::ContentLength;
            }
            Content::Gap { .. } | Content::Delivered { .. } | Content::Refused | Content::Eof => {}
        }
        self.weight += content.weight();
        self.held.push((at, content));
    }
}

impl Evidence {
    fn note(&mut self, frame: &Frame) {
        self.frames += 1;
        for message in frame.messages() {
            match &message.kind {
                Kind::Response { id: Some(id), .. } if self.answers.len() < ANSWERS => {
                    self.answers.push(id.clone());
                }
                _ => {}
            }
            let side = match sender(frame, message) {
                Some(Sender::Client) => Some(Side::Client),
                Some(Sender::Server) => Some(Side::Server),
                Some(Sender::Either) => None,
                None => continue,
            };
            self.mcp = true;
            self.sender = self.sender.or(side);
        }
    }
}

/// How far a stream was read, against where its messages end, and what of that is worth telling.
#[derive(Debug, Default)]
pub(super) struct Delivery {
    read: u64,
    told: u64,
    unread: VecDeque<u64>,
    /// A message was read that was not told as read.
    due: bool,
}

impl Delivery {
    /// Something is passed on: if it is a message, its reading will be told.
    pub(super) fn pass(&mut self, content: &Content) {
        if let Content::Message { offset, bytes, .. } = content {
            self.sent(offset.saturating_add(*bytes));
        }
    }

    /// A message ends at this position.
    fn sent(&mut self, end: u64) {
        if end <= self.read {
            self.due |= end > self.told;
            return;
        }
        if self.unread.len() == UNREAD {
            self.unread.pop_front();
        }
        self.unread.push_back(end);
    }

    /// The other side has read up to `end`.
    pub(super) fn read(&mut self, end: u64) {
        self.read = self.read.max(end);
        let before = self.unread.len();
        while self
            .unread
            .front()
            .is_some_and(|&message| message <= self.read)
        {
            self.unread.pop_front();
        }
        self.due |= self.unread.len() < before;
    }

    /// The position after the last byte that was read, where that is worth telling: a message
    /// was read, or first bytes beyond `seen`, the position after the last byte that was seen.
    pub(super) fn tell(&mut self, seen: u64) -> Option<u64> {
        let ahead = self.read > seen && self.told <= seen;
        if !std::mem::take(&mut self.due) && !ahead {
            return None;
        }
        self.told = self.read;
        Some(self.read)
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.unread.len()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    const NOW: Timestamp = Timestamp::from_nanos(2);

    fn stream() -> Stream {
        let id = StreamId {
            kind: StreamKind::Pipe,
            object: 1,
            scope: 0,
        };
        Stream::new(id, 1 << 20, Timestamp::ZERO)
    }

    fn feed(stream: &mut Stream, offset: u64, bytes: impl Into<Bytes>) {
        stream.framer.push(offset, bytes.into());
        while let Some(piece) = stream.framer.poll() {
            let Role::Undecided(undecided) = &mut stream.role else {
                panic!("undecided")
            };
            undecided.hold(Timestamp::ZERO, Content::read(piece));
        }
    }

    #[test]
    fn text_is_given_up_after_64_kib_and_json_is_waited_for() {
        let mut text = stream();
        feed(&mut text, 0, "a line of a log\n".repeat(4096));
        assert!(!text.is_hopeless(NOW));
        feed(&mut text, 65536, "one more\n");
        assert!(text.is_hopeless(NOW));
        let mut binary = stream();
        feed(&mut binary, 0, vec![b'x'; 65537]);
        assert!(binary.is_hopeless(NOW));
        let mut json = stream();
        feed(&mut json, 0, [b"{".as_slice(), &[b'x'; 900_000]].concat());
        assert!(!json.is_hopeless(NOW));
        let mut torn = stream();
        torn.framer
            .gap(0, None, crate::capture::GapReason::MidStream);
        feed(&mut torn, 0, vec![b'x'; 900_000]);
        assert!(!torn.is_hopeless(NOW));
    }

    #[test]
    fn headers_are_given_up_at_once() {
        let mut lsp = stream();
        feed(&mut lsp, 0, "Content-Length: 119\r\n\r\n");
        assert!(lsp.is_hopeless(NOW));
    }

    #[test]
    fn json_rpc_without_a_partner_is_given_up_in_the_end() {
        let mut acp = stream();
        let line = "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\"}\n";
        feed(&mut acp, 0, line.repeat(HELD_MESSAGES + 1));
        assert!(!acp.is_hopeless(NOW));
        let Role::Undecided(undecided) = &mut acp.role else {
            panic!("undecided")
        };
        undecided.evidence.waits_until = Some(NOW);
        assert!(!acp.is_hopeless(NOW));
        assert!(acp.is_hopeless(Timestamp::from_nanos(3)));
    }

    #[test]
    fn the_first_method_with_a_direction_tells_the_side() {
        let mut stream = stream();
        let lines = ["ping", "notifications/progress", "tools/call", "roots/list"]
            .map(|method| format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\"}}\n"));
        feed(&mut stream, 0, lines[0].clone());
        assert!(!stream.undecided().expect("undecided").evidence.mcp);
        feed(&mut stream, lines[0].len() as u64, lines[1..].concat());
        let evidence = &stream.undecided().expect("undecided").evidence;
        assert!(evidence.mcp && evidence.sender == Some(Side::Client));
    }

    #[test]
    fn a_read_completes_messages_whichever_comes_first() {
        let mut delivery = Delivery::default();
        delivery.sent(10);
        delivery.sent(20);
        delivery.read(9);
        assert_eq!(delivery.tell(20), None);
        delivery.read(15);
        assert_eq!(delivery.tell(20), Some(15));
        delivery.read(20);
        assert_eq!(delivery.tell(20), Some(20));
        assert_eq!(delivery.tell(20), None, "no message more");
    }

    #[test]
    fn a_reader_ahead_of_what_was_seen_is_told_of_once() {
        let mut delivery = Delivery::default();
        delivery.read(100);
        assert_eq!(delivery.tell(0), Some(100));
        delivery.read(200);
        assert_eq!(delivery.tell(0), None, "that is known");
        delivery.sent(150);
        assert_eq!(delivery.tell(300), Some(200), "a message more was read");
        delivery.sent(200);
        assert_eq!(delivery.tell(300), None, "that was told");
        delivery.read(400);
        assert_eq!(delivery.tell(300), Some(400));
    }
}
