//! Why the probe cannot be loaded or read here. Remedies are worded in the cli, from these.

use std::io;

use super::btf::BtfError;

/// The oldest kernel that the probe runs on: its copy loop needs the helper `bpf_loop`.
pub const OLDEST_KERNEL: (u32, u32) = (5, 17);

/// The smallest ring buffer, in bytes: room for one record of the largest size.
pub const SMALLEST_RING: u32 = 64 * 1024;

/// See the module.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The probe knows the registers of x86-64 and arm64 only.
    #[error("the kernel probe does not know this processor's registers ({0})")]
    Architecture(&'static str),
    /// The kernel is older than [`OLDEST_KERNEL`].
    #[error(
        "kernel {0} is too old for the probe, which needs {major}.{minor}",
        major = OLDEST_KERNEL.0, minor = OLDEST_KERNEL.1
    )]
    KernelTooOld(String),
    /// `/sys/kernel/btf/vmlinux` cannot be read.
    #[error("cannot read the kernel's type information {path}")]
    NoBtf {
        /// The file.
        path: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The kernel's type information lacks something.
    #[error("cannot use the kernel's type information")]
    Btf(#[from] BtfError),
    /// The ring's size is no power of two of at least [`SMALLEST_RING`].
    #[error("a ring buffer of {0} bytes is no power of two of at least {SMALLEST_RING}")]
    RingSize(u32),
    /// The observer's pids are not the kernel's own.
    #[error(
        "the observer runs in a PID namespace of its own, where the kernel's pids mean nothing"
    )]
    PidNamespace,
    /// The kernel wants capabilities that this process lacks.
    #[error("the kernel refuses BPF to this process, which lacks {missing}")]
    NotPermitted {
        /// The capabilities that are missing, such as `CAP_BPF and CAP_PERFMON`.
        missing: String,
        /// The refusal.
        #[source]
        source: io::Error,
    },
    /// The kernel refuses BPF although the capabilities are there.
    #[error("the kernel refuses the program {program} to everybody (lockdown: {lockdown})")]
    Lockdown {
        /// The program.
        program: &'static str,
        /// The lockdown mode, as `/sys/kernel/security/lockdown` tells it; `unknown` where it
        /// cannot be read.
        lockdown: String,
        /// The refusal.
        #[source]
        source: io::Error,
    },
    /// The limit on locked memory is too low (kernels that account BPF memory to it).
    #[error("the limit on locked memory is too low for a ring buffer of {0} bytes")]
    MemoryLock(u32),
    /// The kernel's verifier rejects a program.
    #[error("the kernel's verifier rejects the program {program}")]
    Rejected {
        /// The program.
        program: &'static str,
        /// What the verifier said.
        log: String,
        /// The refusal.
        #[source]
        source: io::Error,
    },
    /// The object cannot be loaded for another reason.
    #[error("cannot load the probe")]
    Load(#[source] Box<aya::EbpfError>),
    /// A program cannot be loaded or attached for another reason.
    #[error("cannot attach the program {program}")]
    Attach {
        /// The program.
        program: &'static str,
        /// Why.
        #[source]
        source: Box<aya::programs::ProgramError>,
    },
    /// A map cannot be used.
    #[error("cannot {operation} the probe's map {map}")]
    Map {
        /// What was tried.
        operation: &'static str,
        /// The map.
        map: &'static str,
        /// Why.
        #[source]
        source: Box<aya::maps::MapError>,
    },
    /// The object lacks a program or map that this code expects: it was built from other sources.
    #[error("the embedded probe has no {0}")]
    Missing(&'static str),
    /// A system call of the reader itself failed.
    #[error("cannot {operation}")]
    Io {
        /// What was tried.
        operation: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
}
