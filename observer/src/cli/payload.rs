//! How much of what is observed is shown and written down.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};

use clap::builder::{PossibleValuesParser, TypedValueParser as _};

use super::{Exit, Failure};
use crate::record::{Payload, Word};
use crate::redact::{Key, Plan, Redactor};

/// What is hidden, in the log and on the terminal.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Payload")]
pub struct PayloadArgs {
    /// How much of the messages is kept [default: full, where CI=true redacted]
    ///
    /// full: all. redacted: strings that no verdict needs are replaced by a keyed hash and their
    /// size, and so are arguments of commands. none: only what verdicts need is kept. A replay
    /// gives the same verdicts in each case.
    #[arg(long, value_name = "WHAT", value_parser = parser())]
    payload: Option<Payload>,
    /// Hide the values of every member of this name, beside those with the usual names of secrets
    ///
    /// Can be given several times. Upper case, hyphens and underscores make no difference.
    #[arg(long, value_name = "NAME")]
    redact_key: Vec<String>,
    /// Keep what looks like a secret: tokens of known form, private keys, passwords
    #[arg(long)]
    show_secrets: bool,
}

fn parser() -> impl clap::builder::TypedValueParser<Value = Payload> {
    PossibleValuesParser::new(Payload::WORDS).try_map(|word| {
        // The parser lets no other word through.
        Payload::from_word(&word).ok_or("no such payload")
    })
}

impl PayloadArgs {
    /// The options as they were given, for a configuration.
    pub(super) fn words(&self) -> Vec<OsString> {
        let mut words = Vec::new();
        if let Some(payload) = self.payload {
            words.extend(["--payload", payload.word()].map(OsString::from));
        }
        for name in &self.redact_key {
            words.extend(["--redact-key", name].map(OsString::from));
        }
        if self.show_secrets {
            words.push("--show-secrets".into());
        }
        words
    }

    /// What hides what is to be hidden; `None` where nothing is.
    ///
    /// # Errors
    /// Where the system gives no random bytes.
    pub(super) fn redactor(&self) -> Result<Option<Redactor>, Failure> {
        let plan = Plan {
            payload: self.payload.unwrap_or_else(default),
            names: self.redact_key.clone(),
            show_secrets: self.show_secrets,
            marked: false,
        };
        if plan.payload == Payload::Full && plan.show_secrets && plan.names.is_empty() {
            return Ok(None);
        }
        let key = random().map_err(|error| {
            let message = format!("cannot read /dev/urandom: {error}");
            Failure::new(Exit::Failed, message).with_remedy("give --payload full --show-secrets")
        })?;
        Ok(Some(Redactor::new(plan, Key::new(key))))
    }
}

/// Logs of a continuous integration are read by many.
fn default() -> Payload {
    match std::env::var("CI") {
        Ok(ci) if ci == "true" || ci == "1" => Payload::Redacted,
        _ => Payload::Full,
    }
}

fn random() -> io::Result<[u8; 32]> {
    let mut key = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut key)?;
    Ok(key)
}
