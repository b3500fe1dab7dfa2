//! Lines that are no messages: which of them belong together.

use bytes::{Bytes, BytesMut};

use super::connection::index;
use super::judge::{Due, Judge};
use super::occurrence::Occurrence;
use crate::capture::Timestamp;
use crate::jsonrpc::Frame;
use crate::session::{ConnId, Noise, NoiseKind, Side};

/// More lines are not put together.
const LINES: usize = 1024;
/// Nor more bytes.
const BYTES: usize = 64 << 10;

impl Judge {
    pub(super) fn noise(&mut self, noise: &Noise, at: Timestamp) {
        self.open(noise.conn);
        let end = noise.offset.map(|offset| offset + noise.bytes);
        let hides = match noise.kind {
            NoiseKind::Oversized | NoiseKind::InvalidUtf8 | NoiseKind::ContentLength => true,
            // What we cannot read, a lenient host might.
            NoiseKind::InvalidJson | NoiseKind::Unterminated => {
                memchr::memmem::find(&noise.text, b"\"jsonrpc\"").is_some()
            }
            NoiseKind::Text | NoiseKind::Blank => false,
        };
        if hides {
            self.cloud(noise.conn, noise.from, at);
        }
        self.hear(noise.conn, noise.from, end, at);
        if noise.kind == NoiseKind::Oversized {
            self.state.summary.gaps += 1;
        }
        self.hear_noise(noise);
    }

    /// A line that is no message. One that looks like the beginning of a JSON text waits for the
    /// lines after it.
    fn hear_noise(&mut self, noise: &Noise) {
        let (conn, side) = (noise.conn, noise.from);
        let Some(connection) = self.state.conns.get_mut(&conn) else {
            return;
        };
        let lines = &mut connection.spread[index(side)];
        let fits = if lines.is_empty() {
            begins(noise)
        } else {
            goes_on(lines, noise)
        };
        if !fits {
            self.end_spread(conn, side);
            self.tell_of(conn, |conn| Occurrence::Noise {
                conn,
                noise,
                spread: None,
            });
            return;
        }
        lines.push(noise.clone());
        if !is_message(lines) {
            self.set_timer(self.state.settings.reorder, Due::Spread(conn, side));
            return;
        }
        let lines = std::mem::take(lines);
        // A lenient peer may read it.
        self.cloud(conn, side, self.state.now);
        self.tell_of(conn, |conn| {
            let noise = lines.first()?;
            Some(Occurrence::Noise {
                conn,
                noise,
                spread: Some(lines.len()),
            })
        });
    }

    /// Lines that waited for more are noise each for itself.
    pub(super) fn end_spread(&mut self, conn: ConnId, side: Side) {
        let Some(connection) = self.state.conns.get_mut(&conn) else {
            return;
        };
        for noise in std::mem::take(&mut connection.spread[index(side)]) {
            self.tell_of(conn, |conn| Occurrence::Noise {
                conn,
                noise: &noise,
                spread: None,
            });
        }
    }
}

fn begins(noise: &Noise) -> bool {
    let text = noise.text.trim_ascii();
    noise.kind == NoiseKind::InvalidJson && (text.starts_with(b"{") || text == b"[")
}

fn goes_on(lines: &[Noise], noise: &Noise) -> bool {
    let bytes: usize = lines.iter().map(|line| line.text.len()).sum();
    let fits = lines.len() < LINES && bytes + noise.text.len() <= BYTES;
    let kind = matches!(
        noise.kind,
        NoiseKind::InvalidJson | NoiseKind::Text | NoiseKind::Blank
    );
    fits && kind && is_whole(noise)
}

/// Whether the line's text is all there; long ones are cut.
fn is_whole(noise: &Noise) -> bool {
    noise.text.len() as u64 + 2 >= noise.bytes
}

fn is_message(lines: &[Noise]) -> bool {
    let closes = lines.last().is_some_and(|line| {
        let text = line.text.trim_ascii();
        text.ends_with(b"}") || text.ends_with(b"]")
    });
    if !closes {
        return false;
    }
    let mut text = BytesMut::new();
    for line in lines {
        text.extend_from_slice(&line.text);
        text.extend_from_slice(b" ");
    }
    Frame::parse(Bytes::from(text)).is_ok()
}
