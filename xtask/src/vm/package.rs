//! Kernels and a shell, from Debian's packages: taken by apt from wherever this machine's own come
//! from, unpacked below `target/vm`, never installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::empty;
use super::machine::Machine;

/// The suite whose busybox is taken.
const SUITE_OF_BUSYBOX: &str = "bookworm";

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A kernel, unpacked.
pub(super) struct Kernel {
    pub(super) release: String,
    pub(super) image: PathBuf,
    /// `unix_diag`, which a distribution's kernel loads when it is asked for sockets' peers.
    pub(super) module: PathBuf,
}

/// The newest kernel for virtual machines of a suite.
pub(super) fn kernel(folder: &Path, machine: Machine, suite: &str) -> Result<Kernel> {
    let apt = Apt::of(folder, machine, suite)?;
    let metapackage = format!("linux-image-cloud-{}", machine.debian());
    let image = apt
        .depends(&metapackage)?
        .into_iter()
        .find(|name| name.starts_with("linux-image-"))
        .with_context(|| format!("{suite} has no {metapackage}"))?;
    let release = image.trim_start_matches("linux-image-").to_owned();
    // Since Linux 7, image and modules are packages of their own, which the old name depends on.
    let parts = apt
        .depends(&image)?
        .into_iter()
        .filter(|name| name.starts_with("linux-binary-") || name.starts_with("linux-modules-"));
    let tree = apt.unpack(std::iter::once(image.clone()).chain(parts))?;
    let module = plain(&find(&tree, "*/unix_diag.ko*")?)?;
    Ok(Kernel {
        release,
        image: find(&tree, "*/vmlinuz*")?,
        module,
    })
}

/// A shell and all that goes with it, in one static file.
pub(super) fn busybox(folder: &Path, machine: Machine) -> Result<PathBuf> {
    let apt = Apt::of(folder, machine, SUITE_OF_BUSYBOX)?;
    let tree = apt.unpack(["busybox-static".to_owned()])?;
    find(&tree, "*/bin/busybox")
}

/// apt with lists and sources of its own.
struct Apt {
    folder: PathBuf,
    options: Vec<String>,
}

impl Apt {
    fn of(folder: &Path, machine: Machine, suite: &str) -> Result<Self> {
        let shown = folder.display();
        for name in ["lists/partial", "cache/archives/partial", "packages"] {
            fs::create_dir_all(folder.join(name))
                .with_context(|| format!("cannot create {shown}/{name}"))?;
        }
        let sources = format!("deb [signed-by={KEYRING}] {} {suite} main\n", archive()?);
        fs::write(folder.join("sources.list"), sources).context("cannot write apt's sources")?;
        let (architecture, folder) = (machine.debian(), folder.to_owned());
        let options = [
            format!("Dir::Etc::SourceList={shown}/sources.list"),
            "Dir::Etc::SourceParts=/dev/null".into(),
            format!("Dir::State::Lists={shown}/lists"),
            format!("Dir::Cache={shown}/cache"),
            format!("APT::Architecture={architecture}"),
            format!("APT::Architectures={architecture}"),
            // As root, apt would download as a user that cannot write here.
            "APT::Sandbox::User=root".into(),
            // Only what names packages.
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".into(),
            "Acquire::Languages=none".into(),
        ];
        let apt = Self {
            folder,
            options: options.into(),
        };
        apt.run("apt-get", &["-q", "update"])?;
        Ok(apt)
    }

    /// What a package depends on, by name.
    fn depends(&self, package: &str) -> Result<Vec<String>> {
        let text = self.run("apt-cache", &["depends", package])?;
        let names = text.lines().filter_map(|line| {
            line.trim()
                .trim_start_matches('|')
                .strip_prefix("Depends: ")
        });
        Ok(names.map(str::to_owned).collect())
    }

    /// Downloads packages, and gives the folder with what is in them all.
    fn unpack(&self, packages: impl IntoIterator<Item = String>) -> Result<PathBuf> {
        let packages: Vec<String> = packages.into_iter().collect();
        let words: Vec<&str> = ["-q", "download"]
            .into_iter()
            .chain(packages.iter().map(String::as_str))
            .collect();
        empty(&self.folder.join("packages"))?;
        self.run("apt-get", &words)?;
        let tree = self.folder.join("tree");
        empty(&tree)?;
        for entry in fs::read_dir(self.folder.join("packages")).context("cannot list packages")? {
            let package = entry.context("cannot list packages")?.path();
            let mut dpkg = Command::new("dpkg-deb");
            output(dpkg.arg("--extract").arg(package).arg(&tree))?;
        }
        Ok(tree)
    }

    fn run(&self, program: &str, words: &[&str]) -> Result<String> {
        let mut command = Command::new(program);
        for option in &self.options {
            command.args(["-o", option]);
        }
        output(
            command
                .args(words)
                .current_dir(self.folder.join("packages")),
        )
    }
}

/// Where this machine has Debian's packages from.
fn archive() -> Result<String> {
    let mut apt = Command::new("apt-get");
    let targets = output(apt.args([
        "indextargets",
        "--format",
        "$(REPO_URI)",
        "Created-By: Packages",
        "Label: Debian",
    ]))?;
    let first = targets.lines().next().map(str::to_owned);
    first.context("apt knows no archive of Debian; run apt-get update")
}

/// The first file of a tree whose path fits a pattern.
fn find(tree: &Path, pattern: &str) -> Result<PathBuf> {
    let mut find = Command::new("find");
    let found = output(find.arg(tree).args(["-type", "f", "-path", pattern]))?;
    let first = found.lines().next().map(PathBuf::from);
    first.with_context(|| format!("no {pattern} in {}", tree.display()))
}

/// A file that may be packed by xz, as it is without.
fn plain(path: &Path) -> Result<PathBuf> {
    if path.extension().is_none_or(|extension| extension != "xz") {
        return Ok(path.into());
    }
    output(
        Command::new("xz")
            .args(["--decompress", "--force"])
            .arg(path),
    )?;
    Ok(path.with_extension(""))
}

fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .with_context(|| format!("cannot start {name}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name} failed: {}", said.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
