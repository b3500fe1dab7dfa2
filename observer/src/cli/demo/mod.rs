//! `observer demo`: two hosts and two servers, as real processes over real pipes, watched for
//! real. One host cancels the call that it gives up; the other just walks away.
//!
//! The processes are this program again, under the hidden subcommand of [`part`].

pub(super) mod part;

use std::ffi::OsString;
use std::time::Duration;

use super::capture::CaptureArgs;
use super::command::{Command, Ended};
use super::run::owner;
use super::{Exit, Failure, Job, OutputArgs, say};
use crate::capture::Fate;
use crate::verdict::{self, Outcome, Summary};

/// How long the demo's hosts wait for an answer.
const LIMIT: Duration = Duration::from_millis(2_500);

/// How long the demo's servers take for it.
const WORK: Duration = Duration::from_secs(5);

/// Watch a built-in host abandon a call, for real
///
/// Starts two small hosts, each with a server of its own, and observes them as `run` does. Both
/// ask for a report that takes longer than they wait for it. One tells its server that it has
/// given up, as the protocol asks; the other only asks again. Takes six seconds.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  sudo observer demo
  sudo observer demo --verbose --log demo.jsonl")]
pub(super) struct Demo {
    #[command(flatten)]
    capture: CaptureArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Demo {
    pub(super) fn execute(mut self) -> Result<Exit, Failure> {
        self.output.prefer_lines();
        let mut settings = verdict::Settings::default();
        settings.deadlines.insert(part::TOOL.into(), LIMIT);
        let command = Command {
            words: [part::PROGRAM, part::NAME, "hosts"]
                .map(OsString::from)
                .into(),
            owner: owner(None)?,
            linger: Duration::from_secs(1),
            capture: self.capture,
            settings,
        };
        // Before anything is printed: it may be that nothing can be captured here.
        let loaded = command.load(&self.output)?;
        let outputs = self.output.open(Job::Live)?;
        if !self.output.is_quiet() {
            say(format_args!(
                "two hosts ask for a report that takes {} s, and wait {} s for it",
                WORK.as_secs_f64(),
                LIMIT.as_secs_f64()
            ));
        }
        let Ended {
            fate,
            finished,
            told,
        } = loaded.observe(outputs)?;
        finished.report(self.output.verbosity());
        if told || matches!(fate, Fate::Signal(_)) {
            return Err(Failure::new(
                Exit::Failed,
                "the demo was interrupted before it could show anything",
            )
            .with_remedy("give it six seconds"));
        }
        if !finished.summary.as_ref().is_some_and(as_expected) {
            return Err(
                Failure::new(Exit::Failed, "the demo's verdicts are not those expected")
                    .with_remedy("see what observer doctor says"),
            );
        }
        if !self.output.is_quiet() {
            say(EXPLANATION);
        }
        Ok(finished.outputs.exit())
    }
}

const EXPLANATION: &str = "what to look for:
  - The polite host sent notifications/cancelled for its first call: the call is `cancelled`.
  - The forgetful host asked again and sent nothing: the call is `abandoned`. First that was
    likely (the time limit was over, the same call came again); then the answer came in after
    all, to a host that no longer waited for it, and it was confirmed.
  Its server worked on in vain meanwhile. Now watch your own: sudo observer run -- COMMAND";

/// One call was cancelled, one abandoned, and that one is the only finding.
fn as_expected(summary: &Summary) -> bool {
    let count = |outcome| summary.calls.get(&outcome).copied().unwrap_or(0);
    let mut findings = summary.findings.iter();
    count(Outcome::Cancelled) == 1
        && count(Outcome::Abandoned) == 1
        && findings.all(|((rule, _), &count)| *rule == "abandoned-call" && count == 1)
        && !summary.findings.is_empty()
}
