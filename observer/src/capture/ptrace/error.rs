//! Why a process could not be traced.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use nix::errno::Errno;

use super::tasks::number;
use crate::capture::event::Pid;

/// Why there is no observation.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The tracing thread could not be started.
    #[error("cannot start the tracing thread")]
    Thread(#[source] io::Error),
    /// The tracing thread has ended.
    #[error("the tracing thread has ended")]
    Ended,
    /// The process cannot be traced.
    #[error("cannot trace process {pid}: {refusal}")]
    Seize {
        /// The process.
        pid: Pid,
        /// Why, as far as that can be told.
        refusal: Refusal,
        /// What the kernel said.
        #[source]
        source: Errno,
    },
}

/// Why the kernel refuses that a process be traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// There is no such process, or it has ended.
    #[error("there is no such process")]
    Gone,
    /// It is this process, or a thread of it.
    #[error("it is the observer itself")]
    Own,
    /// It belongs to the kernel.
    #[error("it is a kernel thread")]
    KernelThread,
    /// Another tracer (a debugger, strace, another observer) has it.
    #[error("process {0} traces it already")]
    Traced(Pid),
    /// It runs as another user, and `CAP_SYS_PTRACE` is missing.
    #[error("it belongs to user {uid}")]
    OtherUser {
        /// Its user id.
        uid: u32,
    },
    /// It has more rights than we, or protects itself: a setuid program, or `PR_SET_DUMPABLE`.
    #[error("it is protected (setuid, file capabilities or PR_SET_DUMPABLE)")]
    Protected,
    /// `/proc/sys/kernel/yama/ptrace_scope` is 1: only what we start ourselves.
    #[error("kernel.yama.ptrace_scope is 1: only own children may be traced")]
    YamaChildrenOnly,
    /// `/proc/sys/kernel/yama/ptrace_scope` is 2: only with `CAP_SYS_PTRACE`.
    #[error("kernel.yama.ptrace_scope is 2: only administrators may trace")]
    YamaAdminOnly,
    /// `/proc/sys/kernel/yama/ptrace_scope` is 3: nobody, until the next boot.
    #[error("kernel.yama.ptrace_scope is 3: nobody may trace")]
    YamaNobody,
    /// Something else: a container's seccomp filter, a security module.
    #[error("the kernel, a security module or a container does not permit it")]
    Unknown,
}

impl TraceError {
    /// What the kernel's answer to a seizure of `pid` means.
    pub(super) fn seize(pid: Pid, source: Errno) -> Self {
        let refusal = Facts::gather(pid).refusal(source);
        Self::Seize {
            pid,
            refusal,
            source,
        }
    }
}

/// What can be known about a process that cannot be traced.
#[derive(Clone, Copy, Debug, Default)]
struct Facts {
    own: bool,
    exists: bool,
    kernel: bool,
    tracer: Option<u32>,
    /// Whose it is.
    uid: u32,
    /// Whom its `/proc` folder belongs to: root, where it is protected.
    guard: u32,
    /// We.
    euid: u32,
    privileged: bool,
    yama: Option<u32>,
}

impl Facts {
    fn gather(pid: Pid) -> Self {
        let status = status(pid);
        let own = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let folder = fs::metadata(format!("/proc/{pid}"));
        let yama = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
        Self {
            own: pid.0 == std::process::id(),
            exists: is_alive(&status),
            kernel: is_of_the_kernel(&status),
            tracer: number(&status, "TracerPid:").filter(|&tracer| tracer != 0),
            uid: number(&status, "Uid:").unwrap_or(0),
            guard: folder.map_or(0, |folder| folder.uid()),
            euid: nix::unistd::geteuid().as_raw(),
            privileged: may_trace_all(&own),
            yama: yama.ok().and_then(|scope| scope.trim().parse().ok()),
        }
    }

    fn refusal(self, source: Errno) -> Refusal {
        if !self.exists || source == Errno::ESRCH {
            return Refusal::Gone;
        }
        if self.own {
            return Refusal::Own;
        }
        if let Some(tracer) = self.tracer {
            return Refusal::Traced(Pid(tracer));
        }
        if self.kernel {
            return Refusal::KernelThread;
        }
        if self.yama == Some(3) {
            return Refusal::YamaNobody;
        }
        if self.privileged {
            return Refusal::Unknown;
        }
        if self.uid != self.euid {
            return Refusal::OtherUser { uid: self.uid };
        }
        if self.guard != self.uid {
            return Refusal::Protected;
        }
        match self.yama {
            Some(1) => Refusal::YamaChildrenOnly,
            Some(2) => Refusal::YamaAdminOnly,
            _ => Refusal::Unknown,
        }
    }
}

fn status(pid: Pid) -> String {
    fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default()
}

/// Whether it is this thread that traces a process: it was started by one that we trace.
pub(super) fn is_ours(pid: Pid) -> bool {
    let own = nix::unistd::gettid().as_raw().unsigned_abs();
    number(&status(pid), "TracerPid:") == Some(own)
}

/// What has ended waits for its parent as a zombie (Z), or is about to go (X).
fn is_alive(status: &str) -> bool {
    let state = status.lines().find_map(|line| line.strip_prefix("State:"));
    state.is_some_and(|state| !state.trim_start().starts_with(['Z', 'X']))
}

/// Linux 6.8 says so; of older kernels, what has no memory of its own is a thread of theirs.
fn is_of_the_kernel(status: &str) -> bool {
    match number(status, "Kthread:") {
        Some(flag) => flag == 1,
        None => !status.contains("\nVmSize:"),
    }
}

/// Whether `CAP_SYS_PTRACE` is among the effective capabilities of this `/proc/PID/status`.
fn may_trace_all(status: &str) -> bool {
    const CAP_SYS_PTRACE: u32 = 19;
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let set = line
        .and_then(|set| u64::from_str_radix(set.trim(), 16).ok())
        .unwrap_or(0);
    set >> CAP_SYS_PTRACE & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process of ours that nothing protects.
    const OURS: Facts = Facts {
        own: false,
        exists: true,
        kernel: false,
        tracer: None,
        uid: 1000,
        guard: 1000,
        euid: 1000,
        privileged: false,
        yama: None,
    };

    fn refusal(facts: Facts) -> Refusal {
        facts.refusal(Errno::EPERM)
    }

    #[test]
    fn yama_is_named_with_its_setting() {
        let yama = |scope| Facts {
            yama: Some(scope),
            ..OURS
        };
        assert_eq!(refusal(yama(0)), Refusal::Unknown);
        assert_eq!(refusal(yama(1)), Refusal::YamaChildrenOnly);
        assert_eq!(refusal(yama(2)), Refusal::YamaAdminOnly);
        assert_eq!(refusal(yama(3)), Refusal::YamaNobody);
        // Administrators are told only what binds them as well.
        let admin = |scope| Facts {
            privileged: true,
            ..yama(scope)
        };
        assert_eq!(refusal(admin(1)), Refusal::Unknown);
        assert_eq!(refusal(admin(3)), Refusal::YamaNobody);
    }

    #[test]
    fn what_is_certain_comes_before_what_is_likely() {
        let yama = Facts {
            yama: Some(1),
            ..OURS
        };
        assert_eq!(
            refusal(Facts {
                tracer: Some(7),
                ..yama
            }),
            Refusal::Traced(Pid(7))
        );
        assert_eq!(
            refusal(Facts {
                uid: 0,
                guard: 0,
                ..yama
            }),
            Refusal::OtherUser { uid: 0 }
        );
        assert_eq!(refusal(Facts { guard: 0, ..yama }), Refusal::Protected);
        assert_eq!(refusal(Facts { own: true, ..yama }), Refusal::Own);
        assert_eq!(
            refusal(Facts {
                kernel: true,
                uid: 0,
                ..yama
            }),
            Refusal::KernelThread
        );
        assert_eq!(
            refusal(Facts {
                exists: false,
                ..yama
            }),
            Refusal::Gone
        );
        assert_eq!(yama.refusal(Errno::ESRCH), Refusal::Gone);
    }

    #[test]
    fn facts_are_those_of_the_process() {
        let own = Facts::gather(Pid(std::process::id()));
        assert!(own.exists && own.own && !own.kernel);
        assert_eq!(own.tracer, None);
        let none = Facts::gather(Pid(u32::MAX));
        assert!(!none.exists);
    }

    #[test]
    fn the_dead_are_told_from_threads_of_the_kernel() {
        assert!(is_alive("Name:\tx\nState:\tS (sleeping)\n"));
        assert!(!is_alive("Name:\tx\nState:\tZ (zombie)\n"));
        assert!(!is_alive(""));
        assert!(is_of_the_kernel("Name:\tx\nKthread:\t1\n"));
        assert!(!is_of_the_kernel("Name:\tx\nKthread:\t0\n"));
        assert!(is_of_the_kernel("Name:\tx\n"));
        assert!(!is_of_the_kernel("Name:\tx\nVmSize:\t 9 kB\n"));
    }

    #[test]
    fn capabilities_are_read_as_the_kernel_writes_them() {
        assert!(may_trace_all("CapEff:\t000001ffffffffff\n"));
        assert!(may_trace_all("CapPrm:\t0\nCapEff:\t0000000000080000\n"));
        assert!(!may_trace_all("CapEff:\t0000000000000000\n"));
        assert!(!may_trace_all("CapPrm:\t000001ffffffffff\n"));
    }
}
