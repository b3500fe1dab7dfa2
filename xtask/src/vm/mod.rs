//! `cargo xtask vm`: the observer on stock kernels of Debian, each booted in QEMU without KVM.
//!
//! Owns what is tried and what is right. Where kernels come from is `package`'s; how one is booted,
//! and what it said, is `machine`'s.

mod machine;
mod package;
mod program;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use machine::{Answer, Machine, find};

/// Boot stock kernels of Debian in QEMU, and try the observer on each
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Whose kernels: Debian's suites [default: all that are known here]
    suites: Vec<String>,

    /// For which processor
    #[arg(long, value_enum, default_value = "x86_64")]
    machine: Machine,
}

/// A suite and what its kernel lets the probe do.
struct Suite {
    name: &'static str,
    /// Linux 5.17 or newer.
    takes_the_probe: bool,
}

const SUITES: [Suite; 5] = [
    suite("bullseye", false),
    suite("bookworm", true),
    suite("trixie", true),
    suite("sid", true),
    suite("trixie-backports", true),
];

const fn suite(name: &'static str, takes_the_probe: bool) -> Suite {
    Suite {
        name,
        takes_the_probe,
    }
}

/// What is run on a kernel, and what must come of it.
struct Check {
    name: &'static str,
    command: &'static str,
    /// Uses the probe, and so is refused where the kernel is too old.
    by_probe: bool,
}

const CHECKS: [Check; 5] = [
    check("doctor", "observer doctor --backend ebpf", true),
    check("demo", "observer demo --backend ebpf", true),
    check("auto", "observer demo", false),
    check("ptrace", "observer demo --backend ptrace", false),
    check("kernel tests", "kernel-tests --test-threads=1", true),
];

const fn check(name: &'static str, command: &'static str, by_probe: bool) -> Check {
    Check {
        name,
        command,
        by_probe,
    }
}

/// # Errors
/// Where a kernel cannot be had or booted, or something is not as it should be on one.
pub(crate) fn run(args: &Args) -> Result<()> {
    let root = crate::root()?;
    let chosen = choose(&args.suites)?;
    let programs = program::build(root, args.machine)?;
    let busybox = package::busybox(&folder(root, args.machine, "busybox"), args.machine)?;
    let mut rows = Vec::new();
    for suite in chosen {
        println!("{}:", suite.name);
        let began = Instant::now();
        let folder = folder(root, args.machine, suite.name);
        let kernel = package::kernel(&folder, args.machine, suite.name)?;
        println!("  Linux {}", kernel.release);
        let answers = machine::boot(args.machine, &kernel, &busybox, &programs, &CHECKS, &folder)?;
        let faults: Vec<_> = CHECKS
            .iter()
            .map(|check| fault(suite, check, &answers))
            .collect();
        for (check, fault) in CHECKS.iter().zip(&faults) {
            let verdict = fault.as_deref().unwrap_or("right");
            println!("  {:<14}{verdict}", check.name);
        }
        println!("  {} s", began.elapsed().as_secs());
        rows.push((kernel.release, faults));
    }
    print_table(&rows);
    let wrong = rows.iter().flat_map(|(_, faults)| faults).flatten().count();
    ensure!(wrong == 0, "{wrong} checks went wrong; see target/vm");
    Ok(())
}

fn folder(root: &Path, machine: Machine, name: &str) -> PathBuf {
    root.join("target/vm").join(machine.name()).join(name)
}

fn choose(named: &[String]) -> Result<Vec<&'static Suite>> {
    let known = SUITES.map(|suite| suite.name).join(", ");
    for name in named {
        ensure!(
            SUITES.iter().any(|suite| suite.name == name),
            "no suite {name} is known here; there are {known}"
        );
    }
    let chosen = |suite: &&Suite| named.is_empty() || named.iter().any(|name| name == suite.name);
    Ok(SUITES.iter().filter(chosen).collect())
}

/// What is wrong with an answer, if anything.
fn fault(suite: &Suite, check: &Check, answers: &[Answer]) -> Option<String> {
    let Some(answer) = find(answers, check.name) else {
        return Some("no answer".into());
    };
    if suite.takes_the_probe || !check.by_probe {
        return (answer.status != 0).then(|| format!("status {}", answer.status));
    }
    if answer.status == 0 {
        return Some("not refused".into());
    }
    (!answer.said.contains("needs 5.17")).then(|| "refused without its reason".into())
}

fn print_table(rows: &[(String, Vec<Option<String>>)]) {
    println!();
    print!("{:<28}", "kernel");
    for check in &CHECKS {
        print!("{:<14}", check.name);
    }
    println!();
    for (release, faults) in rows {
        print!("{release:<28}");
        for fault in faults {
            print!("{:<14}", fault.as_deref().unwrap_or("right"));
        }
        println!();
    }
}

/// An empty folder.
fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault_of(takes_the_probe: bool, by_probe: bool, status: i32, said: &str) -> Option<String> {
        let answers = [Answer {
            name: "it".into(),
            status,
            said: said.into(),
        }];
        fault(
            &suite("some", takes_the_probe),
            &check("it", "", by_probe),
            &answers,
        )
    }

    #[test]
    fn an_old_kernel_must_refuse_the_probe_and_say_why() {
        assert_eq!(fault_of(false, true, 4, "the probe needs 5.17"), None);
        assert!(fault_of(false, true, 4, "no").is_some());
        assert!(fault_of(false, true, 0, "needs 5.17").is_some());
        assert_eq!(fault_of(false, false, 0, ""), None);
    }

    #[test]
    fn elsewhere_everything_must_succeed() {
        assert_eq!(fault_of(true, true, 0, ""), None);
        assert!(fault_of(true, true, 101, "").is_some());
        assert!(fault(&SUITES[1], &CHECKS[0], &[]).is_some());
    }
}
