//! As whom a command is started, and with which environment.
//!
//! Observing needs root, the observed command does not: it must run as it would without us. So
//! it gets the identity of the user who called sudo, and the environment that this user had
//! then, which sudo took away from us but keeps itself.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{CString, OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use nix::unistd::{Gid, Uid, User, getgrouplist, setgroups, setresgid, setresuid};

use super::SpawnError;
use crate::capture::proc;

/// An environment: names and values.
pub(super) type Environment = BTreeMap<OsString, OsString>;

/// What sudo and doas set or reset of their own accord; all else in our environment that the
/// caller's lacks was put there on purpose (`sudo KEY=value observer run`, `sudo env KEY=...`).
const SET_BY_SUDO: [&str; 8] = [
    "PATH", "HOME", "USER", "USERNAME", "LOGNAME", "SHELL", "MAIL", "TERM",
];

/// The programs that lend root's rights, by the name of their executable.
const SUDO: [&str; 3] = ["sudo", "sudo-rs", "doas"];

/// A user that a command can run as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
    /// Where the user is known by name.
    account: Option<Account>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Account {
    name: String,
    home: PathBuf,
    shell: PathBuf,
}

impl Identity {
    /// The user with this name, or this number.
    ///
    /// # Errors
    ///
    /// Where there is no such user, or the user database cannot be read.
    pub fn named(name: &str) -> Result<Self, SpawnError> {
        let lookup = |source| SpawnError::User {
            user: name.into(),
            source,
        };
        let by_name = User::from_name(name).map_err(lookup)?;
        let user = match (by_name, name.parse()) {
            (Some(user), _) => Some(user),
            (None, Ok(uid)) => User::from_uid(Uid::from_raw(uid)).map_err(lookup)?,
            (None, Err(_)) => None,
        };
        let user = user.ok_or_else(|| SpawnError::NoUser(name.into()))?;
        let gid = user.gid;
        Self::of(user, gid)
    }

    /// The user who called sudo (or doas), where one did and we have root's rights to give up.
    ///
    /// # Errors
    ///
    /// Where we were called through sudo and cannot tell for whom: the command must not run as
    /// root by accident.
    pub fn caller() -> Result<Option<Self>, SpawnError> {
        if !Uid::effective().is_root() {
            return Ok(None);
        }
        if let Some(uid) = variable("SUDO_UID")? {
            return Self::sudo(&uid, variable("SUDO_GID")?.as_deref()).map(Some);
        }
        variable("DOAS_USER")?
            .map(|name| Self::named(&name))
            .transpose()
    }

    fn sudo(uid: &str, gid: Option<&str>) -> Result<Self, SpawnError> {
        let number = |text: &str| text.parse::<u32>().map_err(|_| SpawnError::Caller);
        let uid = Uid::from_raw(number(uid)?);
        let gid = gid.map(number).transpose()?.map(Gid::from_raw);
        let user = User::from_uid(uid).map_err(|source| SpawnError::User {
            user: uid.to_string(),
            source,
        })?;
        match (user, gid) {
            (Some(user), gid) => {
                let gid = gid.unwrap_or(user.gid);
                Self::of(user, gid)
            }
            // A user of a directory service that is out of reach now.
            (None, Some(gid)) => Ok(Self {
                uid,
                gid,
                groups: vec![gid],
                account: None,
            }),
            (None, None) => Err(SpawnError::Caller),
        }
    }

    fn of(user: User, gid: Gid) -> Result<Self, SpawnError> {
        let User {
            name,
            uid,
            dir: home,
            shell,
            ..
        } = user;
        let groups = CString::new(name.as_str())
            .map_err(|_| nix::Error::EINVAL)
            .and_then(|name| getgrouplist(&name, gid))
            .map_err(|source| SpawnError::User {
                user: name.clone(),
                source,
            })?;
        Ok(Self {
            uid,
            gid,
            groups,
            account: Some(Account { name, home, shell }),
        })
    }

    /// Becomes this user, for good: real, effective and saved ids, and with root's uid its
    /// capabilities. Makes system calls only, so that a forked child may call it.
    pub(super) fn assume(&self) -> nix::Result<()> {
        setgroups(&self.groups)?;
        setresgid(self.gid, self.gid, self.gid)?;
        setresuid(self.uid, self.uid, self.uid)
    }

    /// Its name, or its number.
    pub fn name(&self) -> String {
        self.account
            .as_ref()
            .map_or_else(|| self.uid.to_string(), |account| account.name.clone())
    }

    fn variables(&self) -> impl Iterator<Item = (OsString, OsString)> {
        self.account
            .iter()
            .flat_map(|Account { name, home, shell }| {
                let variables: [(&str, &OsStr); 4] = [
                    ("HOME", home.as_os_str()),
                    ("USER", name.as_ref()),
                    ("LOGNAME", name.as_ref()),
                    ("SHELL", shell.as_os_str()),
                ];
                variables.map(|(variable, value)| (variable.into(), value.to_owned()))
            })
    }
}

/// A variable that says who called; one that makes no sense must not be taken for none.
fn variable(name: &str) -> Result<Option<String>, SpawnError> {
    match env::var(name) {
        Ok(value) => Ok(Some(value)),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(env::VarError::NotUnicode(_)) => Err(SpawnError::Caller),
    }
}

/// The environment for a command that runs as `identity`: ours, with that user's own variables.
pub(super) fn of_user(identity: &Identity) -> Environment {
    let mut environment = without_sudo(env::vars_os().collect());
    environment.extend(identity.variables());
    environment
}

/// The environment for a command that runs as the user who called sudo: the one in which sudo was
/// called, where sudo runs still (it does, unless it was told otherwise) and we may look.
pub(super) fn of_caller(identity: &Identity) -> Environment {
    match sudo_environment() {
        Some(caller) => merge(env::vars_os().collect(), caller),
        None => of_user(identity),
    }
}

/// The caller's variables, and what ours has beside them on purpose.
fn merge(own: Environment, caller: Environment) -> Environment {
    let set_by_sudo = |name: &OsString| SET_BY_SUDO.iter().any(|set| name == set);
    let mut environment = caller;
    environment.extend(
        without_sudo(own)
            .into_iter()
            .filter(|(name, _)| !set_by_sudo(name)),
    );
    environment
}

/// The command is not one that sudo runs, and must not take itself for one (npm does).
fn without_sudo(environment: Environment) -> Environment {
    let of_sudo = |name: &OsStr| name.as_bytes().starts_with(b"SUDO_") || name == "DOAS_USER";
    environment
        .into_iter()
        .filter(|(name, _)| !of_sudo(name))
        .collect()
}

/// The environment of the sudo process that started us.
fn sudo_environment() -> Option<Environment> {
    let is_sudo = |exe: &str| {
        let name = Path::new(exe).file_name().and_then(OsStr::to_str);
        name.is_some_and(|name| SUDO.contains(&name))
    };
    // With a terminal of its own, sudo forks once more: the outermost one was called.
    let sudo = proc::ancestors()
        .take(4)
        .filter(|(_, exe)| exe.as_deref().is_some_and(is_sudo));
    let (pid, _) = sudo.last()?;
    let bytes = fs::read(format!("/proc/{pid}/environ")).ok()?;
    Some(parse_environ(&bytes)).filter(|environment| !environment.is_empty())
}

fn parse_environ(bytes: &[u8]) -> Environment {
    let variable = |entry: &[u8]| {
        let equals = memchr::memchr(b'=', entry)?;
        let (name, value) = (entry.get(..equals)?, entry.get(equals + 1..)?);
        let name = Some(name).filter(|name| !name.is_empty())?;
        Some((
            OsString::from_vec(name.into()),
            OsString::from_vec(value.into()),
        ))
    };
    bytes
        .split(|&byte| byte == 0)
        .filter_map(variable)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        variables
            .iter()
            .map(|&(name, value)| (name.into(), value.into()))
            .collect()
    }

    #[test]
    fn the_caller_gets_back_what_sudo_took() {
        let caller = environment(&[
            ("PATH", "/home/ada/bin:/usr/bin"),
            ("HOME", "/home/ada"),
            ("USER", "ada"),
            ("OPENAI_API_KEY", "sk-1"),
            ("LANG", "C"),
        ]);
        let own = environment(&[
            ("PATH", "/usr/sbin:/usr/bin"),
            ("HOME", "/root"),
            ("USER", "root"),
            ("MAIL", "/var/mail/root"),
            ("SUDO_UID", "1000"),
            ("SUDO_COMMAND", "observer run"),
            ("LANG", "de_DE.UTF-8"),
            ("EXTRA", "on purpose"),
        ]);
        let expected = environment(&[
            ("PATH", "/home/ada/bin:/usr/bin"),
            ("HOME", "/home/ada"),
            ("USER", "ada"),
            ("OPENAI_API_KEY", "sk-1"),
            ("LANG", "de_DE.UTF-8"),
            ("EXTRA", "on purpose"),
        ]);
        assert_eq!(merge(own, caller), expected);
    }

    #[test]
    fn environ_is_read_as_it_is() {
        let bytes = b"A=1\0EMPTY=\0B=x=y\0=odd\0none\0\xff=\xfe\0";
        let mut expected = environment(&[("A", "1"), ("EMPTY", ""), ("B", "x=y")]);
        expected.insert(
            OsString::from_vec(vec![0xff]),
            OsString::from_vec(vec![0xfe]),
        );
        assert_eq!(parse_environ(bytes), expected);
    }

    #[test]
    fn root_is_known_by_name_and_number() {
        let root = Identity::named("root").unwrap();
        assert_eq!(root, Identity::named("0").unwrap());
        assert_eq!(root.name(), "root");
        let variables: Environment = root.variables().collect();
        assert_eq!(variables.get(OsStr::new("LOGNAME")), Some(&"root".into()));
    }

    #[test]
    fn an_unknown_user_is_refused() {
        assert!(matches!(
            Identity::named("no such user"),
            Err(SpawnError::NoUser(_))
        ));
        assert!(matches!(
            Identity::sudo("x", Some("0")),
            Err(SpawnError::Caller)
        ));
        assert!(matches!(Identity::sudo("", None), Err(SpawnError::Caller)));
        assert!(matches!(
            Identity::sudo("-1", None),
            Err(SpawnError::Caller)
        ));
        // A number without an account: only with the group that sudo names.
        assert!(matches!(
            Identity::sudo("4123456789", None),
            Err(SpawnError::Caller)
        ));
        let stranger = Identity::sudo("4123456789", Some("4123456788")).unwrap();
        assert_eq!(stranger.groups, [Gid::from_raw(4_123_456_788)]);
        assert_eq!(stranger.name(), "4123456789");
    }
}
