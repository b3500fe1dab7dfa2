//! The exit codes: a public contract.

use std::process::ExitCode;

/// How `observer` ends.
///
/// | code | meaning |
/// |---|---|
/// | 0 | nothing at or above `--fail-on` |
/// | 1 | findings reach it |
/// | 2 | wrong usage, unreadable or damaged input, or a log that could not be written |
/// | 3 | with `--strict`: the evidence is incomplete |
/// | 4 | nothing can be captured here (`attach`, `watch`) |
/// | 125 | `run`: the observer itself failed |
/// | 126 | `run`: the command cannot be invoked |
/// | 127 | `run`: the command is not found |
/// | other | `run`: the command's own status; 128+n where signal n ended it |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0.
    Clean,
    /// 1.
    Findings,
    /// 2.
    Failed,
    /// 3.
    Incomplete,
    /// 4.
    CannotCapture,
    /// 125.
    ObserverFailed,
    /// 126.
    CannotInvoke,
    /// 127.
    NotFound,
    /// The observed command's own status.
    Command(u8),
}

impl Exit {
    /// The status of a command that returned `code`.
    pub fn of_code(code: i32) -> Self {
        // As the kernel does: only the low byte reaches the parent.
        Self::Command(code.to_le_bytes()[0])
    }

    /// The status of a command that signal number `signal` ended, as shells give it.
    pub fn of_signal(signal: i32) -> Self {
        Self::Command(u8::try_from(128 + signal).unwrap_or(u8::MAX))
    }

    /// The number.
    pub const fn code(self) -> u8 {
        match self {
            Self::Clean => 0,
            Self::Findings => 1,
            Self::Failed => 2,
            Self::Incomplete => 3,
            Self::CannotCapture => 4,
            Self::ObserverFailed => 125,
            Self::CannotInvoke => 126,
            Self::NotFound => 127,
            Self::Command(status) => status,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_are_those_of_the_contract() {
        let codes = [
            (Exit::Clean, 0),
            (Exit::Findings, 1),
            (Exit::Failed, 2),
            (Exit::Incomplete, 3),
            (Exit::CannotCapture, 4),
            (Exit::ObserverFailed, 125),
            (Exit::CannotInvoke, 126),
            (Exit::NotFound, 127),
        ];
        for (exit, code) in codes {
            assert_eq!(exit.code(), code);
        }
    }

    #[test]
    fn a_command_keeps_its_status() {
        assert_eq!(Exit::of_code(7).code(), 7);
        assert_eq!(Exit::of_code(256).code(), 0);
        assert_eq!(Exit::of_code(-1).code(), 255);
        assert_eq!(Exit::of_signal(9).code(), 137);
        assert_eq!(Exit::of_signal(200).code(), 255);
    }
}
