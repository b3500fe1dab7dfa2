//! How the pipeline's outputs reach the view, which runs on a thread of its own.
//!
//! The view must not hold up an observation: where it cannot keep up, messages are left out of it
//! and counted. They are in the log all the same. Conclusions are never left out.

use std::io::{PipeReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use nix::sys::signal::{SigSet, SigmaskHow, Signal};

use super::message::{Arrival, Message};
use super::model::{LogPlace, Model, Source};
use super::terminal::{self, Options, TerminalError};
use crate::capture::Timestamp;
use crate::pipeline::Output;
use crate::session::Event;

/// So many batches may wait for the view.
const BATCHES: usize = 16;

/// A batch this long is sent at once.
const BATCH: usize = 512;

/// So many outputs may wait for a view that is busy before messages are left out.
const PATIENCE: usize = 8 * BATCH;

/// Who waits for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// The view sees everything; the log that is read can wait.
    Whole,
    /// What is observed does not wait.
    Skipping,
}

/// The time of an observation that goes on.
pub type LiveClock = Box<dyn Fn() -> Timestamp + Send>;

/// The pipeline's end of the view.
pub struct Feed {
    sender: SyncSender<Message>,
    waiting: Vec<Arrival>,
    skipped: u64,
    pace: Pace,
    closed: bool,
    leave: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), TerminalError>>>,
}

impl Feed {
    /// Takes the terminal, and shows what comes from `source` until the user leaves.
    ///
    /// `clock` tells the time of an observation that goes on; a log has none.
    ///
    /// # Errors
    /// Where the terminal cannot be had.
    pub fn start(
        source: Source,
        options: Options,
        pace: Pace,
        clock: Option<LiveClock>,
    ) -> Result<Self, TerminalError> {
        let (sender, receiver) = sync_channel(BATCHES);
        let leave = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&leave);
        let model = Model::new(source, options.memory);
        terminal::check()?;
        let show = move || terminal::show(model, &options, &receiver, clock, &told);
        let thread = spawn(show).map_err(TerminalError::thread)?;
        let waiting = Vec::new();
        Ok(Self {
            sender,
            waiting,
            skipped: 0,
            pace,
            closed: false,
            leave,
            thread: Some(thread),
        })
    }

    /// Takes what came out of the pipeline, and where a log holds it.
    pub fn handle_output(&mut self, output: &Output, place: Option<LogPlace>) {
        if self.closed || matches!(output, Output::GiveUp(_) | Output::Forget(_)) {
            return;
        }
        self.waiting.push(Arrival {
            output: output.clone(),
            place,
        });
        if self.waiting.len() >= BATCH {
            self.flush();
        }
    }

    /// Sends what waits.
    pub fn flush(&mut self) {
        if self.closed || self.waiting.is_empty() {
            return;
        }
        let message = Message::Arrived(std::mem::take(&mut self.waiting));
        match self.pace {
            Pace::Whole => self.closed = self.sender.send(message).is_err(),
            Pace::Skipping => match self.sender.try_send(message) {
                Ok(()) => self.report_skipped(),
                Err(TrySendError::Full(Message::Arrived(waiting))) => {
                    self.waiting = waiting;
                    self.skip();
                }
                Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => self.closed = true,
            },
        }
    }

    /// Says where the log that is read breaks off.
    pub fn note_cut(&mut self, cut: String) {
        self.closed |= self.sender.send(Message::Cut(cut)).is_err();
    }

    /// Shows what the observed command prints. Where the view cannot keep up, the command waits, as
    /// for a slow terminal; once the user has left, what it prints is thrown away.
    ///
    /// # Errors
    /// Where no thread can be made.
    pub fn print_from(&self, mut reader: PipeReader) -> Result<(), TerminalError> {
        let sender = self.sender.clone();
        let print = move || {
            let mut block = [0; 4096];
            while let Ok(bytes @ 1..) = reader.read(&mut block) {
                // Nobody may look any more, and the command must not be stopped by that.
                let _ = sender.send(Message::Printed(block[..bytes].to_vec()));
            }
        };
        let thread = thread::Builder::new().name("printed".into()).spawn(print);
        thread.map(drop).map_err(TerminalError::thread)
    }

    /// Whether the user has left.
    pub fn is_closed(&mut self) -> bool {
        self.closed |= self.thread.as_ref().is_none_or(JoinHandle::is_finished);
        self.closed
    }

    /// Says that there will be no more, and why; waits until the user has left. With `leave` the
    /// view ends at once.
    ///
    /// # Errors
    /// What went wrong with the terminal.
    pub fn close(&mut self, why: Option<String>, leave: bool) -> Result<(), TerminalError> {
        self.leave.store(leave, Ordering::Relaxed);
        self.pace = Pace::Whole;
        self.flush();
        let _ = self.sender.send(Message::Ended(why));
        self.closed = true;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            // The panic's own message is on stderr by now.
            Some(Err(_)) => Err(TerminalError::panicked()),
            None => Ok(()),
        }
    }

    /// Leaves messages out where the view is too far behind.
    fn skip(&mut self) {
        if self.waiting.len() < PATIENCE {
            return;
        }
        let before = self.waiting.len();
        self.waiting
            .retain(|arrival| !can_be_skipped(&arrival.output));
        self.skipped += (before - self.waiting.len()) as u64;
    }

    fn report_skipped(&mut self) {
        if self.skipped > 0 && self.sender.try_send(Message::Skipped(self.skipped)).is_ok() {
            self.skipped = 0;
        }
    }
}

impl Drop for Feed {
    /// An observation that fails must not leave the terminal as it is.
    fn drop(&mut self) {
        if self.thread.is_some() {
            // Nobody is left to be told.
            let _ = self.close(None, true);
        }
    }
}

fn can_be_skipped(output: &Output) -> bool {
    let Output::Observed(observed) = output else {
        return false;
    };
    matches!(
        observed.event,
        Event::Message { .. } | Event::Delivered { .. } | Event::NetSend { .. }
    )
}

/// Starts the view's thread with the signals held back that are the main thread's to take.
fn spawn(
    show: impl FnOnce() -> Result<(), TerminalError> + Send + 'static,
) -> std::io::Result<JoinHandle<Result<(), TerminalError>>> {
    let ours: SigSet = [
        Signal::SIGINT,
        Signal::SIGTERM,
        Signal::SIGHUP,
        Signal::SIGQUIT,
        Signal::SIGCHLD,
    ]
    .into_iter()
    .collect();
    let before = ours.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let thread = thread::Builder::new().name("view".into()).spawn(show);
    before.thread_set_mask()?;
    thread
}

/// What the view's thread gets its messages from.
pub(super) type Messages = Receiver<Message>;
