//! Opening a file to write to, by the rights of whoever asked for it.
//!
//! Under sudo the observer is root for a user. In a folder that this user may write, a link may lie
//! where a file is to be created; root's rights must not follow it. So such files are opened with
//! the user's own rights, and a name that nobody gave (a log's next part) follows no link at all.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::Path;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::unistd::{Gid, Uid, geteuid};

/// Only the owner may read what hosts and servers say to each other.
const OWNER_ONLY: u32 = 0o600;

/// What becomes of a file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and opening fails.
    Refused,
    /// The caller named it: it is emptied where it is a file, and may be a link, a pipe, a terminal.
    Emptied,
    /// As [`Self::Emptied`], with its content.
    Kept,
    /// The observer chose the name: it is emptied where it is a file with no other name, and
    /// refused where it is a link, a pipe, or a device.
    Replaced,
}

/// Opens a file for writing, and creates it where it is missing, readable by its owner only. It
/// never waits: a named pipe that nobody reads is an error.
///
/// # Errors
/// What the system says to the caller's rights.
pub fn open_to_write(path: &Path, existing: Existing) -> io::Result<File> {
    let Some((uid, gid)) = caller() else {
        return open(path, existing);
    };
    let own = with_rights_of(uid, gid, || {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        match open(path, existing) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                // Where the user may not create anything, nobody can have laid a link either.
                match may_write(folder) {
                    true => Some(Err(error)),
                    false => None,
                }
            }
            opened => Some(opened),
        }
    });
    match own {
        Some(opened) => opened,
        None => {
            let file = open(path, existing)?;
            // A new file is the user's, wherever it lies.
            if file
                .metadata()
                .is_ok_and(|file| file.is_file() && file.len() == 0)
            {
                // A file system that knows no owners is no reason to refuse it.
                let _ = fchown(&file, Some(uid.as_raw()), Some(gid.as_raw()));
            }
            Ok(file)
        }
    }
}

fn open(path: &Path, existing: Existing) -> io::Result<File> {
    let mut flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    if existing == Existing::Replaced {
        flags |= OFlag::O_NOFOLLOW;
    }
    let file = OpenOptions::new()
        .write(true)
        .create(existing != Existing::Refused)
        .create_new(existing == Existing::Refused)
        .truncate(false)
        .mode(OWNER_ONLY)
        .custom_flags(flags.bits())
        .open(path)?;
    let found = file.metadata()?;
    if existing == Existing::Replaced && !(found.is_file() && found.nlink() == 1) {
        return Err(io::Error::other("it is no file of its own"));
    }
    if found.is_file() && matches!(existing, Existing::Emptied | Existing::Replaced) {
        file.set_len(0)?;
    }
    // Only the opening must not wait; writing does, as everywhere.
    let set = OFlag::from_bits_retain(fcntl(&file, FcntlArg::F_GETFL)?) - OFlag::O_NONBLOCK;
    fcntl(&file, FcntlArg::F_SETFL(set))?;
    Ok(file)
}

/// The user whom root serves under sudo.
fn caller() -> Option<(Uid, Gid)> {
    let id = |name| std::env::var(name).ok()?.parse::<u32>().ok();
    let (uid, gid) = (id("SUDO_UID")?, id("SUDO_GID")?);
    (geteuid().is_root() && uid != 0).then(|| (Uid::from_raw(uid), Gid::from_raw(gid)))
}

/// Whether this thread's rights allow to create files in a folder.
fn may_write(folder: &Path) -> bool {
    use nix::fcntl::{AT_FDCWD, AtFlags};
    use nix::unistd::{AccessFlags, faccessat};

    let flags = AccessFlags::W_OK | AccessFlags::X_OK;
    faccessat(AT_FDCWD, folder, flags, AtFlags::AT_EACCESS).is_ok()
}

/// Runs `act` with the file rights of a user, on this thread alone; root's come back after it.
///
/// With the id goes the capability to pass over rights (`credentials(7)`, `capabilities(7)`).
#[cfg(target_os = "linux")]
fn with_rights_of<T>(uid: Uid, gid: Gid, act: impl FnOnce() -> T) -> T {
    use nix::unistd::{setfsgid, setfsuid};

    let gid_before = setfsgid(gid);
    let uid_before = setfsuid(uid);
    let done = act();
    setfsuid(uid_before);
    setfsgid(gid_before);
    done
}

/// Elsewhere nothing runs as root for a user: the relay is the host's own child.
#[cfg(not(target_os = "linux"))]
fn with_rights_of<T>(_: Uid, _: Gid, act: impl FnOnce() -> T) -> T {
    act()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder with a file, and the same file by other names.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "theirs").expect("written");
        symlink(at("file"), at("link")).expect("linked");
        symlink(at("missing"), at("dangling")).expect("linked");
        symlink(folder.path(), at("folder")).expect("linked");
        fs::hard_link(at("file"), at("other")).expect("linked");
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        folder
    }

    #[test]
    fn a_name_that_nobody_gave_leads_nowhere_else() {
        let folder = folder();
        for name in ["link", "dangling", "folder", "other", "pipe"] {
            let opened = open_to_write(&folder.path().join(name), Existing::Replaced);
            assert!(opened.is_err(), "{name}");
        }
        let file = fs::read_to_string(folder.path().join("file")).expect("read");
        assert_eq!(file, "theirs");
        assert!(!folder.path().join("missing").exists());
        open_to_write(&folder.path().join("new"), Existing::Replaced).expect("created");
    }

    #[test]
    fn a_pipe_that_nobody_reads_is_refused_at_once() {
        let folder = folder();
        for existing in [Existing::Emptied, Existing::Kept, Existing::Refused] {
            let opened = open_to_write(&folder.path().join("pipe"), existing);
            assert!(opened.is_err(), "{existing:?}");
        }
    }

    #[test]
    fn what_the_caller_named_may_be_a_link() {
        let folder = folder();
        open_to_write(&folder.path().join("link"), Existing::Emptied).expect("opened");
        let file = fs::read_to_string(folder.path().join("file")).expect("read");
        assert_eq!(file, "");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_users_rights_decide_in_the_users_folder() {
        if !geteuid().is_root() {
            eprintln!("skipped: it takes root to act for a user");
            return;
        }
        let folder = folder();
        fs::write(folder.path().join("roots"), "roots").expect("written");
        let user = (Uid::from_raw(65534), Gid::from_raw(65534));
        fchown(
            File::open(folder.path()).expect("opened"),
            Some(user.0.as_raw()),
            Some(user.1.as_raw()),
        )
        .expect("given away");
        with_rights_of(user.0, user.1, || {
            let open = |name: &str| open(&folder.path().join(name), Existing::Emptied);
            let denied = open("link").expect_err("a file of root's");
            assert_eq!(denied.kind(), io::ErrorKind::PermissionDenied);
            assert!(may_write(folder.path()));
            let made = open("made").expect("created").metadata();
            assert_eq!(made.expect("metadata").uid(), user.0.as_raw());
        });
        let roots = fs::read_to_string(folder.path().join("roots")).expect("read");
        assert_eq!(roots, "roots");
    }
}
