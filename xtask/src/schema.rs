//! `cargo xtask schema`: the audit log's JSON Schema, from the Rust types into `docs/`.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

const FILE: &str = "docs/audit-log.schema.json";

/// Write the audit log's JSON Schema into docs/
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Compare with the committed file instead of writing it
    #[arg(long)]
    check: bool,
}

/// # Errors
/// Where the schema cannot be generated or written, or differs from the committed one.
pub(crate) fn run(args: &Args) -> Result<()> {
    let root = crate::root()?;
    // A program of its own: xtask must build while the observer does not.
    let output = Command::new(env!("CARGO"))
        .args([
            "run",
            "--quiet",
            "--package",
            "observer",
            "--example",
            "schema",
        ])
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    ensure!(output.status.success(), "the schema could not be generated");
    let path = root.join(FILE);
    if args.check {
        let committed = fs::read(&path).with_context(|| format!("cannot read {FILE}"))?;
        ensure!(
            committed == output.stdout,
            "{FILE} is out of date: run `cargo xtask schema`"
        );
        println!("{FILE} is up to date");
    } else {
        fs::write(&path, output.stdout).with_context(|| format!("cannot write {FILE}"))?;
        println!("wrote {FILE}");
    }
    Ok(())
}
