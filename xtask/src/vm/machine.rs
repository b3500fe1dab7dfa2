//! Boots a kernel in QEMU with all that is tried packed into its initramfs, and reads from its serial
//! line what came of it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};

use super::package::Kernel;
use super::program::Programs;
use super::{Check, empty};
use crate::dist::succeed;

/// Runs before everything else inside; `@CHECKS@` stands for a line for each check.
const INIT: &str = include_str!("init.sh");

/// Nothing inside takes so long, in seconds; what does is stuck.
const LONGEST: &str = "1500";

/// The processors that the probe knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Machine {
    #[value(name = "x86_64")]
    X86,
    #[value(name = "aarch64")]
    Arm,
}

impl Machine {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::X86 => "x86_64",
            Self::Arm => "aarch64",
        }
    }

    /// Debian's name.
    pub(super) const fn debian(self) -> &'static str {
        match self {
            Self::X86 => "amd64",
            Self::Arm => "arm64",
        }
    }

    pub(super) fn target(self) -> String {
        format!("{}-unknown-linux-gnu", self.name())
    }

    /// The linker for another processor's programs, as cargo is told of it.
    pub(super) fn linker(self) -> Option<(&'static str, &'static str)> {
        let foreign = self.name() != std::env::consts::ARCH;
        foreign.then_some(match self {
            Self::X86 => (
                "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER",
                "x86_64-linux-gnu-gcc",
            ),
            Self::Arm => (
                "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER",
                "aarch64-linux-gnu-gcc",
            ),
        })
    }

    fn emulator(self) -> Command {
        let mut qemu = Command::new("timeout");
        qemu.arg(LONGEST)
            .arg(format!("qemu-system-{}", self.name()))
            .args(["-accel", "tcg", "-cpu", "max", "-smp", "2", "-m", "2048"])
            .args(["-nographic", "-no-reboot"]);
        if self == Self::Arm {
            qemu.args(["-machine", "virt"]);
        }
        qemu
    }

    const fn console(self) -> &'static str {
        match self {
            Self::X86 => "ttyS0",
            Self::Arm => "ttyAMA0",
        }
    }
}

/// What came of a check.
pub(super) struct Answer {
    pub(super) name: String,
    pub(super) status: i32,
    pub(super) said: String,
}

/// The answer to the check of this name.
pub(super) fn find<'a>(answers: &'a [Answer], name: &str) -> Option<&'a Answer> {
    answers.iter().find(|answer| answer.name == name)
}

/// Boots, and waits for the end of the machine. All that it said is kept as `console.log`.
pub(super) fn boot(
    machine: Machine,
    kernel: &Kernel,
    busybox: &Path,
    programs: &Programs,
    checks: &[Check],
    folder: &Path,
) -> Result<Vec<Answer>> {
    let tree = folder.join("initramfs");
    furnish(&tree, kernel, busybox, checks)?;
    for (name, from) in programs {
        // Without what only a debugger reads: all of it is held in the machine's memory.
        let mut strip = Command::new(format!("{}-linux-gnu-objcopy", machine.name()));
        strip.arg("--strip-debug").arg(from);
        succeed(strip.arg(tree.join("bin").join(name)))?;
    }
    let archive = folder.join("initramfs.cpio");
    let mut pack = Command::new("sh");
    pack.arg("-c")
        .arg("find . | cpio --quiet --create --format=newc --owner=0:0 >\"$0\"")
        .arg(&archive)
        .current_dir(&tree);
    succeed(&mut pack)?;
    // Into files, so that one can look on.
    let console = folder.join("console.log");
    let open = |path: &Path| {
        fs::File::create(path).with_context(|| format!("cannot create {}", path.display()))
    };
    let mut qemu = machine.emulator();
    qemu.arg("-kernel").arg(&kernel.image);
    qemu.arg("-initrd").arg(&archive);
    qemu.arg("-append")
        .arg(format!("console={} quiet panic=-1", machine.console()))
        .stdin(Stdio::null())
        .stdout(open(&console)?)
        .stderr(open(&folder.join("qemu.log"))?);
    // Of a machine that was ended for its time the answers tell which check it was.
    qemu.status().context("cannot start QEMU")?;
    let said = fs::read(&console).context("cannot read console.log")?;
    let said = String::from_utf8_lossy(&said).replace('\r', "");
    Ok(answers(&said))
}

/// Lays out the root that the kernel starts with.
fn furnish(tree: &Path, kernel: &Kernel, busybox: &Path, checks: &[Check]) -> Result<()> {
    empty(tree)?;
    fs::create_dir(tree.join("bin")).context("cannot create a folder")?;
    let lines = checks
        .iter()
        .map(|check| format!("check '{}' {}\n", check.name, check.command));
    let init = tree.join("init");
    fs::write(
        &init,
        INIT.replace("@CHECKS@\n", &lines.collect::<String>()),
    )
    .context("cannot write init")?;
    fs::set_permissions(&init, fs::Permissions::from_mode(0o755)).context("cannot set a mode")?;
    let copies = [
        ("bin/busybox", busybox),
        ("unix_diag.ko", kernel.module.as_path()),
    ];
    for (to, from) in copies {
        fs::copy(from, tree.join(to)).with_context(|| format!("cannot copy {}", from.display()))?;
    }
    Ok(())
}

/// The answers between the lines that `init.sh` puts around each.
fn answers(said: &str) -> Vec<Answer> {
    let mut answers = Vec::new();
    for part in said.split("@@ begin ").skip(1) {
        let Some((name, rest)) = part.split_once('\n') else {
            continue;
        };
        let Some((said, end)) = rest.rsplit_once("@@ end ") else {
            continue;
        };
        let status = end.lines().next().unwrap_or_default().trim().parse();
        if let Ok(status) = status {
            answers.push(Answer {
                name: name.trim().into(),
                status,
                said: said.into(),
            });
        }
    }
    answers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_what_stands_between_the_marks() {
        let said =
            "boot\n@@ begin a b\none\ntwo\n@@ end 0\n@@ begin c\n@@ end 4\n@@ begin cut\nsome";
        let answers = answers(said);
        let told: Vec<_> = answers
            .iter()
            .map(|answer| (&*answer.name, answer.status, &*answer.said))
            .collect();
        assert_eq!(told, [("a b", 0, "one\ntwo\n"), ("c", 4, "")]);
    }
}
