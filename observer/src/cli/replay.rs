//! `observer replay`: the verdicts of a log, computed anew.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{Exit, Failure, Job, LogError, LogFile, OutputArgs, Outputs, SettingsArgs, judge, say};
use crate::capture::Timestamp;
use crate::pipeline::{Output, Pipeline};
use crate::record::{Backend, Header, SCHEMA};
use crate::session::{self, Event, Observed};
use crate::tui::LogPlace;

/// Judge an audit log again
///
/// Reads what was observed and computes the verdicts anew, by the settings in the log unless
/// others are given here. With --log a new log is written, with the new verdicts in it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  observer replay audit.jsonl
  observer replay --quiet --fail-on warning audit.jsonl
  observer replay --deadline slow=30s --log - audit.jsonl | jq 'select(.type == \"finding\")'")]
pub(super) struct Replay {
    /// The audit log (`-`: stdin)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Replay {
    pub(super) fn execute(self) -> Result<Exit, Failure> {
        let (mut log, header) = LogFile::open(&self.file)?;
        self.refuse_own_output()?;
        let mut outputs = self.output.open(Job::Replay)?;
        outputs.read_from(&self.file);
        let settings = self
            .settings
            .apply(header.settings.clone().unwrap_or_default());
        let header = Header {
            schema: SCHEMA.into(),
            observer: env!("CARGO_PKG_VERSION").into(),
            backend: Backend::Replay,
            settings: Some(settings.clone()),
            part: None,
            ..header
        };
        outputs.begin(header, None);
        let mut pipeline =
            Pipeline::new(session::Settings::default(), settings).redacting(outputs.redactor());
        let (end, read) = replay(&mut log, &mut pipeline, &mut outputs);
        let told = match read {
            // A summary of a part would pass for one of the log.
            Ok(Read::Left) => {
                let left = "left before its end, so there is no summary";
                outputs.is_left().then(|| left.to_owned())
            }
            Ok(Read::Whole) | Err(_) => {
                let cut = log.cut();
                if cut.is_some() || read.is_err() {
                    pipeline.note_cut();
                }
                pipeline.finish(end);
                drain(&mut pipeline, &mut outputs, None);
                if let Some(cut) = cut {
                    outputs.note_cut(cut);
                }
                let shortfall = log.shortfall().filter(|_| read.is_ok());
                if shortfall.is_some() {
                    outputs.note_incomplete();
                }
                shortfall
            }
        };
        let read = read.and_then(|_| log.take_altered().map_or(Ok(()), Err));
        outputs.flush();
        outputs.close(read.as_ref().err().map(ToString::to_string), false);
        if let Some(told) = told {
            say(format_args!(
                "{}: {told}",
                judge::name(&self.file).display()
            ));
        }
        read?;
        Ok(outputs.exit())
    }

    /// Opening the new log would empty the one that is read.
    fn refuse_own_output(&self) -> Result<(), Failure> {
        let identity = |path: &Path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
        let Some(output) = self.output.log_file().and_then(identity) else {
            return Ok(());
        };
        if identity(&self.file) == Some(output) {
            let path = self.file.display();
            return Err(Failure::new(
                Exit::Failed,
                format_args!("--log {path} is the log that is read"),
            )
            .with_remedy("give another file"));
        }
        Ok(())
    }
}

/// How far a log was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Read {
    /// To its end.
    Whole,
    /// Until nobody wanted to know the rest.
    Left,
}

/// Feeds all records; returns the time of the last.
///
/// A derived record is not read, but its time counts: the summary shows how long the live run
/// went on after the last event, and that silence weighs as it did then.
fn replay(
    log: &mut LogFile,
    pipeline: &mut Pipeline,
    outputs: &mut Outputs,
) -> (Timestamp, Result<Read, LogError>) {
    let mut end = Timestamp::ZERO;
    loop {
        if log.is_drained() {
            outputs.flush();
        }
        let record = match log.next_record() {
            Ok(Some(record)) => record,
            Ok(None) => return (end, Ok(Read::Whole)),
            Err(error) => return (end, Err(error)),
        };
        end = end.max(record.t());
        let mut place = None;
        if let Some(observed) = record.into_observed() {
            place = text(&observed).zip(log.place());
            pipeline.handle_observed(observed);
        }
        drain(pipeline, outputs, place);
        if outputs.is_unwanted() {
            return (end, Ok(Read::Left));
        }
    }
}

/// `place` is where the log holds a text. What stands there is never shown in the place of a text
/// that was redacted.
fn drain(pipeline: &mut Pipeline, outputs: &mut Outputs, place: Option<(*const u8, LogPlace)>) {
    while let Some(output) = pipeline.poll_output() {
        let shown = match &output {
            Output::Observed(observed) => text(observed),
            _ => None,
        };
        let same = place.filter(|(read, _)| shown == Some(*read));
        outputs.handle_output(&output, same.map(|(_, place)| place));
    }
}

/// Where the text of a message lies in memory; a redacted one lies elsewhere.
fn text(observed: &Observed) -> Option<*const u8> {
    match &observed.event {
        Event::Message { frame, .. } => Some(frame.text().as_ptr()),
        _ => None,
    }
}
