//! What one direction carried, before it is known to which connection the stream belongs.

use bytes::Bytes;

use super::event::{ConnId, Event, Noise, NoiseKind, Side};
use crate::capture::GapReason;
use crate::jsonrpc::{Fault, Frame};
use crate::stream::{HEAD, Piece};

/// Something that a stream carried, or that happened to it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Content {
    Message {
        offset: u64,
        bytes: u64,
        frame: Frame,
    },
    Noise {
        offset: u64,
        bytes: u64,
        kind: NoiseKind,
        text: Bytes,
    },
    Gap {
        offset: u64,
        bytes: Option<u64>,
        reason: GapReason,
    },
    Delivered {
        offset: u64,
    },
    Refused,
    Eof,
}

impl Content {
    /// Reads a piece of a stream.
    ///
    /// The line after a gap is taken for a frame if it is a whole one, else it is more of the
    /// gap. That invents nothing: no proper ending of a valid JSON line is itself a JSON-RPC
    /// message. Outside strings it closes a bracket that it did not open; from inside a string
    /// its quotes are the wrong way round, and no key can be `jsonrpc`.
    pub(super) fn read(piece: Piece) -> Self {
        match piece {
            Piece::Line {
                offset,
                bytes,
                text,
                after,
            } => match (Frame::parse(text.clone()), after) {
                (Ok(frame), _) => Self::Message {
                    offset,
                    bytes,
                    frame,
                },
                (Err(_), Some(reason)) => Self::Gap {
                    offset,
                    bytes: Some(bytes),
                    reason,
                },
                (Err(fault), None) => {
                    let text = text.slice(..text.len().min(HEAD));
                    Self::Noise {
                        offset,
                        bytes,
                        kind: fault.into(),
                        text,
                    }
                }
            },
            Piece::Oversized {
                offset,
                bytes,
                head,
            } => Self::Noise {
                offset,
                bytes,
                kind: NoiseKind::Oversized,
                text: head,
            },
            Piece::Unterminated {
                offset,
                bytes,
                head,
            } => Self::Noise {
                offset,
                bytes,
                kind: NoiseKind::Unterminated,
                text: head,
            },
            Piece::Gap {
                offset,
                bytes,
                reason,
            } => Self::Gap {
                offset,
                bytes,
                reason,
            },
        }
    }

    /// About how much memory it holds on to, in bytes.
    pub(super) fn weight(&self) -> usize {
        let text = match self {
            Self::Message { frame, .. } => frame.text().len() + size_of_val(frame.messages()),
            Self::Noise { text, .. } => text.len(),
            Self::Gap { .. } | Self::Delivered { .. } | Self::Refused | Self::Eof => 0,
        };
        text + size_of::<Self>()
    }

    pub(super) fn event(self, conn: ConnId, from: Side) -> Event {
        match self {
            Self::Message {
                offset,
                bytes,
                frame,
            } => Event::Message {
                conn,
                from,
                offset: Some(offset),
                bytes,
                frame,
            },
            Self::Noise {
                offset,
                bytes,
                kind,
                text,
            } => Event::Noise(Noise {
                conn,
                from,
                offset: Some(offset),
                bytes,
                kind,
                text,
            }),
            Self::Gap {
                offset,
                bytes,
                reason,
            } => Event::Gap {
                conn,
                from,
                offset,
                bytes,
                reason,
            },
            Self::Delivered { offset } => Event::Delivered { conn, from, offset },
            Self::Refused => Event::Refused { conn, from },
            Self::Eof => Event::Eof { conn, from },
        }
    }
}

impl From<Fault> for NoiseKind {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Text => Self::Text,
            Fault::Blank => Self::Blank,
            Fault::InvalidJson => Self::InvalidJson,
            Fault::InvalidUtf8 => Self::InvalidUtf8,
            Fault::ContentLength => Self::ContentLength,
        }
    }
}
