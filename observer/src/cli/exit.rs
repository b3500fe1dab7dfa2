//! The exit codes: a public contract.

use std::process::ExitCode;

/// How `observer` ends.
///
/// | code | meaning |
/// |---|---|
/// | 0 | nothing that `--fail-on` or the policy deny |
/// | 1 | something that they deny |
/// | 2 | wrong usage, unreadable or damaged input, or a log that could not be written |
/// | 3 | evidence is missing that `--strict` or the policy ask for |
/// | 4 | nothing can be captured here (`attach`, `watch`) |
/// | 125 | `run`, `relay`: the observer itself failed |
/// | 126 | `run`, `relay`: the command cannot be invoked |
/// | 127 | `run`, `relay`: the command is not found |
/// | other | `run`, `relay`: the command's own status; for `run`, 128+n where signal n ended it |
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

    /// The one that weighs more, of several logs' codes: what cannot be read, then what was found,
    /// then what is missing.
    #[must_use]
    pub const fn worse(self, other: Self) -> Self {
        const fn weight(exit: Exit) -> u8 {
            match exit {
                Exit::Clean => 0,
                Exit::Incomplete => 1,
                Exit::Findings => 2,
                _ => 3,
            }
        }
        if weight(other) > weight(self) {
            other
        } else {
            self
        }
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
    fn of_several_logs_the_worst_counts() {
        let order = [Exit::Clean, Exit::Incomplete, Exit::Findings, Exit::Failed];
        for (place, one) in order.iter().enumerate() {
            for other in &order[..=place] {
                assert_eq!((one.worse(*other), other.worse(*one)), (*one, *one));
            }
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
