//! The Debian package, put together by dpkg-deb: a static program needs nothing of a `debian/` folder.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::{Dist, VERSION, succeed};

/// Where each file of `target/dist` goes; a folder's files all go there.
const PLACES: [(&str, &str); 5] = [
    ("observer", "usr/bin/observer"),
    ("man", "usr/share/man/man1"),
    (
        "completions/observer.bash",
        "usr/share/bash-completion/completions/observer",
    ),
    (
        "completions/_observer",
        "usr/share/zsh/vendor-completions/_observer",
    ),
    (
        "completions/observer.fish",
        "usr/share/fish/vendor_completions.d/observer.fish",
    ),
];

/// And each of the repository.
const DOCS: [(&str, &str); 2] = [
    ("LICENSE", "usr/share/doc/observer/copyright"),
    ("CHANGELOG.md", "usr/share/doc/observer/changelog"),
];

/// Makes the package; gives its path.
pub(super) fn pack(dist: &Dist) -> Result<PathBuf> {
    let tree = dist.folder.join("deb");
    for (from, to) in PLACES {
        place(&dist.folder.join(from), &tree.join(to))?;
    }
    for (from, to) in DOCS {
        place(&dist.root.join(from), &tree.join(to))?;
    }
    compress(&tree.join("usr/share/man/man1"))?;
    compress(&tree.join("usr/share/doc/observer/changelog"))?;
    let control = tree.join("DEBIAN/control");
    let text = control_file(dist, installed_size(&tree)?)?;
    fs::create_dir_all(tree.join("DEBIAN")).context("cannot create the package's folder")?;
    fs::write(&control, text).context("cannot write the package's control file")?;
    let package = dist
        .folder
        .join(format!("observer_{VERSION}_{}.deb", architecture(dist)?));
    let mut dpkg = Command::new("dpkg-deb");
    dpkg.args(["--root-owner-group", "--build"])
        .arg(&tree)
        .arg(&package)
        .stdout(std::process::Stdio::null());
    succeed(&mut dpkg)?;
    fs::remove_dir_all(&tree).context("cannot remove the package's folder")?;
    Ok(package)
}

fn architecture(dist: &Dist) -> Result<&'static str> {
    match dist.machine {
        "x86_64" => Ok("amd64"),
        "aarch64" => Ok("arm64"),
        other => bail!("Debian has no name for {other} here"),
    }
}

fn control_file(dist: &Dist, kilobytes: u64) -> Result<String> {
    Ok(format!(
        "Package: observer\nVersion: {VERSION}\nArchitecture: {}\nSection: utils\n\
         Priority: optional\nInstalled-Size: {kilobytes}\n\
         Maintainer: the observer maintainers <maintainers@observer.invalid>\n\
         Description: watches MCP over stdio from outside\n \
         Looks at the pipes between MCP hosts and the servers that they start, changes nothing in\n \
         either, and says which tool calls were answered, cancelled or abandoned. Needs Linux 5.17\n \
         or newer with BTF, and root, to watch; reads its logs anywhere.\n",
        architecture(dist)?
    ))
}

/// Copies a file, or a folder's files, and makes them as readable as packages are.
fn place(from: &Path, to: &Path) -> Result<()> {
    if from.is_dir() {
        for entry in
            fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))?
        {
            let path = entry.context("cannot read a folder")?.path();
            let name = path.file_name().context("a file has a name")?;
            place(&path, &to.join(name))?;
        }
        return Ok(());
    }
    let folder = to.parent().context("a file is in a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    let mode = match to.ends_with("usr/bin/observer") {
        true => 0o755,
        false => 0o644,
    };
    fs::set_permissions(to, fs::Permissions::from_mode(mode)).context("cannot set a mode")
}

/// As Debian wants manual pages and changelogs.
fn compress(path: &Path) -> Result<()> {
    succeed(Command::new("gzip").args(["-9nr"]).arg(path))
}

fn installed_size(tree: &Path) -> Result<u64> {
    let output = Command::new("du")
        .args(["-sk"])
        .arg(tree)
        .output()
        .context("cannot start du")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let first = text.split_whitespace().next().unwrap_or_default();
    first.parse().context("du gives a number")
}
