//! `cargo xtask ebpf`: builds the kernel probe's object, which is committed beside a manifest.
//!
//! Owns the one way in which the object comes about, so that it comes out the same everywhere:
//! the flags, the names that replace this machine's paths, and what is stripped.

mod object;
mod toolchain;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use toolchain::Toolchain;

#[path = "../../../observer-ebpf/source_hash.rs"]
mod source_hash;

const TARGET: &str = "bpfel-unknown-none";

/// Build the kernel probe's object (needs a BPF toolchain; everything else does not).
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Build it anew and compare it with the committed one; change nothing.
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()?;
    let committed = Committed::in_workspace(&root);
    let toolchain = Toolchain::find()?;
    println!("{toolchain}");
    let object = object::strip(&build(&root, &toolchain)?)?;
    let leaks = object::paths(&object);
    ensure!(
        leaks.is_empty(),
        "the object names paths of this machine: {leaks:?}"
    );
    let manifest = manifest(&root, &toolchain)?;
    if args.check {
        return committed.compare(&object, &manifest);
    }
    committed.write(&object, &manifest)
}

/// The object in the repository, and what the repository says about it.
struct Committed {
    object: PathBuf,
    manifest: PathBuf,
}

impl Committed {
    fn in_workspace(root: &Path) -> Self {
        let directory = root.join("observer-ebpf/object");
        Self {
            object: directory.join("observer.bpf.o"),
            manifest: directory.join("manifest.toml"),
        }
    }

    fn write(&self, object: &[u8], manifest: &str) -> Result<()> {
        for (path, bytes) in [
            (&self.object, object),
            (&self.manifest, manifest.as_bytes()),
        ] {
            let directory = path.parent().context("the object has a directory")?;
            fs::create_dir_all(directory)
                .with_context(|| format!("cannot create {}", directory.display()))?;
            fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
        }
        println!("wrote {} ({} bytes)", self.object.display(), object.len());
        Ok(())
    }

    fn compare(&self, object: &[u8], manifest: &str) -> Result<()> {
        let (theirs, ours) = (fs::read_to_string(&self.manifest)?, manifest);
        let (theirs, ours) = (entries(&theirs), entries(ours));
        let differing: Vec<_> = ours
            .iter()
            .filter(|(key, value)| theirs.get(*key) != Some(value))
            .collect();
        ensure!(
            differing.is_empty(),
            "the manifest differs, so the object cannot be compared; here: {differing:?}, \
             committed: {theirs:?}"
        );
        if fs::read(&self.object)? != object {
            bail!("the committed object is not what these sources and this toolchain give");
        }
        println!("the committed object is up to date");
        Ok(())
    }
}

/// The lines `key = "value"` of a manifest.
fn entries(manifest: &str) -> BTreeMap<&str, &str> {
    manifest
        .lines()
        .filter_map(|line| line.split_once(" = "))
        .collect()
}

fn manifest(root: &Path, toolchain: &Toolchain) -> Result<String> {
    let source = source_hash::source_hash(&root.join("observer-ebpf"))?;
    Ok(format!(
        "# What observer.bpf.o was built from and with. Written by `cargo xtask ebpf`.\n\
         source = \"{source}\"\n\
         rustc = \"{}\"\n\
         llvm = \"{}\"\n\
         bpf-linker = \"{}\"\n",
        toolchain.rustc_version, toolchain.llvm_version, toolchain.linker_version
    ))
}

/// Builds the object, and returns it as the linker left it.
fn build(root: &Path, toolchain: &Toolchain) -> Result<Vec<u8>> {
    // A directory of its own: other flags must not throw away what the workspace has built.
    let target = root.join("target/ebpf");
    let status = command(root, toolchain, &target)
        .status()
        .context("cannot start cargo")?;
    ensure!(
        status.success(),
        "the probe did not build; if the linker could not read the bitcode, it was built with \
         another LLVM than {} (see docs/testing.md)",
        toolchain.llvm_version
    );
    let object = target.join(TARGET).join("release/observer-ebpf");
    fs::read(&object).with_context(|| format!("cannot read {}", object.display()))
}

fn command(root: &Path, toolchain: &Toolchain, target: &Path) -> Command {
    let mut cargo = Command::new(&toolchain.cargo);
    for (name, _) in std::env::vars_os() {
        // What the outer cargo and rustup set for themselves would steer the inner ones.
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PROFILE") || name.starts_with("RUST") || name == "CARGO" {
            cargo.env_remove(&*name);
        }
    }
    cargo
        .current_dir(root)
        .args([
            "build",
            "--release",
            "--locked",
            "-Zbuild-std=core",
            "--target",
            TARGET,
        ])
        .args([
            "--package",
            "observer-ebpf",
            "--bin",
            "observer-ebpf",
            "--features",
            "programs",
        ])
        .arg("--target-dir")
        .arg(target)
        .env("PATH", toolchain.path())
        .env("RUSTC", &toolchain.rustc)
        .env("RUSTC_BOOTSTRAP", "1")
        // The programs use no registers by name; one object serves every architecture.
        .env("AYA_BPF_TARGET_ARCH", "x86_64")
        .env(
            "CARGO_ENCODED_RUSTFLAGS",
            flags(root, toolchain).join("\x1f"),
        )
        .env("CARGO_INCREMENTAL", "0")
        .env("CARGO_PROFILE_RELEASE_LTO", "fat")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1")
        .env("CARGO_PROFILE_RELEASE_DEBUG", "2")
        .env("CARGO_PROFILE_RELEASE_PANIC", "abort");
    cargo
}

fn flags(root: &Path, toolchain: &Toolchain) -> Vec<String> {
    let mut flags = vec![
        "-Cdebuginfo=2".to_owned(),
        // BPF v3 has the atomic additions that return what was there before (Linux 5.12).
        "-Ctarget-cpu=v3".to_owned(),
        "-Clink-arg=--btf".to_owned(),
    ];
    let registry = toolchain::cargo_home().map(|home| home.join("registry/src"));
    let mut renamed = vec![(root.to_owned(), ".".to_owned())];
    // The registry's directory name depends on how cargo was told of it.
    for index in registry
        .iter()
        .flat_map(|registry| fs::read_dir(registry).into_iter().flatten())
    {
        renamed.extend(
            index
                .ok()
                .map(|index| (index.path(), "/registry".to_owned())),
        );
    }
    renamed.push((
        toolchain.sysroot.join("lib/rustlib/src/rust"),
        "/rust".to_owned(),
    ));
    renamed.push((
        PathBuf::from("/usr/src").join(toolchain.debian_source()),
        "/rust".to_owned(),
    ));
    flags.extend(
        renamed
            .iter()
            .map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display())),
    );
    flags
}
