//! `cargo xtask pictures`: the pictures of the live view in `docs/pictures`, drawn from traces.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

const FOLDER: &str = "docs/pictures";

/// Draw the pictures of the live view that the documentation shows
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Compare with the committed pictures instead of writing them
    #[arg(long)]
    check: bool,
}

/// # Errors
/// Where the pictures cannot be drawn or written, or differ from the committed ones.
pub(crate) fn run(args: &Args) -> Result<()> {
    let root = crate::root()?;
    let committed = root.join(FOLDER);
    let drawn = if args.check {
        root.join("target/pictures")
    } else {
        committed.clone()
    };
    fs::create_dir_all(&drawn).with_context(|| format!("cannot create {}", drawn.display()))?;
    // A program of its own: xtask must build while the observer does not.
    let status = Command::new(env!("CARGO"))
        .args([
            "run",
            "--quiet",
            "--package",
            "observer",
            "--example",
            "pictures",
            "--",
        ])
        .arg(&drawn)
        .current_dir(root)
        .status()
        .context("cannot start cargo")?;
    ensure!(status.success(), "the pictures could not be drawn");
    if !args.check {
        println!("wrote {FOLDER}");
        return Ok(());
    }
    for entry in fs::read_dir(&drawn).context("cannot list the pictures")? {
        let path = entry.context("cannot list the pictures")?.path();
        let name = path.file_name().context("a picture has no name")?;
        let same = fs::read(committed.join(name)).ok() == fs::read(&path).ok();
        ensure!(
            same,
            "{FOLDER}/{} is out of date: run `cargo xtask pictures`",
            name.display()
        );
    }
    println!("{FOLDER} is up to date");
    Ok(())
}
