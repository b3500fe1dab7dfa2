//! What the passer does with the copies: the pipeline, and the sinks that were asked for.

use std::time::{Duration, Instant};

use super::send::Sender;
use super::{Relay, place};
use crate::capture::Timestamp;
use crate::capture::relay::{Feed, Received};
use crate::cli::say;
use crate::pipeline::{Output, Pipeline};
use crate::record::{Backend, Header, Payload, SCHEMA, Scope};
use crate::session;
use crate::sink::{Color, Detail, Jsonl, Lines, Outlet, WriteError};
use crate::verdict;

/// How far the pipeline's timers stay behind the clock: a copy is under way for that long at
/// most, save where a side does not read, and no timer may take it for silence.
const LAG: Duration = Duration::from_millis(100);

/// What was written waits at most so long.
const FLUSH: Duration = Duration::from_millis(200);

/// Looks at everything that is passed on, to the end; or until nobody wants to know.
pub(super) fn observe(feed: &Feed, relay: &Relay) {
    let settings = relay.settings.apply(verdict::Settings::default());
    let command = relay.server.iter().map(|word| word.to_string_lossy());
    let scope = Scope::Run {
        command: command.map(String::from).collect(),
    };
    let redactor = match relay.payload.redactor() {
        Ok(redactor) => redactor,
        // What must be hidden is not written where it cannot be.
        Err(failure) => return say(format_args!("{failure}; the session goes on without a log")),
    };
    let mut header = header(scope, settings.clone());
    if let Some(redactor) = &redactor {
        header.payload = redactor.payload();
        header.scope = header.scope.map(|scope| redactor.scope(scope));
    }
    let mut sinks = Sinks::open(relay, &header);
    let mut pipeline = Pipeline::new(session::Settings::default(), settings).redacting(redactor);
    let mut unflushed = false;
    while sinks.any() {
        let now = feed.now();
        let flush = unflushed.then(|| now + FLUSH);
        let due = pipeline.poll_timeout().map(|due| due + LAG);
        match feed.receive(due.into_iter().chain(flush).min()) {
            Received::Events(batch) => {
                for captured in batch {
                    pipeline.handle_event(captured);
                    sinks.drain(&mut pipeline);
                }
                unflushed = true;
                sinks.flush_due(Instant::now());
            }
            Received::Deadline => {
                sinks.flush();
                unflushed = false;
            }
            Received::End => {
                pipeline.finish(feed.now());
                sinks.drain(&mut pipeline);
                return sinks.end();
            }
        }
        let past = feed.now() - LAG;
        if pipeline.poll_timeout().is_some_and(|due| due <= past) {
            pipeline.handle_timeout(past);
            sinks.drain(&mut pipeline);
        }
    }
}

/// A log's first line for what begins now.
pub(super) fn header(scope: Scope, settings: verdict::Settings) -> Header {
    let kernel = nix::sys::utsname::uname().ok();
    Header {
        t: Timestamp::ZERO,
        schema: SCHEMA.into(),
        observer: env!("CARGO_PKG_VERSION").into(),
        started: format!("{:.9}", jiff::Timestamp::now()),
        backend: Backend::Relay,
        hooks: Vec::new(),
        platform: Some(format!(
            "{}-{}",
            std::env::consts::OS,
            std::env::consts::ARCH
        )),
        kernel: kernel.map(|name| name.release().to_string_lossy().into_owned()),
        payload: Payload::Full,
        scope: Some(scope),
        settings: Some(settings),
        part: None,
    }
}

/// The open sinks. One that fails says so once, and is none any more.
struct Sinks {
    log: Option<Jsonl>,
    lines: Option<Lines>,
    sender: Option<Sender>,
}

impl Sinks {
    fn open(relay: &Relay, header: &Header) -> Self {
        let mut sinks = Self {
            log: open_log(relay, header),
            lines: None,
            sender: None,
        };
        if relay.verbose > 0 {
            let detail = if relay.verbose > 1 {
                Detail::Verbose
            } else {
                Detail::Normal
            };
            sinks.lines = Some(Lines::new(Outlet::stderr(), detail, Color::Plain));
        }
        if let Some(socket) = &relay.to {
            let socket = socket.clone().unwrap_or_else(place::default_socket);
            sinks.sender = Some(Sender::start(socket, header));
        }
        sinks.with_log(|log| log.begin(header.clone()));
        sinks
    }

    /// Whether anybody wants to know anything.
    const fn any(&self) -> bool {
        self.log.is_some() || self.lines.is_some() || self.sender.is_some()
    }

    fn drain(&mut self, pipeline: &mut Pipeline) {
        while let Some(output) = pipeline.poll_output() {
            self.with_log(|log| log.handle_output(&output));
            self.with_lines(|lines| lines.handle_output(&output));
            if let (Some(sender), Output::Observed(observed)) = (&mut self.sender, &output) {
                sender.handle_observed(observed);
            }
        }
    }

    fn flush(&mut self) {
        self.with_log(Jsonl::flush);
        self.with_lines(Lines::flush);
    }

    fn flush_due(&mut self, now: Instant) {
        self.with_log(|log| log.flush_due(now));
        self.with_lines(|lines| lines.flush_due(now));
    }

    fn end(mut self) {
        self.flush();
        if let Some(sender) = self.sender {
            sender.end();
        }
    }

    fn with_log(&mut self, act: impl FnOnce(&mut Jsonl) -> Result<(), WriteError>) {
        if let Some(Err(error)) = self.log.as_mut().map(act) {
            self.log = None;
            say(format_args!("{error}; the session goes on without the log"));
        }
    }

    fn with_lines(&mut self, act: impl FnOnce(&mut Lines) -> Result<(), WriteError>) {
        // There is no place left to say that stderr cannot be written to.
        if let Some(Err(_)) = self.lines.as_mut().map(act) {
            self.lines = None;
        }
    }
}

/// The log that was asked for, or else one of its own; none where something else was asked for.
fn open_log(relay: &Relay, header: &Header) -> Option<Jsonl> {
    let given = relay.log.as_deref();
    if given.is_none() && (relay.to.is_some() || relay.verbose > 0) {
        return None;
    }
    let opened = match given {
        Some(path) if path.is_dir() => place::open_log(&path.join(file_name(relay, header))),
        Some(path) => place::open_log(path),
        None => place::log_folder()
            .and_then(|folder| place::open_log(&folder.join(file_name(relay, header)))),
    };
    let outlet = match opened {
        Ok((file, path)) => Outlet::onto(&path, file).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    match outlet {
        Ok(outlet) => Some(Jsonl::live(outlet).rotating(relay.rotate)),
        Err(error) => {
            say(format_args!("{error}; the session goes on without a log"));
            None
        }
    }
}

/// `NAME-TIME-PID.jsonl`: by server, and then by time.
fn file_name(relay: &Relay, header: &Header) -> String {
    let time: String = header
        .started
        .chars()
        .filter(|char| !matches!(char, ':' | '-'))
        .take(15)
        .collect();
    let name: String = relay
        .name()
        .chars()
        .map(|char| if char == '/' { '_' } else { char })
        .collect();
    format!("{name}-{time}Z-{}.jsonl", std::process::id())
}
