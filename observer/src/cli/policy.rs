//! `observer policy`: writes a policy, and looks one over.

use std::io;
use std::path::{Path, PathBuf};

use super::{Exit, Failure, gate, rules};
use crate::policy;
use crate::sink::{Existing, open_to_write};

/// Write a policy, or look one over
///
/// A policy says which findings fail a run, which are only told and which are accepted, how long a
/// call may be pending, which servers may be started, and what must have been seen. `check`, `run`,
/// `attach`, `watch` and `replay` take one with --policy.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  observer policy init observer.toml
  observer policy check observer.toml")]
pub(super) struct Policy {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Write a policy with comments: the one that holds where none is given
    Init {
        /// Where to write it; a file that is there is left alone (`-`: stdout)
        #[arg(value_name = "FILE", default_value = "observer.toml")]
        file: PathBuf,
    },
    /// Say whether a policy is well-formed
    Check {
        /// The policy
        #[arg(value_name = "FILE", default_value = "observer.toml")]
        file: PathBuf,
    },
}

impl Policy {
    pub(super) fn execute(&self) -> Result<Exit, Failure> {
        match &self.verb {
            Verb::Init { file } if file.as_os_str() == "-" => rules::print(policy::TEMPLATE),
            Verb::Init { file } => init(file),
            Verb::Check { file } => {
                gate::read(file)?;
                rules::print(&format!("{}: well-formed\n", file.display()))
            }
        }
    }
}

fn init(file: &Path) -> Result<Exit, Failure> {
    let written = open_to_write(file, Existing::Refused)
        .and_then(|mut file| io::Write::write_all(&mut file, policy::TEMPLATE.as_bytes()));
    match written {
        Ok(()) => rules::print(&format!(
            "wrote {}; observer check --policy {0} FILE judges by it\n",
            file.display()
        )),
        Err(error) => {
            let message = format!("cannot create {}: {error}", file.display());
            Err(Failure::new(Exit::Failed, message).with_remedy("give a new file, or - for stdout"))
        }
    }
}
