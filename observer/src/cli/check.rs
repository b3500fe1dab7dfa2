//! `observer check`: do logs keep to a policy?

use std::path::{Path, PathBuf};

use super::gate::Gate;
use super::{ColorChoice, Exit, Failure, GateArgs, LogError, SettingsArgs, judge, say};
use crate::pipeline::Output;
use crate::sink::{Lines, Outlet};
use crate::verdict;

/// Judge audit logs by a policy
///
/// Judges each log anew and says what the policy objects to. Without --policy and --fail-on the
/// built-in policy holds: findings of severity error are denied, warnings are told, and a log
/// without any MCP message is no success.
///
/// A log is held to its seals as it is read. One that was altered is damaged: the exit code is 2,
/// whatever is found in it. observer verify tells more.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  observer check audit.jsonl
  observer check --policy observer.toml --strict logs/*.jsonl
  observer check --fail-on abandoned-call audit.jsonl")]
pub(super) struct Check {
    /// The audit logs (`-`: stdin)
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    settings: SettingsArgs,
    /// Print nothing; the exit code tells
    #[arg(long, short, help_heading = "Output")]
    quiet: bool,
    /// When to colour
    #[arg(
        long,
        value_name = "WHEN",
        value_enum,
        default_value_t,
        help_heading = "Output"
    )]
    color: ColorChoice,
    #[command(flatten, next_help_heading = "Output")]
    gate: GateArgs,
}

impl Check {
    pub(super) fn execute(self) -> Result<Exit, Failure> {
        // A policy that is none is told before any log is read.
        self.gate.open_or_default()?;
        let color = self.color.choose(false);
        let mut exit = Exit::Clean;
        let mut parts = Parts::default();
        for file in &self.files {
            let mut lines = Lines::rulings(Outlet::stdout(), color);
            exit = exit.worse(self.check(file, &mut lines, &mut parts)?);
            if let Err(error) = lines.flush() {
                if error.is_closed_pipe() {
                    return Ok(exit);
                }
                return Err(Failure::new(Exit::Failed, error));
            }
        }
        for failure in parts.left_out() {
            say(failure);
            exit = exit.worse(Exit::Failed);
        }
        Ok(exit)
    }

    fn check(&self, file: &Path, lines: &mut Lines, parts: &mut Parts) -> Result<Exit, Failure> {
        let mut gate = self.gate.open_or_default()?;
        let mut summary = None;
        let judged = judge::judge(file, &self.settings, |output| {
            gate.handle_output(output);
            if let Output::Derived(verdict::Output::Summary(last)) = output {
                summary = Some(last.clone());
            }
        });
        let judged = match judged {
            Ok(judged) => judged,
            Err(error @ LogError::NotFirst { .. }) => {
                parts.met.push((file.into(), error));
                return Ok(Exit::Clean);
            }
            Err(error) => {
                say(Failure::from(error));
                return Ok(Exit::Failed);
            }
        };
        parts.read.extend(judged.parts.iter().cloned());
        let name = judge::name(file);
        if let Some(shortfall) = &judged.shortfall {
            say(format_args!("{}: {shortfall}", name.display()));
            gate.note_incomplete();
        }
        let exit = gate.exit().unwrap_or(Exit::Clean);
        if let (false, Some(summary)) = (self.quiet, summary) {
            let verdict = match (&judged.damage, exit) {
                (Some(LogError::Altered { .. }), Exit::Clean) => "not shown: the log was altered",
                (Some(_), Exit::Clean) => "not shown: the log is damaged",
                _ => verdict_of(&gate, exit),
            };
            let title = format!("{}: {verdict}", name.display());
            lines
                .append_ruling(&title, &summary, gate.ruling())
                .map_err(|error| Failure::new(Exit::Failed, error))?;
        }
        Ok(match judged.damage {
            Some(error) => {
                say(Failure::from(error));
                Exit::Failed
            }
            None => exit,
        })
    }
}

/// Later parts of logs: a pattern such as `*.jsonl` names them too.
#[derive(Default)]
struct Parts {
    /// Given, and left to their first part.
    met: Vec<(PathBuf, LogError)>,
    /// Read with their first part.
    read: Vec<PathBuf>,
}

impl Parts {
    /// Those whose first part was not given.
    fn left_out(self) -> impl Iterator<Item = Failure> {
        let real = |path: &Path| path.canonicalize().ok();
        let read: Vec<_> = self.read.iter().map(|path| real(path)).collect();
        let left = self.met.into_iter();
        left.filter(move |(path, _)| !read.contains(&real(path)))
            .map(|(_, error)| Failure::from(error))
    }
}

const fn verdict_of(gate: &Gate, exit: Exit) -> &'static str {
    match exit {
        Exit::Findings => "denied",
        Exit::Clean => "passed",
        _ if gate.lacks_evidence() => "not shown: the evidence is incomplete",
        _ => "not shown",
    }
}
