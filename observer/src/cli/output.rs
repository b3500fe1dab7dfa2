//! Where the results go: options that all observing subcommands share, and the open sinks.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{ArgAction, ValueEnum};

use super::gate::{Gate, GateArgs};
use super::payload::PayloadArgs;
use super::size::parse_size;
use super::terminal::Courteous;
use super::view::{View, ViewArgs};
use super::{Exit, Failure, say};
use crate::capture::Clock;
#[cfg(target_os = "linux")]
use crate::capture::spawn::Streams;
use crate::pipeline::Output;
use crate::record::Header;
use crate::redact::Redactor;
use crate::sink::{Color, Detail, Jsonl, Lines, Outlet, WriteError};
use crate::tui::LogPlace;

/// A log in smaller parts would be headers mostly.
const SMALLEST_PART: u64 = 4 << 10;

/// What is printed and written, and what the exit code tells.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Write the audit log to FILE (`-`: stdout)
    ///
    /// A new file is readable by its owner only; one that exists is emptied, as strace -o does.
    /// With `-` the human lines go to stderr. A file named .zst is compressed.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Go on in another file whenever one has reached SIZE: after audit.jsonl in audit.2.jsonl
    ///
    /// `observer replay audit.jsonl` reads all of them.
    #[arg(long, value_name = "SIZE", value_parser = parse_full, requires = "log")]
    rotate: Option<u64>,
    /// Show findings and the summary only
    #[arg(long, short, conflicts_with = "verbose")]
    quiet: bool,
    /// Show every message, and the evidence of findings; twice: the capture's diagnostics too
    #[arg(long, short, action = ArgAction::Count)]
    verbose: u8,
    /// When to colour the human lines
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    color: ColorChoice,
    #[command(flatten)]
    gate: GateArgs,
    #[command(flatten)]
    payload: PayloadArgs,
    #[command(flatten)]
    view: ViewArgs,
}

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What the outputs are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// `run`: stdout belongs to the command, so that the human lines go to stderr.
    Run,
    /// `attach`, `watch`: stdout is ours.
    Live,
    /// `replay`: as for `Live`, and a reader that has seen enough ends it.
    Replay,
}

impl OutputArgs {
    /// How often `-v` was given.
    pub const fn verbosity(&self) -> u8 {
        self.verbose
    }

    /// Whether only findings and the summary are wanted.
    pub const fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// The audit log's path, where one is wanted in a file.
    pub fn log_file(&self) -> Option<&Path> {
        self.log.as_deref().filter(|path| *path != Path::new("-"))
    }

    /// Prints lines on a terminal too, unless the live view was asked for.
    pub const fn prefer_lines(&mut self) {
        self.view.prefer_lines();
    }

    /// Opens what was asked for, before anything is observed.
    ///
    /// # Errors
    /// Where the audit log cannot be opened.
    pub fn open(&self, job: Job) -> Result<Outputs, Failure> {
        let of_job = |failure: Failure| match job {
            Job::Run => failure.with_exit(Exit::ObserverFailed),
            Job::Live | Job::Replay => failure,
        };
        let gate = self.gate.open().map_err(of_job)?;
        let redactor = self.payload.redactor().map_err(of_job)?;
        let log_on_stdout = self.log.as_deref() == Some(Path::new("-"));
        let plain = self.detail() != Detail::Normal || log_on_stdout;
        let view = self.view.open(job, plain, self.log_file())?;
        let log = match self.log_file() {
            Some(path) => Some(Outlet::create(path).map_err(|error| unwritable(&error, job))?),
            None => log_on_stdout.then(Outlet::stdout),
        };
        let on_stderr = log_on_stdout || job == Job::Run;
        let lines = match job {
            // The command may draw on the terminal that is our stderr.
            Job::Run => Outlet::new("stderr".into(), Box::new(Courteous::new(io::stderr()))),
            _ if on_stderr => Outlet::stderr(),
            Job::Live | Job::Replay => Outlet::stdout(),
        };
        Ok(Outputs {
            log: log.map(|outlet| match job {
                Job::Run | Job::Live => Jsonl::live(outlet).rotating(self.rotate),
                Job::Replay => Jsonl::made(outlet).rotating(self.rotate),
            }),
            log_in_file: self.log_file().is_some(),
            lines: Lines::new(lines, self.detail(), self.color.choose(on_stderr)),
            view,
            gate,
            redactor,
            job,
            write_failed: false,
            unread: false,
        })
    }

    const fn detail(&self) -> Detail {
        match (self.quiet, self.verbose) {
            (true, _) => Detail::Quiet,
            (false, 0) => Detail::Normal,
            (false, _) => Detail::Verbose,
        }
    }
}

pub(super) fn parse_full(text: &str) -> Result<u64, String> {
    let size = u64::try_from(parse_size(text)?).ok();
    size.filter(|size| *size >= SMALLEST_PART)
        .ok_or_else(|| "give at least 4KiB, such as 100MB".into())
}

impl ColorChoice {
    pub(super) fn choose(self, on_stderr: bool) -> Color {
        let terminal = match on_stderr {
            true => io::stderr().is_terminal(),
            false => io::stdout().is_terminal(),
        };
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        match self {
            Self::Always => Color::Ansi,
            Self::Auto if terminal && !dumb && !set("NO_COLOR") => Color::Ansi,
            Self::Auto | Self::Never => Color::Plain,
        }
    }
}

/// The open sinks, and what they have seen that the exit code tells.
///
/// A sink that fails says so once on stderr; observing goes on without it.
pub struct Outputs {
    log: Option<Jsonl>,
    log_in_file: bool,
    lines: Lines,
    view: View,
    gate: Gate,
    redactor: Option<Redactor>,
    job: Job,
    write_failed: bool,
    unread: bool,
}

impl Outputs {
    /// Begins the audit log, where one is wanted, and the live view. `clock` tells the time of an
    /// observation that goes on.
    pub fn begin(&mut self, mut header: Header, clock: Option<Clock>) {
        if let Some(redactor) = &mut self.redactor {
            redactor.note_source(header.payload);
            header.payload = redactor.payload();
            header.scope = header.scope.map(|scope| redactor.scope(scope));
        }
        if let Err(error) = self.view.begin(&header, clock) {
            say(format_args!("{error}; lines are printed instead"));
        }
        let written = self.log.as_mut().map_or(Ok(()), |log| log.begin(header));
        self.note_log(written);
    }

    /// What hides what the outputs must not show, once they have begun.
    pub fn redactor(&self) -> Option<Redactor> {
        self.redactor.clone()
    }

    /// Names the log that is read.
    pub fn read_from(&mut self, path: &Path) {
        self.view.read_from(path);
    }

    /// Takes what came out of the pipeline; `place` is where the log that is read holds it.
    pub fn handle_output(&mut self, output: &Output, place: Option<LogPlace>) {
        let written = self
            .log
            .as_mut()
            .map_or(Ok(()), |log| log.handle_output(output));
        self.note_log(written);
        let in_view = self.view.is_shown();
        if in_view {
            let written = self.log.as_ref().map(Jsonl::last_line);
            let here = written.filter(|_| self.job != Job::Replay);
            let here = here.map(|(part, offset, bytes)| LogPlace {
                part,
                offset,
                bytes,
            });
            self.view.handle_output(output, place.or(here));
            self.lines.pass_over(output);
        } else {
            let written = self.lines.handle_output(output);
            self.note_lines(written);
        }
        if let Some(ruling) = self.gate.handle_output(output)
            && !in_view
        {
            let written = self.lines.handle_ruling(ruling);
            self.note_lines(written);
        }
    }

    /// Writes what has waited long enough; to be called between batches while events keep coming.
    pub fn flush_due(&mut self, now: Instant) {
        let written = self.log.as_mut().map_or(Ok(()), |log| log.flush_due(now));
        self.note_log(written);
        let written = self.lines.flush_due(now);
        self.note_lines(written);
        self.view.flush();
    }

    /// Writes what waits; to be called whenever there is nothing to do, and at the end.
    pub fn flush(&mut self) {
        let written = self.log.as_mut().map_or(Ok(()), Jsonl::flush);
        self.note_log(written);
        let written = self.lines.flush();
        self.note_lines(written);
        self.view.flush();
    }

    /// Says that there will be no more, and why. The live view stays until the user leaves it, or
    /// ends at once where `leave` says so; what it all amounts to is printed after that.
    pub fn close(&mut self, why: Option<String>, leave: bool) {
        let was_shown = self.view.is_shown();
        if let Err(error) = self.view.close(why, leave) {
            self.write_failed = true;
            say(error);
        }
        if was_shown {
            let written = self.conclude();
            self.note_lines(written);
        }
    }

    /// Prints what the lines end with, and could not while the live view had the terminal.
    fn conclude(&mut self) -> Result<(), WriteError> {
        self.lines.conclude()?;
        if let Some(ruling) = self.gate.told() {
            self.lines.handle_ruling(ruling)?;
        }
        self.lines.flush()
    }

    /// Says where the log that is read breaks off.
    pub fn note_cut(&mut self, cut: String) {
        self.view.note_cut(cut);
    }

    /// Says that something of the scope went by unseen that no record tells.
    pub const fn note_incomplete(&mut self) {
        self.gate.note_incomplete();
    }

    /// Whether the user has left the live view.
    pub fn is_left(&mut self) -> bool {
        self.view.is_left()
    }

    /// Where the standard streams of the command that is run must lead.
    ///
    /// # Errors
    /// Where no pipe can be made.
    #[cfg(target_os = "linux")]
    pub fn streams(&mut self) -> io::Result<Streams> {
        self.view.streams()
    }

    /// Whether whoever read our stdout has gone, or left the live view.
    pub fn is_unread(&mut self) -> bool {
        self.unread || self.view.is_left()
    }

    /// Whether nobody wants to know the rest, and neither an exit code nor a file depends on it.
    pub fn is_unwanted(&mut self) -> bool {
        self.is_unread() && !self.gate.decides() && !self.log_in_file
    }

    /// The exit code of `attach`, `watch`, `replay`.
    pub fn exit(&self) -> Exit {
        match self.gate.exit() {
            _ if self.write_failed => Exit::Failed,
            Some(exit) => exit,
            None => Exit::Clean,
        }
    }

    /// The exit code of `run`: the command's own, unless `--fail-on` or `--strict` say otherwise.
    pub fn exit_of(&self, command: Exit) -> Exit {
        self.gate.exit().unwrap_or(command)
    }

    fn note_log(&mut self, written: Result<(), WriteError>) {
        let Err(error) = written else { return };
        if self.job == Job::Replay && error.is_closed_pipe() {
            self.unread = true;
            return;
        }
        self.write_failed = true;
        match self.job {
            Job::Run | Job::Live => {
                self.gate.note_incomplete();
                say(format_args!("{error}; observing goes on without the log"));
            }
            Job::Replay => say(format_args!("{error}; the log is incomplete")),
        }
    }

    fn note_lines(&mut self, written: Result<(), WriteError>) {
        let Err(error) = written else { return };
        self.unread = true;
        if !error.is_closed_pipe() {
            self.write_failed = true;
            say(error);
        }
    }
}

fn unwritable(error: &WriteError, job: Job) -> Failure {
    let exit = if job == Job::Run {
        Exit::ObserverFailed
    } else {
        Exit::Failed
    };
    Failure::new(exit, error).with_remedy("give --log a path that you may write, or - for stdout")
}

#[cfg(test)]
mod tests;
