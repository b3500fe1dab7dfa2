//! `observer verify`: is a log as it was written?

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::input::Input;
use super::log::sibling;
use super::{Exit, Failure, LogError, judge, rules, say};
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

impl Word {
    const fn new(exit: Exit, text: String) -> Self {
        Self { exit, text }
    }
}

impl Verify {
    pub(super) fn execute(self) -> Result<Exit, Failure> {
        let mut exit = Exit::Clean;
        let mut seen = BTreeSet::new();
        for file in &self.files {
            let (mut file, mut before) = (file.clone(), None);
            // A log in several parts, or what is left of it.
            while seen.insert(file.canonicalize().unwrap_or_else(|_| file.clone())) {
                let verified = match verify(&file) {
                    Ok(verified) => verified,
                    Err(fault) => {
                        exit = exit.worse(self.tell_fault(&file, fault)?);
                        break;
                    }
                };
                let next = match &verified.end {
                    End::Next(name) => sibling(&file, name),
                    _ => None,
                };
                let word = word_of(&verified, before.as_ref(), next.as_deref());
                exit = exit.worse(self.tell(&file, &word)?);
                let Some(next) = next.filter(|next| next.exists()) else {
                    break;
                };
                (file, before) = (next, Some(verified));
            }
        }
        Ok(exit)
    }

    fn tell_fault(&self, file: &Path, fault: Fault) -> Result<Exit, Failure> {
        match fault {
            Fault::Altered(altered) => self.tell(
                file,
                &Word::new(Exit::Findings, format!("altered: {altered}")),
            ),
            Fault::Log(error) => {
                say(Failure::from(error));
                Ok(Exit::Failed)
            }
        }
    }

    fn tell(&self, file: &Path, word: &Word) -> Result<Exit, Failure> {
        if !self.quiet {
            let name = judge::name(file);
            rules::print(&format!("{}: {}\n", name.display(), word.text))?;
        }
        Ok(word.exit)
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

/// What is said of a file that comes after `before` and goes on in `next`, where it does.
fn word_of(verified: &Verified, before: Option<&Verified>, next: Option<&Path>) -> Word {
    let Verified { lines, bytes, .. } = verified;
    if let Some(before) = before
        && !follows(verified, before)
    {
        let text = "altered: it is not the part that follows";
        return Word::new(Exit::Findings, text.into());
    }
    let whole = match &verified.seal {
        Some(seal) => format!("{lines} lines, {bytes} bytes; sha256 {}", seal.sha256),
        None if verified.end == End::Line => {
            let text = format!("not sealed: {lines} lines, and nothing to hold them against");
            return Word::new(Exit::Incomplete, text);
        }
        None => String::new(),
    };
    let part = match verified.part {
        1 => String::new(),
        part => format!("part {part}, "),
    };
    match &verified.end {
        End::Summary => Word::new(Exit::Clean, format!("{part}whole: {whole}")),
        End::Next(name) if next.is_some_and(Path::exists) => Word::new(
            Exit::Clean,
            format!("{part}whole so far: {whole}; goes on in {name}"),
        ),
        End::Next(name) => Word::new(
            Exit::Incomplete,
            format!("{part}cut: it goes on in {name}, which is not there; {whole}"),
        ),
        End::Line => Word::new(
            Exit::Incomplete,
            format!(
                "{part}cut: it breaks off after line {lines} (at byte {bytes}){}",
                unsealed(verified)
            ),
        ),
        End::Midst { line, offset } => Word::new(
            Exit::Incomplete,
            format!(
                "{part}cut: it breaks off in the middle of line {line} (at byte {offset}){}",
                unsealed(verified)
            ),
        ),
    }
}

/// Whether a file is the part that comes after `before`.
fn follows(verified: &Verified, before: &Verified) -> bool {
    verified.part == before.part + 1
        && verified.previous.is_some()
        && verified.previous == before.seal.map(|seal| seal.sha256)
}

/// `; lines 1 to 64 are as they were written`, and what is not sealed.
fn unsealed(verified: &Verified) -> String {
    let (sealed, lines) = (verified.sealed, verified.lines);
    if sealed == 0 {
        return "; none of its lines is sealed".into();
    }
    let open = match lines - sealed {
        0 => String::new(),
        1 => format!(", line {lines} is not sealed"),
        _ => format!(", lines {} to {lines} are not sealed", sealed + 1),
    };
    format!("; lines 1 to {sealed} are as they were written{open}")
}
