//! `observer watch --relay`: judges what all relays send, and shows it as one.

use std::io;
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::collect::{CollectError, Collector};
use super::observe::header;
use super::place::PlaceError;
use crate::capture::{Clock, Timestamp};
use crate::cli::{Exit, Failure, Outputs, SettingsArgs, say};
use crate::pipeline::Pipeline;
use crate::record::Scope;
use crate::session::{self, Observed};
use crate::verdict;

/// How far the pipeline's timers stay behind the clock: records are under way for about as long.
const LAG: Duration = Duration::from_millis(500);

/// What was written waits at most so long.
const FLUSH: Duration = Duration::from_millis(200);

/// Judges what the relays at `socket` send, and gives it to `outputs`, until a signal ends it or
/// nobody reads what is shown.
///
/// # Errors
/// Where the socket cannot be made.
pub(in crate::cli) fn watch(
    socket: Option<PathBuf>,
    outputs: Outputs,
    settings: &SettingsArgs,
) -> Result<Exit, Failure> {
    let failed =
        |error: io::Error| Failure::new(Exit::Failed, format_args!("cannot start: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    runtime.block_on(async {
        let clock = Clock::start();
        let collector = Collector::bind(socket, clock).map_err(unbound)?;
        let ending = Ending::new().map_err(failed)?;
        say(format_args!(
            "listening at {} for relays started with --to; Ctrl-C ends",
            collector.path().display()
        ));
        let settings = settings.apply(verdict::Settings::default());
        let together = Together::begin(outputs, settings, clock);
        Ok(together.run(collector, ending).await)
    })
}

fn unbound(error: CollectError) -> Failure {
    let remedy = match &error {
        CollectError::Taken { .. } => "end that one, or give each a --relay SOCKET of its own",
        CollectError::Place(PlaceError::Open { .. }) => {
            "chmod 700 it, or give --relay a SOCKET elsewhere"
        }
        _ => "give --relay a SOCKET elsewhere",
    };
    Failure::new(Exit::Failed, error).with_remedy(remedy)
}

/// The pipeline that all records go through, and its sinks.
struct Together {
    pipeline: Pipeline,
    outputs: Outputs,
    clock: Clock,
}

impl Together {
    fn begin(mut outputs: Outputs, settings: verdict::Settings, clock: Clock) -> Self {
        outputs.begin(header(Scope::Watch, settings.clone()), Some(clock));
        outputs.flush();
        Self {
            pipeline: Pipeline::new(session::Settings::default(), settings)
                .redacting(outputs.redactor()),
            outputs,
            clock,
        }
    }

    async fn run(mut self, mut collector: Collector, mut ending: Ending) -> Exit {
        let mut told = false;
        while !told && !self.outputs.is_unread() {
            let wait = self.wait();
            tokio::select! {
                batch = collector.next() => self.handle_observed(batch.unwrap_or_default()),
                () = tokio::time::sleep(wait) => self.let_time_pass(),
                () = ending.wait() => told = true,
            }
        }
        drop(collector);
        self.pipeline.finish(self.clock.now());
        self.drain();
        self.outputs.flush();
        self.outputs.close(None, told);
        self.outputs.exit()
    }

    fn handle_observed(&mut self, batch: Vec<Observed>) {
        for observed in batch {
            self.pipeline.handle_observed(observed);
        }
        self.drain();
        self.outputs.flush_due(Instant::now());
    }

    /// How long until something is due.
    fn wait(&self) -> Duration {
        let past = self.past();
        let due = self.pipeline.poll_timeout().map(|due| due.since(past));
        due.map_or(FLUSH, |due| due.min(FLUSH))
    }

    fn past(&self) -> Timestamp {
        self.clock.now() - LAG
    }

    fn let_time_pass(&mut self) {
        let past = self.past();
        if self.pipeline.poll_timeout().is_some_and(|due| due <= past) {
            self.pipeline.handle_timeout(past);
            self.drain();
        }
        self.outputs.flush();
    }

    fn drain(&mut self) {
        while let Some(output) = self.pipeline.poll_output() {
            self.outputs.handle_output(&output, None);
        }
    }
}

/// The signals that end an observation; not one that we were started to ignore (`nohup`).
struct Ending([Option<Signal>; 3]);

impl Ending {
    fn new() -> io::Result<Self> {
        let listen = |kind: SignalKind| -> io::Result<_> {
            let ignored = is_ignored(kind.as_raw_value());
            (!ignored).then(|| signal(kind)).transpose()
        };
        Ok(Self([
            listen(SignalKind::interrupt())?,
            listen(SignalKind::terminate())?,
            listen(SignalKind::hangup())?,
        ]))
    }

    async fn wait(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            Some(_) = next(interrupt) => {}
            Some(_) = next(terminate) => {}
            Some(_) = next(hangup) => {}
            else => std::future::pending().await,
        }
    }
}

async fn next(signal: &mut Option<Signal>) -> Option<()> {
    signal.as_mut()?.recv().await
}

fn is_ignored(number: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: nothing is changed, and the pointer is valid for the call, which writes there.
    if unsafe { libc::sigaction(number, std::ptr::null(), action.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: the call succeeded, so it is initialised.
    unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}
