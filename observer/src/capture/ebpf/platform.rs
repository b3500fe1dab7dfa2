//! What the running kernel is and allows, from `/proc` and `/sys`.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::error::{OLDEST_KERNEL, ProbeError};

const BTF_PATH: &str = "/sys/kernel/btf/vmlinux";

/// The initial PID namespace: `PROC_PID_INIT_INO` of `include/linux/proc_ns.h`.
const INITIAL_PID_NAMESPACE: &str = "pid:[4026531836]";

const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// The kernel's type information.
pub(super) fn kernel_btf() -> Result<Vec<u8>, ProbeError> {
    fs::read(BTF_PATH).map_err(|source| ProbeError::NoBtf {
        path: BTF_PATH,
        source,
    })
}

/// Refuses a kernel that is too old. One whose release cannot be read is given a try.
pub(super) fn check_kernel() -> Result<(), ProbeError> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    match version(&release) {
        Some(version) if version < OLDEST_KERNEL => {
            Err(ProbeError::KernelTooOld(release.trim().into()))
        }
        _ => Ok(()),
    }
}

/// Whether the kernel may take the CPU from the program of a raw tracepoint. Since Linux 7.0
/// (f7d327654b88, "bpf: Have `__bpf_trace_run()` use `rcu_read_lock_dont_migrate()`") it does, and
/// skips the program for all others on that CPU meanwhile. Programs of events are spared
/// (16718274ee75, "tracing: perf: Have perf tracepoint callbacks always disable preemption").
pub(super) fn preempts_raw_tracepoints() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    version(&release).is_some_and(|version| version >= (7, 0))
}

/// Refuses to run where the observer's pids are not those that the kernel reports.
pub(super) fn check_pid_namespace() -> Result<(), ProbeError> {
    match fs::read_link("/proc/self/ns/pid") {
        Ok(namespace) if namespace.as_os_str() != INITIAL_PID_NAMESPACE => {
            Err(ProbeError::PidNamespace)
        }
        _ => Ok(()),
    }
}

/// The first two numbers of a kernel's release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// The capabilities that loading takes and this process lacks; `None` where it has them all.
pub(super) fn missing_capabilities() -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))?;
    missing_of(u64::from_str_radix(effective.trim(), 16).ok()?)
}

fn missing_of(effective: u64) -> Option<String> {
    let has = |capability: u32| effective >> capability & 1 == 1;
    if has(CAP_SYS_ADMIN) {
        return None;
    }
    let wanted = [(CAP_BPF, "CAP_BPF"), (CAP_PERFMON, "CAP_PERFMON")];
    let missing: Vec<_> = wanted
        .iter()
        .filter(|(capability, _)| !has(*capability))
        .map(|(_, name)| *name)
        .collect();
    (!missing.is_empty()).then(|| missing.join(" and "))
}

/// The kernel's lockdown mode, such as `integrity`.
pub(super) fn lockdown() -> String {
    let modes = fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    let chosen = modes
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    chosen.map_or("unknown", |(mode, _)| mode).into()
}

/// How often the kernel skipped this program (`recursion_misses`, since 5.12); 0 where it does
/// not say.
pub(super) fn missed_runs(program: BorrowedFd<'_>) -> u64 {
    let info: io::Result<String> =
        fs::read_to_string(format!("/proc/self/fdinfo/{}", program.as_raw_fd()));
    info.ok().as_deref().and_then(parse_misses).unwrap_or(0)
}

fn parse_misses(info: &str) -> Option<u64> {
    info.lines()
        .find_map(|line| line.strip_prefix("recursion_misses:"))?
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_read_whatever_follows_the_numbers() {
        assert_eq!(version("6.18.44-fc-v595\n"), Some((6, 18)));
        assert_eq!(version("5.4.0-42-generic"), Some((5, 4)));
        assert_eq!(version("6.1"), Some((6, 1)));
        assert_eq!(version(""), None);
        assert!(version("5.16.20").unwrap() < OLDEST_KERNEL);
        assert!(version("5.17.0").unwrap() >= OLDEST_KERNEL);
        assert!(version("10.0").unwrap() >= OLDEST_KERNEL);
    }

    #[test]
    fn missing_capabilities_are_named() {
        assert_eq!(missing_of(1 << CAP_SYS_ADMIN), None);
        assert_eq!(missing_of(1 << CAP_BPF | 1 << CAP_PERFMON), None);
        assert_eq!(missing_of(1 << CAP_BPF).as_deref(), Some("CAP_PERFMON"));
        assert_eq!(missing_of(0).as_deref(), Some("CAP_BPF and CAP_PERFMON"));
    }

    #[test]
    fn misses_are_found_in_fdinfo() {
        let info = "pos:\t0\nprog_type:\t17\nrecursion_misses:\t12\n";
        assert_eq!(parse_misses(info), Some(12));
        assert_eq!(parse_misses("pos:\t0\n"), None);
    }
}
