//! What the kernel is and allows, as far as its files tell. Each check is a function of a file's
//! text, so that every kernel can be tested on any.

use std::fs;
use std::path::Path;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit};
use nix::time::{ClockId, clock_gettime};

use super::Check;
use crate::capture::ebpf::OLDEST_KERNEL;
use crate::capture::ptrace::Refusal;
use crate::cli::remedy;

const CAP_DAC_READ_SEARCH: u32 = 2;
const CAP_SYS_PTRACE: u32 = 19;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// The initial PID namespace: `PROC_PID_INIT_INO` of the kernel's `include/linux/proc_ns.h`.
const INITIAL_PID_NAMESPACE: &str = "pid:[4026531836]";

/// All checks, in the order in which one fault hides the next.
pub(super) fn checks() -> Vec<Check> {
    let capabilities = read("/proc/self/status")
        .as_deref()
        .and_then(effective)
        .unwrap_or(0);
    let namespace = fs::read_link("/proc/self/ns/pid");
    vec![
        kernel(
            read("/proc/sys/kernel/osrelease")
                .as_deref()
                .unwrap_or("unknown")
                .trim(),
        ),
        processor(std::env::consts::ARCH),
        type_information(Path::new("/sys/kernel/btf/vmlinux")),
        rights(capabilities),
        unprivileged(read("/proc/sys/kernel/unprivileged_bpf_disabled").as_deref()),
        lockdown(read("/sys/kernel/security/lockdown").as_deref()),
        pid_namespace(namespace.ok().as_deref()),
        locked_memory(
            getrlimit(Resource::RLIMIT_MEMLOCK)
                .ok()
                .map(|(soft, _)| soft),
        ),
        others(
            capabilities,
            read("/proc/sys/kernel/yama/ptrace_scope").as_deref(),
        ),
        clock(),
    ]
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

fn kernel(release: &str) -> Check {
    let (major, minor) = OLDEST_KERNEL;
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(a)), Some(Ok(b))) if (a, b) < OLDEST_KERNEL => Check::bad(
            "kernel",
            format!("{release} is too old"),
            Some(format!("boot Linux {major}.{minor} or newer")),
        ),
        _ => Check::good(
            "kernel",
            format!("{release}; the probe needs {major}.{minor} or newer"),
        ),
    }
}

fn processor(arch: &str) -> Check {
    match arch {
        "x86_64" | "aarch64" => Check::good("processor", arch),
        _ => Check::bad(
            "processor",
            format!("{arch} is not known to the probe"),
            None,
        ),
    }
}

fn type_information(path: &Path) -> Check {
    const TOPIC: &str = "BTF";
    let remedy =
        "boot a kernel that is built with CONFIG_DEBUG_INFO_BTF=y; in a container, mount /sys";
    match fs::metadata(path) {
        Ok(file) => {
            let size = file.len().div_ceil(1 << 20);
            Check::good(TOPIC, format!("{}, {size} MiB", path.display()))
        }
        Err(error) => Check::bad(
            TOPIC,
            format!("{}: {error}", path.display()),
            Some(remedy.into()),
        ),
    }
}

/// The effective capabilities, of `/proc/PID/status`.
fn effective(status: &str) -> Option<u64> {
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

fn has(capabilities: u64, capability: u32) -> bool {
    capabilities >> capability & 1 == 1
}

fn rights(capabilities: u64) -> Check {
    const TOPIC: &str = "rights";
    if has(capabilities, CAP_BPF) && has(capabilities, CAP_PERFMON) {
        return Check::good(TOPIC, "CAP_BPF and CAP_PERFMON");
    }
    if has(capabilities, CAP_SYS_ADMIN) {
        return Check::good(
            TOPIC,
            "CAP_SYS_ADMIN, which stands for CAP_BPF and CAP_PERFMON",
        );
    }
    Check::bad(
        TOPIC,
        "without CAP_BPF and CAP_PERFMON no probe can be loaded",
        Some(remedy::permission()),
    )
}

fn unprivileged(setting: Option<&str>) -> Check {
    const TOPIC: &str = "BPF";
    match setting.map(str::trim) {
        None => Check::good(TOPIC, "the kernel does not say who may use it"),
        Some("0") => Check::good(TOPIC, "for everybody, where it is no tracing"),
        Some(_) => Check::good(TOPIC, "for those with CAP_BPF only"),
    }
}

/// `[none] integrity confidentiality`, the chosen one in brackets.
fn lockdown(modes: Option<&str>) -> Check {
    const TOPIC: &str = "lockdown";
    let chosen = modes
        .and_then(|modes| modes.split_once('[')?.1.split_once(']'))
        .map(|(mode, _)| mode);
    match chosen {
        None => Check::good(TOPIC, "none that is known of"),
        Some("none") => Check::good(TOPIC, "none"),
        Some("integrity") => Check::good(
            TOPIC,
            "integrity: forbids some hooks that the probe does without",
        ),
        Some(mode) => Check::bad(
            TOPIC,
            format!("{mode}: BPF may not read the kernel's memory"),
            Some("boot with lockdown=none or lockdown=integrity, or without Secure Boot".into()),
        ),
    }
}

fn pid_namespace(link: Option<&Path>) -> Check {
    const TOPIC: &str = "PID namespace";
    match link.and_then(Path::to_str) {
        Some(INITIAL_PID_NAMESPACE) => Check::good(TOPIC, "the machine's own"),
        None => Check::good(TOPIC, "unknown"),
        Some(_) => Check::bad(
            TOPIC,
            "a container's, where the kernel's pids mean nothing",
            Some("run it outside the container, or start the container with --pid=host".into()),
        ),
    }
}

fn locked_memory(limit: Option<u64>) -> Check {
    const TOPIC: &str = "locked memory";
    match limit {
        Some(libc::RLIM_INFINITY) => Check::good(TOPIC, "no limit"),
        Some(limit) => {
            let kib = limit >> 10;
            Check::good(
                TOPIC,
                format!("limited to {kib} KiB, which BPF does not count against since Linux 5.11"),
            )
        }
        None => Check::good(TOPIC, "limit unknown"),
    }
}

/// Looking into other users' processes, which `attach` and `watch` do.
fn others(capabilities: u64, ptrace_scope: Option<&str>) -> Check {
    const TOPIC: &str = "/proc";
    let scope = ptrace_scope.map_or("none", str::trim);
    if has(capabilities, CAP_SYS_PTRACE) {
        let by = match has(capabilities, CAP_DAC_READ_SEARCH) {
            true => "CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH",
            false => "CAP_SYS_PTRACE",
        };
        return Check::good(
            TOPIC,
            format!("{by}; Yama's ptrace_scope ({scope}) does not matter to the probe"),
        );
    }
    Check::limit(
        TOPIC,
        "without CAP_SYS_PTRACE attach and watch know only what your own processes hold open",
        Some(remedy::permission()),
    )
}

/// What Yama lets be attached to, where `run` can trace what it starts.
pub(super) fn ptrace(seen: &str) -> Check {
    let capabilities = read("/proc/self/status")
        .as_deref()
        .and_then(effective)
        .unwrap_or(0);
    attach(
        seen,
        capabilities,
        read("/proc/sys/kernel/yama/ptrace_scope").as_deref(),
    )
}

fn attach(seen: &str, capabilities: u64, ptrace_scope: Option<&str>) -> Check {
    const TOPIC: &str = "ptrace";
    let whom = match has(capabilities, CAP_SYS_PTRACE) {
        true => "everybody's",
        false => "your own",
    };
    match (
        ptrace_scope.map(str::trim),
        has(capabilities, CAP_SYS_PTRACE),
    ) {
        (None | Some("0"), _) | (Some("1" | "2"), true) => {
            Check::good(TOPIC, format!("{seen}; attach may trace {whom} processes"))
        }
        (Some(scope), _) => Check::limit(
            TOPIC,
            format!("{seen}; attach may trace nobody (kernel.yama.ptrace_scope is {scope})"),
            remedy::of_refusal(match scope {
                "2" => Refusal::YamaAdminOnly,
                "3" => Refusal::YamaNobody,
                _ => Refusal::YamaChildrenOnly,
            }),
        ),
    }
}

fn clock() -> Check {
    let read = |clock| clock_gettime(clock).map(Duration::from).unwrap_or_default();
    let asleep = read(ClockId::CLOCK_BOOTTIME).saturating_sub(read(ClockId::CLOCK_MONOTONIC));
    let text = match asleep.as_secs() {
        0 => "CLOCK_MONOTONIC; the machine has not been suspended since it booted".into(),
        seconds => {
            format!("CLOCK_MONOTONIC; the machine was suspended for {seconds} s since it booted")
        }
    };
    Check::good("clock", text)
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn an_old_kernel_is_a_fault() {
        for release in ["5.16.20", "4.19.0-27-amd64", "5.4.0-42-generic"] {
            assert_eq!(kernel(release).state, State::Bad, "{release}");
        }
        for release in ["5.17", "6.1.0-57-cloud-amd64", "10.0", "unknown"] {
            assert_eq!(kernel(release).state, State::Good, "{release}");
        }
    }

    #[test]
    fn rights_are_read_from_the_mask() {
        let status = "Name:\tx\nCapEff:\t000000c000000000\nSeccomp:\t0\n";
        let mask = effective(status).unwrap();
        assert_eq!(rights(mask).state, State::Good);
        assert_eq!(others(mask, Some("1\n")).state, State::Limit);
        assert_eq!(rights(1 << CAP_BPF).state, State::Bad);
        assert_eq!(rights(1 << CAP_SYS_ADMIN).state, State::Good);
        assert_eq!(others(u64::MAX, None).state, State::Good);
        assert_eq!(effective("Name:\tx\n"), None);
    }

    #[test]
    fn yama_limits_those_without_rights() {
        let state = |capabilities, scope| attach("seen", capabilities, scope).state;
        assert_eq!(state(0, None), State::Good);
        assert_eq!(state(0, Some("0\n")), State::Good);
        for scope in ["1\n", "2\n"] {
            assert_eq!(state(0, Some(scope)), State::Limit);
            assert_eq!(state(1 << CAP_SYS_PTRACE, Some(scope)), State::Good);
        }
        assert_eq!(state(u64::MAX, Some("3\n")), State::Limit);
    }

    #[test]
    fn only_confidentiality_locks_the_probe_out() {
        for (modes, state) in [
            (None, State::Good),
            (Some("[none] integrity confidentiality\n"), State::Good),
            (Some("none [integrity] confidentiality\n"), State::Good),
            (Some("none integrity [confidentiality]\n"), State::Bad),
        ] {
            assert_eq!(lockdown(modes).state, state, "{modes:?}");
        }
    }

    #[test]
    fn a_container_is_a_fault() {
        assert_eq!(
            pid_namespace(Some(Path::new("pid:[4026532201]"))).state,
            State::Bad
        );
        assert_eq!(
            pid_namespace(Some(Path::new(INITIAL_PID_NAMESPACE))).state,
            State::Good
        );
    }

    #[test]
    fn a_missing_file_is_named() {
        let check = type_information(Path::new("/nonexistent/btf"));
        assert_eq!(check.state, State::Bad);
        assert!(
            check.text.starts_with("/nonexistent/btf: "),
            "{}",
            check.text
        );
    }
}
