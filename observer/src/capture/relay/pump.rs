//! One direction: reads from one side, writes to the other, and then hands over a copy.
//!
//! The descriptors are used as they are: whether they block is a property that the host may share,
//! so it is not changed. Each direction has its own thread, which may wait in a `write` for as long
//! as the other side does not read: that is the backpressure.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, OnceLock};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{dup2_stdin, dup2_stdout, read, write};

use super::control::{Report, Reporter};
use super::describe::Description;
use super::queue::StreamTap;
use super::witness::nowhere;
use crate::capture::{CaptureEvent, Pid, StreamId, Timestamp};

/// The capacity of a pipe on Linux.
const BUFFER: usize = 64 * 1024;

/// How soon after a write it is asked for the first time whether it was read, and at most how long
/// between two askings, in milliseconds. Nothing is asked once all was read.
const ASK_FIRST: u16 = 1;
const ASK_LAST: u16 = 128;

/// So long may the front take to die of a SIGKILL, in milliseconds. Every end of file waits for it.
const DYING: u16 = 10;

/// So long may it take to kill the server after the front was killed, in milliseconds.
const KILL: u16 = 1000;

/// An end of a pipe or socket.
#[derive(Debug)]
pub(super) enum PipeEnd {
    /// This process' descriptor 0: what the host writes into.
    Stdin,
    /// This process' descriptor 1: what the host reads from.
    Stdout,
    /// An end of the server's.
    Server(OwnedFd),
}

impl AsFd for PipeEnd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            // SAFETY: 0 is open as long as the process lives (see `drop`).
            Self::Stdin => unsafe { BorrowedFd::borrow_raw(0) },
            // SAFETY: likewise 1.
            Self::Stdout => unsafe { BorrowedFd::borrow_raw(1) },
            Self::Server(fd) => fd.as_fd(),
        }
    }
}

impl Drop for PipeEnd {
    /// Closes it for the host; 0 and 1 stay taken, so that nothing else gets these numbers.
    fn drop(&mut self) {
        let closed = |to: fn(OwnedFd) -> nix::Result<()>| nowhere().and_then(to);
        let _ = match self {
            Self::Stdin => closed(dup2_stdin),
            Self::Stdout => closed(dup2_stdout),
            Self::Server(_) => Ok(()),
        };
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Pump {
    pub(super) from: PipeEnd,
    pub(super) to: PipeEnd,
    pub(super) stream: StreamId,
    pub(super) tap: StreamTap,
    /// Who writes, as it was introduced: by its first bytes it may have executed another program
    /// (`npx`, `uv`, a shell's `exec`).
    pub(super) introduced: Option<Description>,
    /// Who reads at the other side, and through which descriptor.
    pub(super) reader: (Pid, Option<i32>),
    pub(super) server_ended: Option<ServerEnded>,
    /// Hangs up when the front is gone. For the direction to the server.
    pub(super) front: Option<OwnedFd>,
    pub(super) reporter: Arc<Reporter>,
    /// What the front is told when this direction is over.
    pub(super) when_over: Report,
    /// When the writer closed this direction, once it has.
    pub(super) over: Arc<OnceLock<Timestamp>>,
}

/// How a pump learns that the server has ended, and how it answers.
#[derive(Debug)]
pub(super) struct ServerEnded {
    /// Becomes readable (at its end) when the server has ended.
    pub(super) news: OwnedFd,
    /// Closed when everything has been said that came before.
    #[expect(dead_code, reason = "held only to be closed")]
    pub(super) answer: OwnedFd,
}

/// How far the other side has read.
#[derive(Debug)]
struct Delivery {
    told: u64,
    /// When to ask again, in milliseconds; `None` where all was read, or nobody can know.
    ask: Option<u16>,
}

impl Pump {
    /// Passes on until one of the sides is closed, then closes the other.
    pub(super) fn run(mut self) {
        let mut delivery = Delivery { told: 0, ask: None };
        let mut buffer = vec![0; BUFFER];
        while self.turn(&mut buffer, &mut delivery) {}
        // The ends close before the front hears of it: it may end at once.
        let Self {
            from,
            to,
            reporter,
            when_over,
            ..
        } = self;
        drop(from);
        drop(to);
        reporter.tell(when_over);
    }

    /// Waits for something to happen, and does what it asks for. Whether there is a next turn.
    fn turn(&mut self, buffer: &mut [u8], delivery: &mut Delivery) -> bool {
        let Ok(Ready {
            from,
            reader_gone,
            ended,
        }) = self.wait(delivery.ask)
        else {
            return false;
        };
        if delivery.ask.is_some() {
            self.ask(delivery, reader_gone);
        }
        if reader_gone {
            return false;
        }
        if from {
            return self.pass(buffer, delivery);
        }
        if ended {
            self.ask(delivery, reader_gone);
            self.server_ended = None;
            if self.when_over == Report::Passed {
                self.reporter.tell(Report::HeldOpen);
            }
        }
        true
    }

    fn wait(&self, ask: Option<u16>) -> nix::Result<Ready> {
        // What cannot be polled (POLLNVAL: a device on macOS) is only written to.
        let gone = PollFlags::POLLERR | PollFlags::POLLHUP;
        let mut fds = vec![
            PollFd::new(self.from.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.to.as_fd(), PollFlags::empty()),
        ];
        if let Some(ended) = &self.server_ended {
            fds.push(PollFd::new(ended.news.as_fd(), PollFlags::POLLIN));
        }
        let timeout = ask.map_or(PollTimeout::NONE, PollTimeout::from);
        match poll(&mut fds, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
        let any =
            |fd: Option<&PollFd<'_>>| fd.and_then(PollFd::revents).unwrap_or(PollFlags::empty());
        Ok(Ready {
            from: !any(fds.first()).is_empty(),
            reader_gone: any(fds.get(1)).intersects(gone),
            ended: !any(fds.get(2)).is_empty(),
        })
    }

    /// Reads once and writes all of it. Whether there may be more.
    fn pass(&mut self, buffer: &mut [u8], delivery: &mut Delivery) -> bool {
        let size = match read(&self.from, buffer) {
            Ok(0) => 0,
            Ok(size) => size,
            Err(Errno::EINTR | Errno::EAGAIN) => return true,
            // The other side closed with bytes unread (ECONNRESET), or a terminal hung up (EIO).
            Err(_) => 0,
        };
        let at = self.tap.now();
        let Some(bytes) = buffer.get(..size).filter(|bytes| !bytes.is_empty()) else {
            self.ask(delivery, false);
            let _ = self.over.set(at);
            self.tap.tell(CaptureEvent::Eof {
                stream: self.stream,
            });
            self.await_kill();
            return false;
        };
        let written = write_all(self.to.as_fd(), bytes);
        if let Some(event) = self.introduced.take().and_then(Description::news) {
            self.tap.tell(event);
        }
        self.tap.chunk(at, bytes);
        if written.is_err() {
            let (stream, writer) = (self.stream, self.tap.writer());
            self.tap.tell(CaptureEvent::Refused { stream, writer });
            return false;
        }
        delivery.ask = Some(ASK_FIRST);
        true
    }

    /// A host that has killed the server closes its pipes after that. The server must not see an
    /// end of file that it would not have lived to see.
    fn await_kill(&self) {
        let hangs_up = |fd: &OwnedFd, patience: u16| {
            let mut fds = [PollFd::new(fd.as_fd(), PollFlags::empty())];
            matches!(poll(&mut fds, patience), Ok(1..))
        };
        if let (Some(front), Some(ended)) = (&self.front, &self.server_ended)
            && hangs_up(front, DYING)
        {
            hangs_up(&ended.news, KILL);
        }
    }

    /// Finds out how far the other side has read, where the system can tell.
    fn ask(&mut self, delivery: &mut Delivery, reader_gone: bool) {
        let written = self.tap.position();
        let unread = match unread(self.to.as_fd()) {
            Unread::Bytes(bytes) => bytes,
            Unread::Nothing if !reader_gone => 0,
            Unread::Something => written.saturating_sub(delivery.told),
            // A socket forgets what it held when its reader closes it.
            Unread::Nothing | Unread::Unknown => {
                delivery.ask = None;
                return;
            }
        };
        let end = written.saturating_sub(unread);
        if end > delivery.told {
            delivery.told = end;
            let (reader, fd) = self.reader;
            self.tap.tell(CaptureEvent::Read {
                stream: self.stream,
                end,
                reader,
                fd,
            });
        }
        delivery.ask = (end < written).then(|| {
            delivery
                .ask
                .unwrap_or(ASK_FIRST)
                .saturating_mul(2)
                .min(ASK_LAST)
        });
    }
}

/// What [`Pump::wait`] found.
struct Ready {
    from: bool,
    reader_gone: bool,
    ended: bool,
}

/// Writes all, waiting for room as long as it takes.
fn write_all(to: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match write(to, bytes) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => {
                let room = PollFd::new(to, PollFlags::POLLOUT);
                match poll(&mut [room], PollTimeout::NONE) {
                    Ok(_) | Err(Errno::EINTR) => {}
                    Err(errno) => return Err(errno.into()),
                }
            }
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// How much of what was written has not been read.
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "no other system tells so far")
)]
enum Unread {
    /// So many bytes: a pipe knows.
    Bytes(u64),
    /// Something: a socket does not know how much.
    Something,
    /// Nothing: a socket.
    Nothing,
    /// The system does not tell.
    Unknown,
}

#[cfg(target_os = "linux")]
fn unread(to: BorrowedFd<'_>) -> Unread {
    use std::os::fd::AsRawFd;
    let mut amount: libc::c_int = 0;
    // SAFETY: the request writes one int. For a Unix socket it is the memory that unread bytes
    // take (net/unix/af_unix.c): zero says that all were read. A pipe does not know the request.
    if unsafe { libc::ioctl(to.as_raw_fd(), libc::TIOCOUTQ, &raw mut amount) } == 0 {
        return match amount {
            0 => Unread::Nothing,
            _ => Unread::Something,
        };
    }
    // SAFETY: the request writes one int. A pipe answers at both ends (fs/pipe.c, Linux 2.6+).
    match unsafe { libc::ioctl(to.as_raw_fd(), libc::FIONREAD, &raw mut amount) } {
        0 => u64::try_from(amount).map_or(Unread::Unknown, Unread::Bytes),
        _ => Unread::Unknown,
    }
}

#[cfg(not(target_os = "linux"))]
fn unread(_to: BorrowedFd<'_>) -> Unread {
    Unread::Unknown
}
