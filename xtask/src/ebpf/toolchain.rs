//! Finds a compiler that can build for BPF, and the linker that goes with it.

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// A compiler with the sources of its standard library, and a bpf-linker of the same LLVM.
pub(super) struct Toolchain {
    pub(super) cargo: PathBuf,
    pub(super) rustc: PathBuf,
    pub(super) sysroot: PathBuf,
    pub(super) rustc_version: String,
    pub(super) llvm_version: String,
    linker: PathBuf,
    pub(super) linker_version: String,
}

impl fmt::Display for Toolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rustc, linker) = (self.rustc.display(), self.linker.display());
        writeln!(
            f,
            "rustc {} with LLVM {}: {rustc}",
            self.rustc_version, self.llvm_version
        )?;
        write!(f, "{}: {linker}", self.linker_version)
    }
}

impl Toolchain {
    /// The first that will do: rustup's nightly, whatever `rustc` is in the PATH, Debian's.
    pub(super) fn find() -> Result<Self> {
        let linker = find_linker()?;
        let mut refused = Vec::new();
        for sysroot in sysroots() {
            match Self::in_sysroot(&sysroot, &linker) {
                Ok(toolchain) => return Ok(toolchain),
                Err(error) => refused.push(format!("\n  {}: {error:#}", sysroot.display())),
            }
        }
        bail!(
            "no compiler for BPF found; install rust-src for nightly, or Debian's rustc-web, \
               cargo-web and rust-web-src (see docs/testing.md){}",
            refused.concat()
        )
    }

    fn in_sysroot(sysroot: &Path, linker: &Path) -> Result<Self> {
        let source = sysroot.join("lib/rustlib/src/rust/library/core/src/lib.rs");
        ensure!(source.exists(), "has no rust-src");
        let (rustc, cargo) = (sysroot.join("bin/rustc"), sysroot.join("bin/cargo"));
        let version = output(&rustc, &["--version", "--verbose"])?;
        let field = |name: &str| {
            let value = version.lines().find_map(|line| line.strip_prefix(name));
            value
                .map(str::to_owned)
                .with_context(|| format!("rustc tells no {name}"))
        };
        let llvm_version = field("LLVM version: ")?;
        let linker_llvm = linker_llvm(linker);
        ensure!(
            linker_llvm
                .as_deref()
                .is_none_or(|linked| agree(linked, &llvm_version)),
            "uses LLVM {llvm_version}, and bpf-linker LLVM {}",
            linker_llvm.unwrap_or_default()
        );
        Ok(Self {
            cargo,
            rustc,
            sysroot: sysroot.to_owned(),
            rustc_version: field("release: ")?,
            llvm_version,
            linker: linker.to_owned(),
            linker_version: output(linker, &["--version"])?.trim().to_owned(),
        })
    }

    /// The PATH with this toolchain's programs first.
    pub(super) fn path(&self) -> std::ffi::OsString {
        let own = [&self.linker, &self.rustc]
            .into_iter()
            .filter_map(|program| program.parent());
        let inherited = env::var_os("PATH").unwrap_or_default();
        let all = own.map(Path::to_owned).chain(env::split_paths(&inherited));
        env::join_paths(all).unwrap_or(inherited)
    }

    /// The name under which Debian's compiler knows its own sources.
    pub(super) fn debian_source(&self) -> String {
        format!("rustc-{}", self.rustc_version)
    }
}

/// Where compilers may be.
fn sysroots() -> Vec<PathBuf> {
    let told = |program: &str, args: &[&str]| {
        output(Path::new(program), args)
            .ok()
            .map(|path| PathBuf::from(path.trim()))
    };
    let nightly = told("rustup", &["run", "nightly", "rustc", "--print", "sysroot"]);
    let current = told("rustc", &["--print", "sysroot"]);
    nightly
        .into_iter()
        .chain(current)
        .chain([PathBuf::from("/usr")])
        .collect()
}

/// bpf-linker in the PATH, in the cache that `.ci/run` fills, or where `cargo install` puts it.
fn find_linker() -> Result<PathBuf> {
    let home = env::home_dir().unwrap_or_default();
    let cache = env::var_os("XDG_CACHE_HOME").map_or_else(|| home.join(".cache"), PathBuf::from);
    let path = env::var_os("PATH").unwrap_or_default();
    let cargo_bin = cargo_home().map(|home| home.join("bin"));
    env::split_paths(&path)
        .chain([cache.join("observer/bpf-linker/bin")])
        .chain(cargo_bin)
        .map(|directory| directory.join("bpf-linker"))
        .find(|linker| linker.is_file())
        .context("no bpf-linker in PATH, in the cache or in cargo's bin (see docs/testing.md)")
}

/// Where cargo keeps its things.
pub(super) fn cargo_home() -> Option<PathBuf> {
    let set = env::var_os("CARGO_HOME").map(PathBuf::from);
    set.or_else(|| Some(env::home_dir()?.join(".cargo")))
}

/// The LLVM that bpf-linker loads, such as `22.1`; `None` where it is built in.
fn linker_llvm(linker: &Path) -> Option<String> {
    let libraries = output(Path::new("ldd"), &[linker.to_str()?]).ok()?;
    let (_, rest) = libraries.split_once("libLLVM.so.")?;
    rest.split_whitespace().next().map(str::to_owned)
}

/// Whether `22.1` and `22.1.8` name the same LLVM.
fn agree(linked: &str, llvm: &str) -> bool {
    llvm == linked
        || llvm
            .strip_prefix(linked)
            .is_some_and(|rest| rest.starts_with('.'))
}

fn output(program: &Path, args: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(args)
        .output()
        .with_context(|| format!("cannot start {}", program.display()))?;
    ensure!(output.status.success(), "{} failed", program.display());
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::agree;

    #[test]
    fn a_shorter_version_names_the_same_llvm() {
        assert!(agree("22.1", "22.1.8"));
        assert!(agree("22.1.8", "22.1.8"));
        assert!(!agree("22.1", "22.10.0"));
        assert!(!agree("21.1", "22.1.8"));
    }
}
