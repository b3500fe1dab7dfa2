//! What to do about it: the remedies of all errors, each worded once.

use std::error::Error;
use std::io;

use super::{Exit, Failure};
use crate::capture::ebpf::{OLDEST_KERNEL, ProbeError};
use crate::capture::proc::ProcError;
use crate::capture::ptrace::{Refusal, TraceError};
use crate::capture::spawn::SpawnError;

/// What the probe's user can do.
pub(super) fn of_probe(error: &ProbeError) -> Option<String> {
    let (major, minor) = OLDEST_KERNEL;
    Some(match error {
        ProbeError::Architecture(_) => "use a machine with x86-64 or arm64".into(),
        ProbeError::KernelTooOld(_) => format!("boot Linux {major}.{minor} or newer"),
        ProbeError::NoBtf { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            "boot a kernel that is built with CONFIG_DEBUG_INFO_BTF=y, as those of all large \
             distributions are; in a container, mount /sys"
                .into()
        }
        ProbeError::NoBtf { .. } | ProbeError::NotPermitted { .. } => permission(),
        ProbeError::Lockdown { .. } => {
            "turn kernel lockdown off (boot without lockdown=, or without Secure Boot), and see \
             whether a security module or a container's seccomp profile forbids bpf(2)"
                .into()
        }
        ProbeError::MemoryLock(_) => {
            "raise the limit (ulimit -l unlimited), or give a smaller --ring-size".into()
        }
        ProbeError::PidNamespace => {
            "run it outside the container, or start the container with --pid=host".into()
        }
        ProbeError::Rejected { .. } | ProbeError::Btf(_) => {
            "please report it, with the output of observer doctor --verbose".into()
        }
        ProbeError::RingSize(_) => "give another --ring-size, such as 16MiB".into(),
        ProbeError::Load(_) | ProbeError::Attach { .. } => "observer doctor tells more".into(),
        ProbeError::Map { .. } | ProbeError::Missing(_) | ProbeError::Io { .. } => return None,
    })
}

/// How to see every system call where the kernel may skip the probe's raw tracepoints.
pub(super) fn of_skipped_calls() -> String {
    "as root, with tracefs mounted: mount -t tracefs tracefs /sys/kernel/tracing".into()
}

/// How to get the rights that capturing takes.
pub(super) fn permission() -> String {
    let program =
        std::env::current_exe().map_or("observer".into(), |exe| quoted(&exe.to_string_lossy()));
    let command: Vec<String> = std::env::args().skip(1).map(|word| quoted(&word)).collect();
    format!(
        "run it as root: sudo {program} {}; or give it the rights once: sudo setcap \
         cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search+ep {program}",
        command.join(" ")
    )
}

/// What somebody can do whose process cannot be traced.
pub(super) fn of_refusal(refusal: Refusal) -> Option<String> {
    Some(match refusal {
        Refusal::Gone | Refusal::Own | Refusal::KernelThread => return None,
        Refusal::Traced(tracer) => format!(
            "a process has one tracer at a time: end process {tracer}, or use --backend ebpf as root"
        ),
        Refusal::OtherUser { .. } | Refusal::Protected => permission(),
        Refusal::YamaChildrenOnly => format!(
            "start it with observer run; or let your processes be attached to until the next boot: \
             sudo sysctl kernel.yama.ptrace_scope=0; or {}",
            permission()
        ),
        Refusal::YamaAdminOnly => format!(
            "let processes be traced until the next boot: sudo sysctl kernel.yama.ptrace_scope=1 \
             (0 for attach); or {}",
            permission()
        ),
        Refusal::YamaNobody => "set kernel.yama.ptrace_scope to 1 in /etc/sysctl.d and boot: a \
             kernel that runs does not go back from 3; or use --backend ebpf as root"
            .into(),
        Refusal::Unknown => "allow ptrace(2): of a container, by --cap-add=SYS_PTRACE; see \
             whether a security module forbids it"
            .into(),
    })
}

/// `watch` was asked to do what only the probe can.
pub(super) fn only_attached() -> Failure {
    Failure::new(
        Exit::CannotCapture,
        "ptrace cannot watch a whole machine, only processes that it is told of",
    )
    .with_remedy("name them: observer attach PID|NAME; or leave out --backend, as root")
}

/// What `watch` cannot do without rights, `attach` can for some processes.
pub(super) fn or_attach(failure: Failure) -> Failure {
    failure.or("watch your own processes without rights: observer attach PID|NAME")
}

/// A word as a shell wants it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// An error and all its causes in one line.
pub(super) fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let own = error.to_string();
        // Some crates repeat their cause in their own text.
        if !text.ends_with(&own) {
            text.push_str(": ");
            text.push_str(&own);
        }
        cause = error.source();
    }
    text
}

impl From<ProbeError> for Failure {
    fn from(error: ProbeError) -> Self {
        with_remedy(
            Self::new(Exit::CannotCapture, with_causes(&error)),
            of_probe(&error),
        )
    }
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Self {
        let remedy = match &error {
            TraceError::Seize { refusal, .. } => of_refusal(*refusal),
            TraceError::Thread(_) | TraceError::Ended => None,
        };
        with_remedy(Self::new(Exit::CannotCapture, error), remedy)
    }
}

impl From<ProcError> for Failure {
    fn from(error: ProcError) -> Self {
        let remedy = match &error {
            ProcError::List(_) => "mount /proc",
            ProcError::Sockets(_) => "boot a kernel with CONFIG_UNIX_DIAG, or load unix_diag",
        };
        Self::new(Exit::CannotCapture, with_causes(&error)).with_remedy(remedy)
    }
}

impl From<SpawnError> for Failure {
    fn from(error: SpawnError) -> Self {
        let exit = match error {
            SpawnError::NotFound { .. } => Exit::NotFound,
            SpawnError::Exec { .. } => Exit::CannotInvoke,
            _ => Exit::ObserverFailed,
        };
        let remedy = match &error {
            SpawnError::NoUser(_) => Some("give the name or number of a user that exists"),
            SpawnError::Caller => Some("give --user NAME: the command does not run as root then"),
            SpawnError::Switch { .. } => Some("only root may start a command as another user"),
            SpawnError::NotFound { program } if program.contains('/') => {
                Some("the path does not exist, or its interpreter does not")
            }
            SpawnError::NotFound { .. } => {
                Some("it is not in the PATH that it would run with; give its full path")
            }
            _ => None,
        };
        with_remedy(
            Self::new(exit, with_causes(&error)),
            remedy.map(str::to_owned),
        )
    }
}

fn with_remedy(failure: Failure, remedy: Option<String>) -> Failure {
    match remedy {
        Some(remedy) => failure.with_remedy(remedy),
        None => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_a_shell() {
        for (word, expected) in [
            ("run", "run"),
            ("--deadline=slow=30s", "--deadline=slow=30s"),
            ("", "''"),
            ("two words", "'two words'"),
            ("it's", r"'it'\''s'"),
            ("$(reboot)", "'$(reboot)'"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }

    #[test]
    fn causes_are_told_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("cannot do it")]
        struct Outer(#[source] io::Error);
        let error = Outer(io::Error::from_raw_os_error(libc::EPERM));
        assert_eq!(
            with_causes(&error),
            "cannot do it: Operation not permitted (os error 1)"
        );
    }
}
