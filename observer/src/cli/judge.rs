//! A log judged anew from its beginning to its end, for the subcommands that only look at it.

use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use super::progress::Progress;
use super::{LogError, LogFile, SettingsArgs};
use crate::capture::Timestamp;
use crate::pipeline::{Output, Pipeline};
use crate::record::{Header, Record};
use crate::session;

/// So many bytes of a log, or one line, go from its reader to its judge at once.
const BATCH: u64 = 128 << 10;

/// So many such batches may wait for the judge.
const WAITING: usize = 4;

/// A log that has been read to where it can be read.
pub(super) struct Judged {
    /// Whether it breaks off.
    pub(super) cut: bool,
    /// What of it is missing, in a sentence.
    pub(super) shortfall: Option<String>,
    /// The files after the first that belong to it.
    pub(super) parts: Vec<PathBuf>,
    /// Why it cannot be read on (what came before is judged), or that it was altered.
    pub(super) damage: Option<LogError>,
}

/// Judges a log, by the settings in it unless others are given. All that comes out, the summary
/// last, goes to `take`.
///
/// # Errors
/// Where it cannot be opened or is no log.
pub(super) fn judge(
    path: &Path,
    settings: &SettingsArgs,
    mut take: impl FnMut(&Output),
) -> Result<Judged, LogError> {
    let (log, header) = LogFile::open(path)?;
    Ok(judge_open(log, header, settings, |_, output| take(output)))
}

/// As [`judge`], of a log that is open. `take` is told in which line of the first file what comes
/// out has its cause, too.
pub(super) fn judge_open(
    mut log: LogFile,
    header: Header,
    settings: &SettingsArgs,
    mut take: impl FnMut(Option<u64>, &Output),
) -> Judged {
    let settings = settings.apply(header.settings.unwrap_or_default());
    let mut pipeline = Pipeline::new(session::Settings::default(), settings);
    let mut drain = |pipeline: &mut Pipeline, line| {
        while let Some(output) = pipeline.poll_output() {
            take(line, &output);
        }
    };
    let mut progress = Progress::over(&log);
    let (mut end, mut last) = (Timestamp::ZERO, None);
    let read = in_batches(&mut log, |batch| {
        progress.note(batch.position);
        for (line, record) in batch.records {
            last = line;
            end = end.max(record.t());
            if let Some(observed) = record.into_observed() {
                pipeline.handle_observed(observed);
                drain(&mut pipeline, line);
            }
        }
    });
    drop(progress);
    let damage = read.err();
    let cut = log.cut().is_some();
    if cut || damage.is_some() {
        pipeline.note_cut();
    }
    pipeline.finish(end);
    drain(&mut pipeline, last);
    Judged {
        cut,
        shortfall: log.shortfall().filter(|_| damage.is_none()),
        parts: log.parts().to_vec(),
        damage: damage.or_else(|| log.take_altered()),
    }
}

/// Records in their order, with their lines in the log's first file, and how far the log was read
/// with the last of them.
struct Batch {
    records: Vec<(Option<u64>, Record)>,
    position: u64,
}

/// Reads a log to its end on a thread of its own, while `take` has what was read before.
fn in_batches(log: &mut LogFile, mut take: impl FnMut(Batch)) -> Result<(), LogError> {
    let path = log.path().to_owned();
    let (sender, batches) = sync_channel(WAITING);
    thread::scope(|scope| {
        // With its sender: the batches end where the reader does.
        let reader = thread::Builder::new().spawn_scoped(scope, move || read(log, &sender));
        let reader = reader.map_err(|source| LogError::Io {
            operation: "start a thread for",
            path,
            source,
        })?;
        batches.into_iter().for_each(&mut take);
        reader.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Sends all records; what comes before a fault is sent before it is told.
fn read(log: &mut LogFile, batches: &SyncSender<Batch>) -> Result<(), LogError> {
    loop {
        let start = log.position();
        let mut records = Vec::new();
        let more = loop {
            match log.next_record() {
                Ok(Some(record)) => records.push((log.line(), record)),
                Ok(None) => break Ok(false),
                Err(error) => break Err(error),
            }
            // A later part of the log begins at 0 again.
            if log.position().abs_diff(start) >= BATCH {
                break Ok(true);
            }
        };
        let position = log.position();
        // The judge takes everything; where it panicked, that is told.
        if batches.send(Batch { records, position }).is_err() || !more? {
            return Ok(());
        }
    }
}

/// How a log is called; `-` is stdin.
pub(super) fn name(path: &Path) -> PathBuf {
    match path.as_os_str() == "-" {
        true => "stdin".into(),
        false => path.into(),
    }
}
