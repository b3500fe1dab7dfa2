//! Builds what runs inside: the observer and the kernel's tests, static.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::machine::Machine;

/// The programs, by the name that they have inside.
pub(super) type Programs = [(&'static str, PathBuf); 2];

pub(super) fn build(root: &Path, machine: Machine) -> Result<Programs> {
    Ok([
        (
            "observer",
            cargo(root, machine, &["build", "--bin"], "observer")?,
        ),
        (
            "kernel-tests",
            cargo(root, machine, &["test", "--no-run", "--test"], "kernel")?,
        ),
    ])
}

/// Builds the target of this name; its executable.
fn cargo(root: &Path, machine: Machine, words: &[&str], name: &str) -> Result<PathBuf> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(words)
        .arg(name)
        .args(["--locked", "--package", "observer", "--target"])
        .arg(machine.target())
        .args(["--message-format", "json-render-diagnostics"])
        .env("CARGO_ENCODED_RUSTFLAGS", "-Ctarget-feature=+crt-static")
        .envs(machine.linker())
        .current_dir(root)
        .stderr(Stdio::inherit());
    let output = cargo.output().context("cannot start cargo")?;
    ensure!(
        output.status.success(),
        "no static program for {}",
        machine.target()
    );
    let messages = String::from_utf8(output.stdout).context("cargo's messages are no text")?;
    let mut executables = messages.lines().filter_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        // Others that it needs itself are built as well.
        (message["target"]["name"] == name).then_some(())?;
        Some(PathBuf::from(message["executable"].as_str()?))
    });
    executables
        .next()
        .context("cargo names no executable that it built")
}
