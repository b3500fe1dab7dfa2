//! The tracing thread: takes the tracees' reports one by one, and lets them go on.
//!
//! Owns the order of events: a thread goes on only after what it did was put into the batch.

use std::collections::HashMap;
use std::time::Duration;

use nix::errno::Errno;
use tokio::sync::mpsc::UnboundedSender;

use super::Command;
use super::bell::Bell;
use super::calls::{Caller, Calls};
use super::error::{self, TraceError};
use super::identity;
use super::info::SyscallInfo;
use super::report::Event;
use super::seize::seize;
use super::signals;
use super::stop::{AtEvent, AtSignal, AtSyscall, Ptrace, Reported, Stop};
use super::sys::{self, Tid, Wait, Whose};
use super::syscall::{Args, Op};
use super::tasks::{Tasks, look_up};
use crate::capture::event::{
    CaptureEvent, Fate, InterruptKind, Loss, Pid, ProcessChange, ProcessEvent,
};
use crate::capture::spawn::ChildChange;

/// After so many reports (or as many as there are threads, if that is more) every thread gets a
/// turn: the kernel names those first that were traced first, and a few that make one call after
/// the other would hold up all others.
const TURNS: usize = 64;

/// How long a full channel is given before it is tried again.
const FULL: Duration = Duration::from_millis(5);

/// See the module.
#[derive(Debug)]
pub(super) struct Tracer {
    ptrace: Ptrace,
    bell: Bell,
    tasks: Tasks,
    calls: Calls,
    /// Who is about to be killed, and by whom.
    kills: HashMap<Pid, Pid>,
    child: Option<Child>,
    turns: usize,
    stopped: bool,
}

/// The process that `run` started: our own child, whose stops and end only we get to see.
#[derive(Debug)]
struct Child {
    pid: Pid,
    changes: UnboundedSender<ChildChange>,
    executed: bool,
}

impl Tracer {
    pub(super) fn new(ptrace: Ptrace, bell: Bell, calls: Calls) -> Self {
        Self {
            ptrace,
            bell,
            tasks: Tasks::default(),
            calls,
            kills: HashMap::new(),
            child: None,
            turns: 0,
            stopped: false,
        }
    }

    /// Traces until everything has ended or it is told to stop; then delivers what is left, and
    /// returns the counters. When the thread that calls this ends, the kernel lets all tracees go
    /// on by themselves.
    pub(super) fn run(mut self) -> Loss {
        while !self.stopped && !self.calls.outbox.is_closed() {
            self.step();
        }
        let loss = self.calls.streams.loss();
        self.calls.emit(CaptureEvent::Loss(loss));
        self.calls.outbox.drain();
        loss
    }

    fn step(&mut self) {
        while let Some(command) = self.bell.command() {
            self.obey(command);
        }
        if self.stopped {
            return;
        }
        if self.turns >= TURNS.max(self.tasks.len()) {
            self.turns = 0;
            self.give_turns();
        }
        self.turns += 1;
        match self.next(self.awaited().now()) {
            Some(reported) => self.handle(reported),
            None => self.wait(),
        }
    }

    /// Has nothing to do until the next report, or until the bell rings.
    fn wait(&mut self) {
        let due = self.calls.poll_keys();
        let due = due.map(|due| due.since(self.calls.clock.now()));
        let retry = (!self.calls.outbox.flush()).then_some(FULL);
        if let Some(wait) = due.into_iter().chain(retry).min() {
            self.bell.ring_after(wait);
        }
        self.turns = 0;
        if let Some(reported) = self.next(self.awaited()) {
            self.handle(reported);
        }
    }

    /// What to wait for. The end of a child that has not executed its program is for those who
    /// started it.
    fn awaited(&self) -> Wait {
        match &self.child {
            Some(child) if !child.executed => Wait::STOPS,
            _ => Wait::ALL,
        }
    }

    fn next(&mut self, which: Wait) -> Option<Reported> {
        match self.ptrace.next(Whose::Any, which) {
            Ok(reported) => reported,
            Err(Errno::ECHILD) => {
                self.have_none();
                None
            }
            // EINTR: the bell rang.
            Err(_) => None,
        }
    }

    /// Nobody is traced (any more).
    fn have_none(&mut self) {
        if self.stopped || self.has_ended_early() {
            return;
        }
        // Nobody is held up by it.
        self.calls.outbox.drain();
        match self.bell.await_command() {
            Some(command) => self.obey(command),
            None => self.stopped = true,
        }
    }

    /// Whether the child has ended before it executed its program, and nobody else has seen it.
    fn has_ended_early(&mut self) -> bool {
        const PATIENCE: u32 = 500;
        let Some(child) = &mut self.child else {
            return false;
        };
        if child.executed {
            return false;
        }
        let tid = Tid(child.pid.0.cast_signed());
        for _ in 0..PATIENCE {
            if sys::look(Whose::One(tid), Wait::ALL.now()).is_err() {
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        // It was killed: whoever started it took the closed pipe for success.
        child.executed = true;
        true
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Deliver(to) => self.calls.outbox.deliver_to(to),
            Command::GiveUp(stream) => self.calls.streams.give_up(stream),
            Command::Forget(stream) => self.calls.streams.forget(stream),
            Command::Watch { pid, child, reply } => {
                let result = self
                    .watch(pid, child)
                    .map_err(|e| TraceError::seize(pid, e));
                reply.send(result).ok();
            }
            // The loop does, now that it goes round.
            Command::Wake => {}
            Command::Stop => self.stopped = true,
        }
    }

    fn watch(&mut self, pid: Pid, child: Option<UnboundedSender<ChildChange>>) -> nix::Result<()> {
        if self.tasks.is_process(pid) || error::is_ours(pid) {
            return Ok(());
        }
        let threads = seize(&self.ptrace, pid)?;
        for &tid in &threads {
            self.tasks.add(tid, pid);
        }
        match child {
            // It waits, and reports when it executes its program.
            Some(changes) => {
                self.child = Some(Child {
                    pid,
                    changes,
                    executed: false,
                });
            }
            None => {
                for tid in threads {
                    // It fails where the thread has ended.
                    self.ptrace.interrupt(tid).ok();
                }
                self.calls.join(pid);
            }
        }
        Ok(())
    }

    fn give_turns(&mut self) {
        for tid in self.tasks.tids() {
            if let Ok(Some(reported)) = self.ptrace.next(Whose::One(tid), self.awaited().now()) {
                self.handle(reported);
            }
        }
    }

    fn handle(&mut self, reported: Reported) {
        match reported {
            Reported::Ended(tid, fate) => self.ended(tid, fate),
            Reported::Syscall(stop) => self.at_syscall(&stop),
            Reported::Signal(stop) => self.at_signal(&stop),
            Reported::Event(stop) => self.at_event(&stop),
            Reported::Group(stop) => {
                self.meet(stop.tid());
                self.tell_child(stop.tid(), ChildChange::Stopped);
            }
            Reported::Trap(stop) => self.meet(stop.tid()),
        }
    }

    fn at_syscall(&mut self, stop: &Stop<AtSyscall>) {
        // Without an answer it was killed in its stop.
        let Ok(info) = stop.info() else { return };
        let tid = stop.tid();
        self.meet(tid);
        let Some(thread) = self.tasks.thread(tid) else {
            return;
        };
        let caller = Caller {
            pid: thread.pid,
            tid,
        };
        let pending = thread.pending.take();
        match info {
            SyscallInfo::Entry { abi, number, args } => {
                if let Some(op) = Op::of(abi, number) {
                    thread.pending = self.calls.enter(caller, op, args);
                    self.note_kill(caller, op, &args);
                }
            }
            SyscallInfo::Exit(returned) => {
                if let Some(pending) = pending {
                    self.calls.leave(caller, &pending, returned);
                }
            }
            SyscallInfo::None => {}
        }
    }

    fn note_kill(&mut self, caller: Caller, op: Op, args: &Args) {
        for victim in signals::victims(caller, op, args, self.tasks.pids()) {
            if self.tasks.is_process(victim) {
                self.kills.insert(victim, caller.pid);
            }
        }
    }

    fn at_signal(&mut self, stop: &Stop<AtSignal>) {
        self.meet(stop.tid());
        let Some(kind) = signals::interrupt(stop.signal()) else {
            return;
        };
        let Some(pid) = self.tasks.thread(stop.tid()).map(|thread| thread.pid) else {
            return;
        };
        if !signals::is_ignored(stop.tid(), stop.signal()) {
            let sender = stop.info().ok().as_ref().and_then(signals::sender);
            self.calls
                .emit(CaptureEvent::Interrupt { pid, kind, sender });
        }
    }

    fn at_event(&mut self, stop: &Stop<AtEvent>) {
        match stop.event() {
            Event::Fork => {
                self.meet(stop.tid());
                if let Some(child) = stop.about() {
                    self.meet(child);
                }
            }
            Event::Exec => self.executed(stop.tid()),
            Event::Other => self.meet(stop.tid()),
        }
    }

    /// A thread that reports or is reported for the first time gets its place; so does its process.
    fn meet(&mut self, tid: Tid) {
        if self.tasks.knows(tid) {
            return;
        }
        // It may have been killed in between.
        let Some((pid, ppid)) = look_up(tid) else {
            return;
        };
        if self.tasks.add(tid, pid) {
            let start = identity::start(pid);
            let change = ProcessChange::Seen {
                ppid,
                exe: None,
                argv: Vec::new(),
                start,
            };
            self.calls
                .emit(CaptureEvent::Process(ProcessEvent { pid, change }));
        }
    }

    /// A process executed a program. Whichever of its threads did has the process's own number
    /// from then on, and the others have ended.
    fn executed(&mut self, tid: Tid) {
        let pid = Pid(tid.0.unsigned_abs());
        for thread in self.tasks.remove_process(pid) {
            // The caller's own call is the exec: nothing of it is pending.
            if let Some(pending) = thread.pending {
                self.calls.lose(&pending);
            }
        }
        self.tasks.add(tid, pid);
        let (exe, argv) = (identity::exe(pid), identity::argv(pid));
        let change = ProcessChange::Exec { exe, argv };
        self.calls
            .emit(CaptureEvent::Process(ProcessEvent { pid, change }));
        if let Some(child) = self
            .child
            .as_mut()
            .filter(|child| child.pid == pid && !child.executed)
        {
            child.executed = true;
        }
    }

    fn ended(&mut self, tid: Tid, fate: Fate) {
        let Some(thread) = self.tasks.remove(tid) else {
            return;
        };
        if let Some(pending) = &thread.pending {
            self.calls.lose(pending);
        }
        let pid = thread.pid;
        // The first thread is reported when all others are gone.
        if pid.0 != tid.0.unsigned_abs() {
            return;
        }
        self.tasks.remove_process(pid);
        self.calls.forget_process(pid);
        let sender = self.kills.remove(&pid);
        if fate == Fate::Signal(libc::SIGKILL) {
            let kind = InterruptKind::Sigkill;
            self.calls
                .emit(CaptureEvent::Interrupt { pid, kind, sender });
        }
        let change = ProcessChange::Exit { fate: Some(fate) };
        self.calls
            .emit(CaptureEvent::Process(ProcessEvent { pid, change }));
        self.calls.outbox.flush();
        self.tell_child(tid, ChildChange::Ended(fate));
    }

    fn tell_child(&self, tid: Tid, change: ChildChange) {
        if let Some(child) = &self.child
            && child.pid.0 == tid.0.unsigned_abs()
        {
            child.changes.send(change).ok();
        }
    }
}
