//! What the front and the passer tell each other, each through a pipe.
//!
//! Words of fixed size, written whole or not at all (they are shorter than `PIPE_BUF`). Either
//! process may be gone: then nobody needs to be told anything.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use crate::capture::Fate;

/// What the front tells the passer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// The front got a signal.
    Signal(Signalled),
    /// The server has ended.
    Ended(Fate),
    /// The host is gone and nobody waits for the front any more: it leaves, the server stays.
    Leave,
}

/// A signal that the front got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Signalled {
    pub(super) number: i32,
    /// The process that sent it, where one did.
    pub(super) sender: Option<u32>,
    /// Whether it went to the group, and so reached the server by itself.
    pub(super) to_group: bool,
    /// When, on the machine's clock.
    pub(super) at: u64,
}

impl Word {
    const SIZE: usize = 20;

    fn encode(self) -> [u8; Self::SIZE] {
        let (kind, one, two, time) = match self {
            Self::Signal(signal) => (
                u32::from(signal.to_group),
                signal.number,
                signal.sender.unwrap_or(0),
                signal.at,
            ),
            Self::Ended(Fate::Code(code)) => (2, code, 0, 0),
            Self::Ended(Fate::Signal(signal)) => (3, signal, 0, 0),
            Self::Leave => (4, 0, 0, 0),
        };
        let mut word = [0; Self::SIZE];
        word[..4].copy_from_slice(&u32::to_ne_bytes(kind));
        word[4..8].copy_from_slice(&i32::to_ne_bytes(one));
        word[8..12].copy_from_slice(&u32::to_ne_bytes(two));
        word[12..].copy_from_slice(&u64::to_ne_bytes(time));
        word
    }

    fn decode(word: [u8; Self::SIZE]) -> Option<Self> {
        let (kind, rest) = word.split_first_chunk()?;
        let (one, rest) = rest.split_first_chunk()?;
        let (two, time) = rest.split_first_chunk()?;
        let one = i32::from_ne_bytes(*one);
        let sender = u32::from_ne_bytes(*two);
        Some(match u32::from_ne_bytes(*kind) {
            kind @ 0..=1 => Self::Signal(Signalled {
                number: one,
                sender: (sender != 0).then_some(sender),
                to_group: kind == 1,
                at: u64::from_ne_bytes(time.try_into().ok()?),
            }),
            2 => Self::Ended(Fate::Code(one)),
            3 => Self::Ended(Fate::Signal(one)),
            4 => Self::Leave,
            _ => return None,
        })
    }
}

/// What the passer tells the front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// The host closed the server's standard input.
    HostClosed,
    /// All that the server wrote has been passed on, and nothing more can come.
    Passed,
    /// All that the server wrote until it ended has been passed on; others hold its stdout open.
    HeldOpen,
}

/// Both pipes, before the processes part.
pub(super) struct Links {
    words: (PipeReader, PipeWriter),
    reports: (PipeReader, PipeWriter),
}

impl Links {
    pub(super) fn new() -> io::Result<Self> {
        let (words, reports) = (io::pipe()?, io::pipe()?);
        // Neither side ever waits for the other to listen.
        for writer in [words.1.as_fd(), reports.1.as_fd()] {
            fcntl(writer, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        }
        Ok(Self { words, reports })
    }

    /// The front's ends.
    pub(super) fn into_front(self) -> (Reports, Control) {
        (
            Reports(self.reports.0),
            Control(File::from(OwnedFd::from(self.words.1))),
        )
    }

    /// The passer's ends.
    pub(super) fn into_passer(self) -> (Reporter, Words) {
        (Reporter(self.reports.1), Words(self.words.0))
    }
}

/// The front's way to tell the passer.
#[derive(Debug)]
pub(super) struct Control(File);

impl Control {
    pub(super) fn tell(&self, word: Word) {
        // A passer that is gone, or that is 3,000 words behind, is told nothing.
        let _ = (&self.0).write(&word.encode());
    }
}

/// The passer's ear for the front.
#[derive(Debug)]
pub(super) struct Words(PipeReader);

impl Words {
    /// A descriptor that hangs up when the front is gone, for `poll`.
    pub(super) fn hang_up(&self) -> io::Result<OwnedFd> {
        Ok(self.0.try_clone()?.into())
    }

    /// The next word; `None` when the front is gone.
    pub(super) fn next(&mut self) -> Option<Word> {
        let mut word = [0; Word::SIZE];
        self.0.read_exact(&mut word).ok()?;
        Word::decode(word)
    }
}

/// The passer's way to tell the front.
#[derive(Debug)]
pub(super) struct Reporter(PipeWriter);

impl Reporter {
    pub(super) fn tell(&self, report: Report) {
        let byte = match report {
            Report::HostClosed => b'c',
            Report::Passed => b'p',
            Report::HeldOpen => b'h',
        };
        // A front that is gone needs no report, and three bytes fit into any pipe.
        let _ = (&self.0).write(&[byte]);
    }
}

/// The front's ear for the passer.
#[derive(Debug)]
pub(super) struct Reports(PipeReader);

impl Reports {
    /// The next report; `None` when the passer is gone.
    pub(super) fn next(&mut self) -> Option<Report> {
        let mut byte = [0];
        self.0.read_exact(&mut byte).ok()?;
        match byte {
            [b'c'] => Some(Report::HostClosed),
            [b'p'] => Some(Report::Passed),
            [b'h'] => Some(Report::HeldOpen),
            _ => None,
        }
    }
}

impl AsFd for Reports {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_arrive_as_they_were_sent() {
        let words = [
            Word::Signal(Signalled {
                number: 15,
                sender: Some(4_000_000_000),
                to_group: false,
                at: u64::MAX,
            }),
            Word::Signal(Signalled {
                number: 2,
                sender: None,
                to_group: true,
                at: 1,
            }),
            Word::Ended(Fate::Code(-1)),
            Word::Ended(Fate::Signal(9)),
            Word::Leave,
        ];
        for word in words {
            assert_eq!(Word::decode(word.encode()), Some(word));
        }
        assert_eq!(Word::decode([0xff; Word::SIZE]), None);
    }
}
