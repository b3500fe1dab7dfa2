//! Without privileges: `ptrace(2)`, for processes of our own user.
//!
//! Owns everything between `ptrace(2)` and the event channel. A [`Trace`] is a thread that traces
//! what it is told to; a [`Handle`] steers it from elsewhere. The tracees stop at the entry and
//! the exit of every system call, and go on as soon as it was looked at.
//!
//! # Whatever becomes of us, the tracees live on
//!
//! When the tracing thread ends, by whichever way, the kernel lets go of the tracees: those that
//! stand still go on, those that are stopped by job control stay so, and a signal that was being
//! delivered is delivered (we look at reports without taking them: see `sys::look`). Hence:
//!
//! - Never `PTRACE_O_EXITKILL`.
//! - No seccomp filter that makes only the calls of interest stop. A filter cannot be taken back,
//!   and the kernel fails the calls that it marks with `ENOSYS` once the tracer is gone
//!   (`SECCOMP_RET_TRACE`; `SECCOMP_RET_USER_NOTIF` is the same when the listener is closed:
//!   `kernel/seccomp.c`, Linux 6.12). A tracee whose observer died could not read or write any
//!   more. It would need `no_new_privs` as well, which takes setuid programs their rights. The
//!   price is that calls of no interest stop too.
//! - `PTRACE_SEIZE`, never `PTRACE_TRACEME` or `PTRACE_ATTACH`: no SIGSTOP that a tracee could
//!   keep.
//!
//! # What differs for the tracees
//!
//! A traced program cannot be traced by another (gdb, strace). Programs that are setuid or have
//! file capabilities run without these rights, unless we have `CAP_SYS_PTRACE`. A signal that a
//! program ignores interrupts its `epoll_wait` with `EINTR`, and so does the beginning of an
//! [attach](Trace::watch_pid): `signal(7)` lists the calls that do not restart. While this process
//! is stopped (Ctrl-Z), a tracee stands still from its next system call on.
//!
//! # What is not seen
//!
//! The calls of 32-bit programs; `io_uring`; SIGKILL from outside the scope before it has worked;
//! signals while they are blocked; programs that forbid to be looked into (`PR_SET_DUMPABLE`).

mod address;
mod bell;
mod calls;
mod descriptor;
mod error;
mod identity;
mod info;
mod memory;
mod outbox;
mod peers;
mod report;
mod seize;
mod signals;
mod stop;
mod streams;
mod sys;
mod syscall;
mod tasks;
mod tracer;

use std::io;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use tokio::sync::mpsc::{Sender, UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::Clock;
use super::event::{Captured, Loss, Pid, StreamId};
use super::spawn::ChildChange;
use bell::{Bell, Ring};
use calls::Calls;
use stop::Ptrace;
use tracer::Tracer;

pub use error::{Refusal, TraceError};

/// A thread that traces processes and delivers what it sees of them. When this is dropped, it
/// lets go of them and ends.
#[derive(Debug)]
pub struct Trace {
    handle: Handle,
    thread: JoinHandle<Loss>,
    clock: Clock,
}

/// Steers a [`Trace`]. What is sent after it has ended goes nowhere.
#[derive(Clone, Debug)]
pub struct Handle {
    rings: mpsc::Sender<Ring>,
}

/// What becomes of a child that is traced: nobody else can wait for it, as its reports go to the
/// tracer.
#[derive(Debug)]
pub struct ChildChanges {
    changes: UnboundedReceiver<ChildChange>,
}

/// What the tracing thread is told.
#[derive(Debug)]
enum Command {
    Deliver(Sender<Vec<Captured>>),
    GiveUp(StreamId),
    Forget(StreamId),
    Watch {
        pid: Pid,
        child: Option<UnboundedSender<ChildChange>>,
        reply: mpsc::Sender<Reply>,
    },
    /// Look what is due.
    Wake,
    Stop,
}

type Reply = Result<(), TraceError>;

impl Trace {
    /// Starts the thread, which traces nothing yet. It counts time by `clock`.
    ///
    /// # Errors
    ///
    /// Where no thread can be started.
    pub fn start(clock: Clock) -> Result<Self, TraceError> {
        let (started, start) = mpsc::channel();
        let body = move || trace(clock, &started);
        let builder = thread::Builder::new().name("ptrace".into());
        let thread = builder.spawn(body).map_err(TraceError::Thread)?;
        let rings = start
            .recv()
            .map_err(|_| TraceError::Ended)?
            .map_err(TraceError::Thread)?;
        Ok(Self {
            handle: Handle { rings },
            thread,
            clock,
        })
    }

    /// Traces a running process, all its threads, and all that it starts from now on. What it has
    /// open already is for the caller to announce, after this.
    ///
    /// # Errors
    ///
    /// Where the kernel does not permit it; then the process is left as it was.
    pub fn watch_pid(&self, pid: Pid) -> Result<(), TraceError> {
        self.watch(pid, None)
    }

    /// Traces a child of ours that waits to be released (`spawn::Paused`), and all that it starts.
    /// From now on its end is reported here, and must not be waited for elsewhere: who does takes
    /// the reports that the tracer waits for.
    ///
    /// # Errors
    ///
    /// Where the kernel does not permit it.
    pub fn watch_child(&self, pid: Pid) -> Result<ChildChanges, TraceError> {
        let (sender, changes) = unbounded_channel();
        self.watch(pid, Some(sender))?;
        Ok(ChildChanges { changes })
    }

    fn watch(&self, pid: Pid, child: Option<UnboundedSender<ChildChange>>) -> Reply {
        let (reply, answer) = mpsc::channel();
        self.handle.send(Command::Watch { pid, child, reply });
        answer.recv().map_err(|_| TraceError::Ended)?
    }

    /// From now on `events` gets everything: what was captured so far, and what will be. Where it
    /// is full, some 64 MiB may wait; then the tracees do.
    pub fn deliver_to(&self, events: Sender<Vec<Captured>>) {
        self.handle.send(Command::Deliver(events));
    }

    /// The system calls that it decodes, for the log. Every other is looked at by its number only.
    pub fn hooks() -> impl Iterator<Item = &'static str> {
        syscall::names()
    }

    /// To steer it from elsewhere.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// The zero of all timestamps.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Waits until the thread has ended, and returns its last counters. Only after
    /// [`Handle::stop`], or when nobody receives its events any more, does it end. What it still
    /// delivers must be received meanwhile.
    ///
    /// # Errors
    ///
    /// Where it panicked.
    pub fn join(self) -> Result<Loss, TraceError> {
        self.thread.join().map_err(|_| TraceError::Ended)
    }
}

impl Handle {
    /// The stream is no MCP: its bytes are not wanted any more.
    pub fn give_up(&self, stream: StreamId) {
        self.send(Command::GiveUp(stream));
    }

    /// The stream is over.
    pub fn forget(&self, stream: StreamId) {
        self.send(Command::Forget(stream));
    }

    /// Let go of all tracees, deliver what is left, and end.
    pub fn stop(&self) {
        self.send(Command::Stop);
    }

    fn send(&self, command: Command) {
        // It fails when the thread has ended.
        self.rings.send(Ring::Command(command)).ok();
    }
}

impl ChildChanges {
    /// The next change; `None` after the end, and when the trace has ended. Nothing is lost where
    /// the future is dropped.
    pub async fn next(&mut self) -> Option<ChildChange> {
        self.changes.recv().await
    }

    /// The same, blocking.
    pub fn wait(&mut self) -> Option<ChildChange> {
        self.changes.blocking_recv()
    }
}

/// The tracing thread.
fn trace(clock: Clock, started: &mpsc::Sender<io::Result<mpsc::Sender<Ring>>>) -> Loss {
    let hung = sys::silence_stops().map_err(io::Error::from);
    let (bell, rope) = match hung.and_then(|()| Bell::hang()) {
        Ok(hung) => hung,
        Err(error) => {
            started.send(Err(error)).ok();
            return Loss::default();
        }
    };
    started.send(Ok(rope)).ok();
    let calls = Calls::new(clock);
    Tracer::new(Ptrace::new(), bell, calls).run()
}
