//! The process that passes the bytes on, and in which they can be looked at.
//!
//! Each direction has a thread, the front's words have one, and the first thread belongs to
//! whoever looks at the copies. What becomes of that one, down to a panic, is nothing to the
//! others.

use std::io;
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, poll};
use nix::unistd::{dup2_stderr, setsid};

use super::StartError;
use super::control::{Report, Reporter, Signalled, Word, Words};
use super::describe::Description;
use super::pump::{PipeEnd, Pump, ServerEnded};
use super::queue::{Feed, Received, StreamTap, Tap, queue};
use super::server::{Process, Server, Stdios};
use super::witness::nowhere;
use crate::capture::clock::monotonic;
use crate::capture::{
    CaptureEvent, End, Fate, InterruptKind, Joined, Pid, ProcessChange, ProcessEvent, StreamId,
    StreamKind, Timestamp,
};

/// Client to server.
const TO_SERVER: StreamId = stream(0);

/// Server to client.
const TO_CLIENT: StreamId = stream(1);

/// See the module.
#[derive(Debug)]
pub struct Passer {
    feed: Feed,
}

impl Passer {
    pub(super) fn new(
        server: Server,
        host: Pid,
        reporter: Reporter,
        words: Words,
    ) -> Result<Self, StartError> {
        // Fails only for the leader of a group, which a new process is not.
        let _ = setsid();
        let (tap, feed) = queue();
        let host = Description::of(host);
        introduce(&tap, &host, &server.description);
        start(server, host.pid, reporter, words, tap)
            .map_err(StartError::system("start a thread"))?;
        Ok(Self { feed })
    }

    /// Lets `observe` look at what is passed on, in its own time. The bytes go by whatever it
    /// does; `None` where it panicked. Returns when there is nothing left to pass on.
    pub fn run<T>(self, observe: impl FnOnce(&Feed) -> T) -> Option<T> {
        let observed = catch_unwind(AssertUnwindSafe(|| observe(&self.feed))).ok();
        self.feed.mute();
        while !matches!(self.feed.receive(None), Received::End) {}
        observed
    }
}

const fn stream(object: u64) -> StreamId {
    StreamId {
        kind: StreamKind::Relay,
        object,
        scope: 0,
    }
}

/// Says what is known from the beginning: who the two are, and what they hold.
fn introduce(tap: &Tap, host: &Description, server: &Description) {
    let seen = |process: &Description, ppid| ProcessEvent {
        pid: process.pid,
        change: ProcessChange::Seen {
            ppid,
            exe: process.exe.clone(),
            argv: process.argv.clone(),
            start: None,
        },
    };
    let holds = |stream, pid, end, fd| CaptureEvent::Holds {
        stream,
        pid,
        end,
        fd,
        joined: Joined::Start,
    };
    let known = [
        CaptureEvent::Process(seen(host, None)),
        CaptureEvent::Process(seen(server, Some(host.pid))),
        holds(TO_SERVER, host.pid, End::Writer, UNKNOWN_FD),
        holds(TO_SERVER, server.pid, End::Reader, 0),
        holds(TO_CLIENT, server.pid, End::Writer, 1),
        holds(TO_CLIENT, host.pid, End::Reader, UNKNOWN_FD),
    ];
    for event in known {
        tap.tell(Timestamp::ZERO, event);
    }
}

/// The host's own numbers for its ends cannot be seen from here.
const UNKNOWN_FD: i32 = -1;

fn start(server: Server, host: Pid, reporter: Reporter, words: Words, tap: Tap) -> io::Result<()> {
    let Server {
        process,
        description,
        stdio: Stdios {
            to_server,
            from_server,
        },
    } = server;
    let pid = description.pid;
    let reporter = Arc::new(reporter);
    let (ended, ending) = io::pipe()?;
    let (answered, answer) = io::pipe()?;
    let server_ended = || -> io::Result<_> {
        Ok(Some(ServerEnded {
            news: ended.try_clone()?.into(),
            answer: answer.try_clone()?.into(),
        }))
    };
    let to_server = Pump {
        from: PipeEnd::Stdin,
        to: PipeEnd::Server(to_server),
        stream: TO_SERVER,
        tap: StreamTap::new(tap.clone(), TO_SERVER, host, None),
        introduced: None,
        reader: (pid, Some(0)),
        server_ended: server_ended()?,
        front: Some(words.hang_up()?),
        reporter: Arc::clone(&reporter),
        when_over: Report::HostClosed,
        over: Arc::default(),
    };
    let to_client = Pump {
        from: PipeEnd::Server(from_server),
        to: PipeEnd::Stdout,
        stream: TO_CLIENT,
        tap: StreamTap::new(tap.clone(), TO_CLIENT, pid, Some(1)),
        introduced: Some(description),
        reader: (host, None),
        server_ended: server_ended()?,
        front: None,
        reporter,
        when_over: Report::Passed,
        over: Arc::default(),
    };
    let listener = Listener {
        process,
        pid,
        tap,
        server_closed: Arc::clone(&to_client.over),
        ending,
        answered,
    };
    drop(answer);
    let named = |name: &str| thread::Builder::new().name(name.into());
    // Nobody waits for the threads: the queue ends when all have let go of their taps.
    named("to-server").spawn(move || to_server.run())?;
    named("to-client").spawn(move || to_client.run())?;
    named("front").spawn(move || listener.run(words))?;
    Ok(())
}

/// Hears from the front what became of the server.
struct Listener {
    process: Process,
    pid: Pid,
    tap: Tap,
    /// When the server closed its stdout, once it has.
    server_closed: Arc<OnceLock<Timestamp>>,
    /// Closed when the server has ended: the pumps watch the other end.
    ending: io::PipeWriter,
    /// At its end when the pumps have answered.
    answered: io::PipeReader,
}

/// A signal to the whole group may end the server so much sooner than the front takes its own.
const SAME_MOMENT: Duration = Duration::from_millis(100);

/// So long may the pumps take to tell what the server did before its end, in milliseconds: a host
/// that does not read may hold them up.
const ANSWER: u16 = 1000;

impl Listener {
    fn run(self, mut words: Words) {
        self.until_ended(&mut words);
        // The log can end without the front's end, on which the host's stderr depends: nobody
        // waits for this process, so it must not keep it open. All has been said by then.
        while words.next().is_some() {}
        let _ = nowhere().and_then(dup2_stderr);
    }

    /// Until the server ended, or nothing more will be heard of it.
    fn until_ended(self, words: &mut Words) {
        loop {
            match words.next() {
                Some(Word::Signal(signal)) => self.interrupt(signal),
                Some(Word::Ended(fate)) => return self.exit(fate),
                Some(Word::Leave) => return,
                None => return self.front_killed(),
            }
        }
    }

    fn interrupt(&self, signal: Signalled) {
        let kind = match signal.number {
            libc::SIGINT => InterruptKind::Sigint,
            libc::SIGTERM => InterruptKind::Sigterm,
            libc::SIGHUP => InterruptKind::Sighup,
            libc::SIGKILL => InterruptKind::Sigkill,
            _ => return,
        };
        let interrupt = CaptureEvent::Interrupt {
            pid: self.pid,
            kind,
            sender: signal.sender.map(Pid),
        };
        self.tap.tell(self.moment(signal), interrupt);
    }

    /// When the signal reached the server. What a signal brought about does not come before it.
    fn moment(&self, signal: Signalled) -> Timestamp {
        let at = self.tap.time(signal.at);
        match self.server_closed.get() {
            Some(closed) if signal.to_group && at.since(*closed) <= SAME_MOMENT => at.min(*closed),
            _ => at,
        }
    }

    /// Tells of the server's end, after everything that it did.
    fn exit(self, fate: Fate) {
        drop(self.ending);
        let answered = PollFd::new(self.answered.as_fd(), PollFlags::POLLIN);
        let _ = poll(&mut [answered], ANSWER);
        let exit = ProcessEvent {
            pid: self.pid,
            change: ProcessChange::Exit { fate: Some(fate) },
        };
        self.tap.tell(self.tap.now(), CaptureEvent::Process(exit));
    }

    /// The front says how the server ended before it ends itself. Without that it was killed: so
    /// would the server have been, had the host started it.
    fn front_killed(self) {
        self.process.kill();
        self.interrupt(Signalled {
            number: libc::SIGKILL,
            sender: None,
            to_group: true,
            at: monotonic(),
        });
        self.exit(Fate::Signal(libc::SIGKILL));
    }
}
