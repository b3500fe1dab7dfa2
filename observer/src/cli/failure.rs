//! What went wrong on our side, in one line with its remedy.

use std::fmt;

use super::Exit;

/// Why a subcommand could not do what it was asked. Printed as `observer: MESSAGE; REMEDY`.
#[derive(Debug)]
pub struct Failure {
    message: String,
    remedy: Option<String>,
    exit: Exit,
}

impl Failure {
    /// A failure without a remedy that is known.
    pub fn new(exit: Exit, message: impl fmt::Display) -> Self {
        Self {
            message: message.to_string(),
            remedy: None,
            exit,
        }
    }

    /// Says what to do about it.
    #[must_use]
    pub fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Self {
            remedy: Some(remedy.into()),
            ..self
        }
    }

    /// Says what else could be done.
    #[must_use]
    pub fn or(self, alternative: &str) -> Self {
        let remedy = match &self.remedy {
            Some(remedy) => format!("{remedy}; or {alternative}"),
            None => alternative.to_owned(),
        };
        self.with_remedy(remedy)
    }

    /// Another exit code for the same failure: `run` has its own.
    #[must_use]
    pub fn with_exit(self, exit: Exit) -> Self {
        Self { exit, ..self }
    }

    /// The exit code.
    pub const fn exit(&self) -> Exit {
        self.exit
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.remedy {
            Some(remedy) => write!(f, "; {remedy}"),
            None => Ok(()),
        }
    }
}
