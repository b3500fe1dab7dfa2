//! `observer verify`: is a log as it was written?

use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::input::Input;
use super::{Exit, Failure, LogError, judge, say};
use crate::record::{Altered, End, Verified, Verifier, VerifyError};

/// Say whether audit logs are as they were written
///
/// A log carries, in every summary and at least every 64 lines, the SHA-256 of all that stands
/// before. A log is whole, or cut (it breaks off, as when the observer was killed), or altered;
/// where it is told by line and byte. A log in several parts is followed from its first.
///
/// Exits with 0 where all are whole, 1 where one was altered, 2 where one cannot be read, 3 where
/// one is cut.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  observer verify audit.jsonl
  observer verify --quiet logs/*.jsonl.zst")]
pub(super) struct Verify {
    /// The audit logs (`-`: stdin)
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Print nothing; the exit code tells
    #[arg(long, short)]
    quiet: bool,
}

/// What is said of a file.
struct Word {
    exit: Exit,
    text: String,
}

impl Verify {
    pub(super) fn execute(self) -> Result<Exit, Failure> {
        let mut exit = Exit::Clean;
        for file in &self.files {
            let word = match verify(file) {
                Ok(verified) => word_of(&verified),
                Err(Fault::Altered(altered)) => Word {
                    exit: Exit::Findings,
                    text: format!("altered: {altered}"),
                },
                Err(Fault::Log(error)) => {
                    say(Failure::from(error));
                    exit = exit.worse(Exit::Failed);
                    continue;
                }
            };
            exit = exit.worse(word.exit);
            if !self.quiet {
                let name = judge::name(file);
                let line = format!("{}: {}\n", name.display(), word.text);
                if let Err(error) = std::io::stdout().write_all(line.as_bytes()) {
                    return match error.kind() {
                        std::io::ErrorKind::BrokenPipe => Ok(exit),
                        _ => Err(Failure::new(
                            Exit::Failed,
                            format_args!("cannot write to stdout: {error}"),
                        )),
                    };
                }
            }
        }
        Ok(exit)
    }
}

enum Fault {
    Altered(Altered),
    Log(LogError),
}

impl From<LogError> for Fault {
    fn from(error: LogError) -> Self {
        Self::Log(error)
    }
}

/// Looks one file over.
fn verify(path: &Path) -> Result<Verified, Fault> {
    let mut input = Input::open(path)?;
    let mut verifier = Verifier::new();
    let fault = |path: &Path, error| match error {
        VerifyError::Altered(altered) => Fault::Altered(altered),
        VerifyError::Read(source) => Fault::Log(LogError::Content {
            path: path.into(),
            source,
        }),
    };
    loop {
        let line = input.next_line()?;
        if !line.ends_with(b"\n") {
            let rest = line.to_vec();
            return verifier
                .finish(&rest)
                .map_err(|error| fault(input.path(), error));
        }
        if let Err(error) = verifier.handle_line(line) {
            return Err(fault(input.path(), error));
        }
    }
}

fn word_of(verified: &Verified) -> Word {
    let Verified { lines, bytes, .. } = verified;
    let cut = |text| Word {
        exit: Exit::Incomplete,
        text,
    };
    match (&verified.end, &verified.seal) {
        (_, None) => cut(format!(
            "not sealed: {lines} lines, and nothing to hold them against"
        )),
        (End::Summary | End::Next(_), Some(seal)) => Word {
            exit: Exit::Clean,
            text: format!(
                "whole: {lines} lines, {bytes} bytes; sha256 {}",
                seal.sha256
            ),
        },
        (End::Line, Some(_)) => cut(format!(
            "cut: it breaks off after line {lines} (at byte {bytes}){}",
            unsealed(verified)
        )),
        (End::Midst { line, offset }, Some(_)) => cut(format!(
            "cut: it breaks off in the middle of line {line} (at byte {offset}){}",
            unsealed(verified)
        )),
    }
}

/// `; lines 1 to 64 are as they were written`, and what is not sealed.
fn unsealed(verified: &Verified) -> String {
    let (sealed, lines) = (verified.sealed, verified.lines);
    let open = match lines - sealed {
        0 => String::new(),
        1 => format!(", line {lines} is not sealed"),
        _ => format!(", lines {} to {lines} are not sealed", sealed + 1),
    };
    format!("; lines 1 to {sealed} are as they were written{open}")
}
