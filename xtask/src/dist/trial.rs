//! What was built is tried: where there is nothing but it, as it is installed, and in the kernel.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context as _, Result, ensure};

use super::{Dist, VERSION, succeed};

/// A log whose verdict is known: the exit code of `check` is 1.
const LOG: &str = "observer/tests/traces/made/codex-0.163-retry.jsonl";

pub(super) fn run(dist: &Dist, archive: &Path, package: &Path) -> Result<()> {
    let folder = dist.folder.join("trial");
    program_needs_no_library(&dist.program())?;
    in_an_empty_root(dist, &folder.join("empty"))?;
    from_the_archive(dist, archive, &folder.join("archive"))?;
    from_the_package(package, &folder.join("package"))?;
    in_the_kernel(dist)?;
    fs::remove_dir_all(&folder).context("cannot remove target/dist/trial")
}

fn program_needs_no_library(program: &Path) -> Result<()> {
    let bytes = fs::read(program).context("cannot read the program")?;
    let interpreter = b"/ld-linux";
    let named = bytes
        .windows(interpreter.len())
        .any(|part| part == interpreter);
    let output = Command::new(program)
        .arg("--version")
        .env("LD_TRACE_LOADED_OBJECTS", "1")
        .output()
        .context("cannot start the program")?;
    // A loader would list the libraries instead of starting it.
    ensure!(
        text(&output).trim() == format!("observer {VERSION}"),
        "it is not static{}: {}",
        if named { ", and names a loader" } else { "" },
        text(&output)
    );
    Ok(())
}

/// A root with the program and a log in it, and no library.
fn in_an_empty_root(dist: &Dist, root: &Path) -> Result<()> {
    if !is_root()? {
        println!("skipped: only root can try the program in an empty root");
        return Ok(());
    }
    fs::create_dir_all(root).context("cannot create a root")?;
    fs::copy(dist.program(), root.join("observer")).context("cannot copy the program")?;
    fs::copy(dist.root.join(LOG), root.join("log.jsonl")).context("cannot copy a log")?;
    let output = Command::new("chroot")
        .arg(root)
        .args(["/observer", "check", "/log.jsonl"])
        .output()
        .context("cannot start chroot")?;
    ensure!(
        output.status.code() == Some(1),
        "check in an empty root: {}",
        text(&output)
    );
    Ok(())
}

fn from_the_archive(dist: &Dist, archive: &Path, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).context("cannot create a folder")?;
    succeed(
        Command::new("tar")
            .arg("-xzf")
            .arg(archive)
            .arg("-C")
            .arg(folder),
    )?;
    let inside = folder.join(dist.name());
    for file in [
        "observer",
        "man/observer.1",
        "man/observer-run.1",
        "LICENSE",
    ] {
        ensure!(inside.join(file).is_file(), "the archive lacks {file}");
    }
    let completion = inside.join("completions/observer.bash");
    let output = Command::new("bash")
        .arg("-c")
        .arg("source \"$0\" && complete -p observer")
        .arg(&completion)
        .output()
        .context("cannot start bash")?;
    ensure!(
        output.status.success(),
        "the completions for bash: {}",
        text(&output)
    );
    Ok(())
}

/// Installs it into a root of its own, as dpkg does.
fn from_the_package(package: &Path, root: &Path) -> Result<()> {
    if !is_root()? {
        println!("skipped: only root can install the package");
        return Ok(());
    }
    let database = root.join("var/lib/dpkg");
    for folder in ["info", "updates"] {
        fs::create_dir_all(database.join(folder)).context("cannot create a root")?;
    }
    fs::write(database.join("status"), "").context("cannot create a root")?;
    let mut dpkg = Command::new("dpkg");
    dpkg.arg(format!("--root={}", root.display()))
        .args(["--force-script-chrootless", "--install"])
        .arg(package)
        .stdout(std::process::Stdio::null());
    succeed(&mut dpkg)?;
    let installed: Vec<PathBuf> = [
        "usr/bin/observer",
        "usr/share/man/man1/observer.1.gz",
        "usr/share/man/man1/observer-report.1.gz",
        "usr/share/bash-completion/completions/observer",
        "usr/share/doc/observer/copyright",
    ]
    .iter()
    .map(|file| root.join(file))
    .collect();
    for file in &installed {
        ensure!(file.is_file(), "the package lacks {}", file.display());
    }
    let output = Command::new(&installed[0])
        .arg("--version")
        .output()
        .context("cannot start the installed program")?;
    ensure!(
        output.status.success(),
        "the installed program: {}",
        text(&output)
    );
    Ok(())
}

/// The static program watches as the other one does.
fn in_the_kernel(dist: &Dist) -> Result<()> {
    if !is_root()? || !Path::new("/sys/kernel/btf/vmlinux").exists() {
        println!("skipped: nothing can be watched here");
        return Ok(());
    }
    let output = Command::new(dist.program())
        .arg("doctor")
        .output()
        .context("cannot start the program")?;
    ensure!(output.status.success(), "doctor: {}", text(&output));
    Ok(())
}

fn is_root() -> Result<bool> {
    let output = Command::new("id")
        .arg("-u")
        .output()
        .context("cannot start id")?;
    Ok(output.stdout.trim_ascii() == b"0")
}

fn text(output: &Output) -> String {
    let all = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    String::from_utf8_lossy(&all).into_owned()
}
