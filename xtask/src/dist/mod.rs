//! `cargo xtask dist`: what a user installs, in `target/dist`.
//!
//! A static program for this machine's Linux, its manual pages and shell completions, all of them in
//! a tar archive and in a Debian package. Each is tried out before it counts.

mod deb;
mod trial;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

/// What the package has its version from.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Build a static program, manual pages, completions, a tar archive and a .deb into target/dist
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Leave out the trial of what was built
    #[arg(long)]
    untried: bool,
}

/// Where everything is.
pub(crate) struct Dist {
    root: PathBuf,
    folder: PathBuf,
    /// `x86_64` or `aarch64`.
    machine: &'static str,
}

/// # Errors
/// Where something cannot be built, or does not work.
pub(crate) fn run(args: &Args) -> Result<()> {
    let root = crate::root()?;
    ensure!(cfg!(target_os = "linux"), "only Linux has a package");
    let dist = Dist {
        root: root.into(),
        folder: root.join("target/dist"),
        machine: std::env::consts::ARCH,
    };
    if dist.folder.exists() {
        fs::remove_dir_all(&dist.folder).context("cannot empty target/dist")?;
    }
    fs::create_dir_all(&dist.folder).context("cannot create target/dist")?;
    dist.build_program()?;
    dist.write_pages()?;
    let archive = dist.pack_archive()?;
    let package = deb::pack(&dist)?;
    if !args.untried {
        trial::run(&dist, &archive, &package)?;
    }
    for path in [&dist.program(), &archive, &package] {
        let bytes = fs::metadata(path)
            .context("cannot look at the result")?
            .len();
        println!(
            "{:>9} kB  {}",
            bytes / 1_000,
            path.strip_prefix(root)?.display()
        );
    }
    Ok(())
}

impl Dist {
    /// The static program.
    pub(crate) fn program(&self) -> PathBuf {
        self.folder.join("observer")
    }

    /// `observer-0.1.0-x86_64-linux`.
    pub(crate) fn name(&self) -> String {
        format!("observer-{VERSION}-{}-linux", self.machine)
    }

    /// glibc finds users in files without any shared library since 2.34; what this machine's own
    /// directory services (LDAP) know beyond that is not asked.
    fn build_program(&self) -> Result<()> {
        let target = format!("{}-unknown-linux-gnu", self.machine);
        let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
        let home = home
            .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))
            .context("neither CARGO_HOME nor HOME is set")?;
        // No path of the machine that builds it.
        let flags = [
            "-C".to_owned(),
            "target-feature=+crt-static".to_owned(),
            "-C".to_owned(),
            "strip=debuginfo".to_owned(),
            format!("--remap-path-prefix={}=.", self.root.display()),
            format!("--remap-path-prefix={}=cargo", home.display()),
        ];
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args([
                "build",
                "--locked",
                "--release",
                "--package",
                "observer",
                "--target",
                &target,
            ])
            .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
            .current_dir(&self.root);
        succeed(&mut cargo)?;
        let built = self.root.join(format!("target/{target}/release/observer"));
        fs::copy(&built, self.program())
            .with_context(|| format!("cannot copy {}", built.display()))?;
        Ok(())
    }

    /// By a program of its own: xtask must build while the observer does not.
    fn write_pages(&self) -> Result<()> {
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args([
                "run",
                "--locked",
                "--quiet",
                "--package",
                "observer",
                "--example",
                "pages",
                "--",
            ])
            .arg(&self.folder)
            .current_dir(&self.root);
        succeed(&mut cargo)
    }

    /// Program, pages, completions and what belongs to them, under one folder.
    fn pack_archive(&self) -> Result<PathBuf> {
        let staged = self.folder.join(self.name());
        fs::create_dir_all(&staged).context("cannot create the archive's folder")?;
        for file in ["LICENSE", "README.md", "CHANGELOG.md"] {
            fs::copy(self.root.join(file), staged.join(file))
                .with_context(|| format!("cannot copy {file}"))?;
        }
        let mut copy = Command::new("cp");
        copy.args(["-a", "observer", "man", "completions"])
            .arg(&staged)
            .current_dir(&self.folder);
        succeed(&mut copy)?;
        let archive = self.folder.join(format!("{}.tar.gz", self.name()));
        let mut tar = Command::new("tar");
        tar.args(["--owner=0", "--group=0", "--sort=name", "-czf"])
            .arg(&archive)
            .arg(self.name())
            .current_dir(&self.folder);
        succeed(&mut tar)?;
        fs::remove_dir_all(&staged).context("cannot remove the archive's folder")?;
        Ok(archive)
    }
}

/// Runs a command that must succeed; what it says is passed through.
pub(crate) fn succeed(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => bail!("{name} failed: {status}"),
        Err(error) => bail!("cannot start {name}: {error}"),
    }
}
