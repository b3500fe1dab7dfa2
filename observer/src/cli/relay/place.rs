//! Where logs and sockets go, and that nobody else can get at them.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::sink::{Existing, open_to_write};

/// Why a place will not do.
#[derive(Debug, Error)]
pub enum PlaceError {
    /// The system refuses.
    #[error("cannot {operation} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        operation: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Others could put a socket of theirs there.
    #[error("{} is not a folder that only you can enter", .path.display())]
    Open {
        /// The folder.
        path: PathBuf,
    },
    /// Nothing says where such files go.
    #[error("no place for the log: neither XDG_STATE_HOME nor HOME is set")]
    Nowhere,
}

/// The folder of the logs that nobody asked for by name; it exists afterwards.
pub(super) fn log_folder() -> Result<PathBuf, PlaceError> {
    let folder = state_home(|name| std::env::var_os(name))
        .ok_or(PlaceError::Nowhere)?
        .join("observer/relay");
    make_folder(&folder)?;
    Ok(folder)
}

/// As the XDG base directory specification says; a relative path counts as none.
fn state_home(var: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name| {
        var(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))
}

/// The socket of `observer watch --relay`, unless another is named.
///
/// Many hosts keep `XDG_RUNTIME_DIR` from their servers, so its usual place is tried too.
pub(super) fn default_socket() -> PathBuf {
    let user = nix::unistd::geteuid();
    let given = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let usual = PathBuf::from(format!("/run/user/{user}"));
    let own = |path: &PathBuf| path.is_absolute() && check_private(path).is_ok();
    let folder = match given.filter(own).or_else(|| Some(usual).filter(own)) {
        Some(runtime) => runtime.join("observer"),
        None => PathBuf::from(format!("/tmp/observer-{user}")),
    };
    folder.join("relay.sock")
}

/// Opens a file for a new log: `wanted`, or with a number where that is in use or has content.
///
/// What is no regular file (a pipe, a terminal) is written to as it is. The lock tells relays
/// apart that start at the same moment; it goes with the file.
pub(super) fn open_log(wanted: &Path) -> Result<(File, PathBuf), PlaceError> {
    let special = fs::metadata(wanted).is_ok_and(|file| !file.is_file());
    let paths =
        std::iter::once(wanted.into()).chain((2_u32..).map(|number| numbered(wanted, number)));
    for path in paths {
        let opened = open_to_write(&path, Existing::Kept);
        let file = opened.map_err(|source| PlaceError::Io {
            operation: "open",
            path: path.clone(),
            source,
        })?;
        let locked = !matches!(file.try_lock(), Err(TryLockError::WouldBlock));
        let empty = file.metadata().is_ok_and(|file| file.len() == 0);
        if special || locked && empty {
            return Ok((file, path));
        }
    }
    Err(PlaceError::Nowhere)
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// The folder, and those above it that are missing, for their owner only.
pub(super) fn make_folder(path: &Path) -> Result<(), PlaceError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|source| PlaceError::Io {
        operation: "create",
        path: path.into(),
        source,
    })
}

/// Whether only this user can enter the folder (root can enter everything).
pub(super) fn check_private(folder: &Path) -> Result<(), PlaceError> {
    // The folder itself: a link may be turned elsewhere by whoever owns it.
    let found = fs::symlink_metadata(folder).map_err(|source| PlaceError::Io {
        operation: "look at",
        path: folder.into(),
        source,
    })?;
    let own = found.is_dir()
        && found.uid() == nix::unistd::geteuid().as_raw()
        && found.mode() & 0o077 == 0;
    if own {
        Ok(())
    } else {
        Err(PlaceError::Open {
            path: folder.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_state_folder_follows_the_base_directory_specification() {
        let home = |given: &[(&str, &str)]| {
            state_home(|name| {
                given
                    .iter()
                    .find(|(given, _)| *given == name)
                    .map(|(_, value)| (*value).into())
            })
        };
        assert_eq!(
            home(&[("XDG_STATE_HOME", "/s"), ("HOME", "/h")]),
            Some("/s".into())
        );
        assert_eq!(
            home(&[("XDG_STATE_HOME", "s"), ("HOME", "/h")]),
            Some("/h/.local/state".into())
        );
        assert_eq!(home(&[("HOME", "/h")]), Some("/h/.local/state".into()));
        assert_eq!(home(&[]), None);
    }

    #[test]
    fn a_log_that_is_there_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let open = |name: &str| open_log(&path(name)).unwrap();
        let (first, opened) = open("audit.jsonl");
        assert_eq!(opened, path("audit.jsonl"));
        assert_eq!(first.metadata().unwrap().mode() & 0o777, 0o600);
        let (second, opened) = open("audit.jsonl");
        assert_eq!(opened, path("audit-2.jsonl"), "in use, though empty");
        drop((first, second));
        fs::write(path("audit.jsonl"), "x").unwrap();
        assert_eq!(
            open("audit.jsonl").1,
            path("audit-2.jsonl"),
            "empty and free again"
        );
        fs::write(path("log"), "x").unwrap();
        assert_eq!(open("log").1, path("log-2"));
        assert_eq!(
            open_log(Path::new("/dev/null")).unwrap().1,
            Path::new("/dev/null")
        );
        assert!(open_log(&path("none/log")).is_err());
    }

    #[test]
    fn only_a_folder_of_ones_own_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b");
        make_folder(&path).unwrap();
        check_private(&path).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(matches!(check_private(&link), Err(PlaceError::Open { .. })));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        assert!(matches!(check_private(&path), Err(PlaceError::Open { .. })));
        assert!(check_private(&folder.path().join("none")).is_err());
    }
}
