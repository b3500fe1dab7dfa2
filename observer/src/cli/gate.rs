//! What makes the exit code 1 or 3: the policy, `--fail-on`, `--strict`.

use std::path::{Path, PathBuf};

use super::{Exit, Failure};
use crate::pipeline::Output;
use crate::policy::{FailOn, Inspection, Policy, Ruling};
use crate::verdict;

/// What the exit code tells, shared by all subcommands that judge.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct GateArgs {
    /// Judge by the policy in FILE: exit with 1 for what it denies, with 3 for what it misses
    ///
    /// `observer policy init` writes one, with comments.
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Exit with 1 if there is such a finding: error, warning, info (or higher), confirmed,
    /// probable, possible (or surer), or a rule's name
    ///
    /// Can be given several times; one that is reached is enough.
    #[arg(long, value_name = "LEVEL|RULE")]
    fail_on: Vec<FailOn>,
    /// Exit with 3 if anything of the scope went by unseen, or no MCP message was seen at all
    ///
    /// Silence is not success: a run in which nothing was seen shows nothing.
    #[arg(long)]
    strict: bool,
}

impl GateArgs {
    /// Whether a policy or `--fail-on` is given.
    pub(super) const fn is_given(&self) -> bool {
        self.policy.is_some() || !self.fail_on.is_empty()
    }

    /// Reads the policy; without one, only `--fail-on` denies anything.
    ///
    /// # Errors
    /// Where the policy cannot be read, or is none.
    pub(super) fn open(&self) -> Result<Gate, Failure> {
        let policy = match &self.policy {
            Some(path) => read(path)?,
            None => Policy::silent(),
        };
        Ok(self.gate(policy, self.policy.is_some()))
    }

    /// As [`Self::open`], but by the built-in policy where nothing else is given.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(super) fn open_or_default(&self) -> Result<Gate, Failure> {
        match self.is_given() {
            true => self.open(),
            false => Ok(self.gate(Policy::default(), true)),
        }
    }

    fn gate(&self, policy: Policy, tells: bool) -> Gate {
        let policy = policy.with_fail_on(self.fail_on.clone());
        let policy = match self.strict {
            true => policy.wanting_traffic(),
            false => policy,
        };
        Gate {
            inspection: Some(Inspection::new(policy)),
            ruling: Ruling::default(),
            tells,
            decides: tells || self.strict || !self.fail_on.is_empty(),
            strict: self.strict,
            complete: true,
        }
    }
}

/// The policy in a file.
///
/// # Errors
/// Where it cannot be read, or is none.
pub(super) fn read(path: &Path) -> Result<Policy, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        let message = format!("cannot read {}: {error}", path.display());
        Failure::new(Exit::Failed, message).with_remedy("observer policy init writes a policy")
    })?;
    Policy::parse(&text).map_err(|error| {
        let message = format!("{} is no policy: {error}", path.display());
        Failure::new(Exit::Failed, message).with_remedy("observer policy init shows one")
    })
}

/// Watches a run for what its exit code must tell.
#[derive(Debug)]
pub(super) struct Gate {
    /// Until the summary has come.
    inspection: Option<Inspection>,
    ruling: Ruling,
    tells: bool,
    decides: bool,
    strict: bool,
    complete: bool,
}

impl Gate {
    /// Takes what came out of the pipeline. Gives the ruling at the end, where it is to be told.
    pub(super) fn handle_output(&mut self, output: &Output) -> Option<&Ruling> {
        self.inspection.as_mut()?.handle_output(output);
        let Output::Derived(verdict::Output::Summary(summary)) = output else {
            return None;
        };
        self.complete &= summary.complete;
        self.ruling = self.inspection.take()?.conclude();
        self.told()
    }

    /// The ruling, where the end has come: where a policy is given, or something is missing.
    pub(super) fn told(&self) -> Option<&Ruling> {
        let tells = self.tells || !self.ruling.uncovered.is_empty();
        (tells && self.inspection.is_none()).then_some(&self.ruling)
    }

    /// Whether an exit code was asked for.
    pub(super) const fn decides(&self) -> bool {
        self.decides
    }

    /// Says that something of the scope went by unseen that no record tells.
    pub(super) const fn note_incomplete(&mut self) {
        self.complete = false;
    }

    /// What the policy objects to; nothing before the end.
    pub(super) const fn ruling(&self) -> &Ruling {
        &self.ruling
    }

    /// The exit code that it asks for. What was found is found, whatever went by unseen.
    pub(super) const fn exit(&self) -> Option<Exit> {
        if self.ruling.denied > 0 {
            return Some(Exit::Findings);
        }
        if !self.ruling.uncovered.is_empty() || (self.strict && !self.complete) {
            return Some(Exit::Incomplete);
        }
        None
    }

    /// Whether `--strict` asks for what is missing.
    pub(super) const fn lacks_evidence(&self) -> bool {
        self.strict && !self.complete
    }
}
