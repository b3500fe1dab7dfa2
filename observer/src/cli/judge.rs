//! A log judged anew from its beginning to its end, for the subcommands that only look at it.

use std::path::{Path, PathBuf};

use super::progress::Progress;
use super::{LogError, LogFile, SettingsArgs};
use crate::capture::Timestamp;
use crate::pipeline::{Output, Pipeline};
use crate::record::Header;
use crate::session;

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
    take: impl FnMut(&Output),
) -> Result<Judged, LogError> {
    let (log, header) = LogFile::open(path)?;
    Ok(judge_open(log, header, settings, take))
}

/// As [`judge`], of a log that is open.
pub(super) fn judge_open(
    mut log: LogFile,
    header: Header,
    settings: &SettingsArgs,
    mut take: impl FnMut(&Output),
) -> Judged {
    let settings = settings.apply(header.settings.unwrap_or_default());
    let mut pipeline = Pipeline::new(session::Settings::default(), settings);
    let mut drain = |pipeline: &mut Pipeline| {
        while let Some(output) = pipeline.poll_output() {
            take(&output);
        }
    };
    let mut progress = Progress::over(&log);
    let mut end = Timestamp::ZERO;
    let damage = loop {
        let record = match log.next_record() {
            Ok(Some(record)) => record,
            Ok(None) => break None,
            Err(error) => break Some(error),
        };
        end = end.max(record.t());
        progress.note(log.position());
        if let Some(observed) = record.into_observed() {
            pipeline.handle_observed(observed);
            drain(&mut pipeline);
        }
    };
    drop(progress);
    let cut = log.cut().is_some();
    if cut || damage.is_some() {
        pipeline.note_cut();
    }
    pipeline.finish(end);
    drain(&mut pipeline);
    Judged {
        cut,
        shortfall: log.shortfall().filter(|_| damage.is_none()),
        parts: log.parts().to_vec(),
        damage: damage.or_else(|| log.take_altered()),
    }
}

/// How a log is called; `-` is stdin.
pub(super) fn name(path: &Path) -> PathBuf {
    match path.as_os_str() == "-" {
        true => "stdin".into(),
        false => path.into(),
    }
}
