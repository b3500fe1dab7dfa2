//! Where programs stand that an ordinary user runs: `observer`, and this binary for its roles.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::unistd::User;
use tempfile::TempDir;

/// A folder that everybody may enter and write to.
pub(crate) struct Stage {
    folder: TempDir,
}

impl Stage {
    pub(crate) fn set() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let stage = Self { folder };
        fs::copy(env!("CARGO_BIN_EXE_observer"), stage.observer()).unwrap();
        fs::copy(std::env::current_exe().unwrap(), stage.roles()).unwrap();
        stage
    }

    pub(crate) fn observer(&self) -> PathBuf {
        self.path("observer")
    }

    /// The binary that plays roles.
    pub(crate) fn roles(&self) -> PathBuf {
        self.path("roles")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A command of an ordinary user.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .current_dir("/")
            .stdin(Stdio::null())
            .env("NO_COLOR", "1")
            .env_remove("CI")
            .env_remove("SUDO_UID")
            .env_remove("DOAS_USER");
        if nix::unistd::geteuid().is_root() {
            let nobody = User::from_name("nobody").unwrap().unwrap();
            command.uid(nobody.uid.as_raw()).gid(nobody.gid.as_raw());
        }
        command
    }

    /// `observer run` by this backend; what it runs is for the caller to add.
    pub(crate) fn run(&self, backend: &str) -> Command {
        let mut command = match backend {
            "ptrace" => self.command(self.observer()),
            // It takes the rights that this process has.
            _ => Command::new(self.observer()),
        };
        command
            .stdin(Stdio::null())
            .env_remove("CI")
            .env_remove("SUDO_UID")
            .args(["run", "--quiet", "--backend", backend]);
        command
    }
}

/// The backends that watch here what is started.
pub(crate) fn backends() -> Vec<&'static str> {
    let doctor = Command::new(env!("CARGO_BIN_EXE_observer"))
        .args(["doctor", "--backend", "ebpf"])
        .output()
        .unwrap();
    if doctor.status.success() {
        return vec!["ptrace", "ebpf"];
    }
    assert!(
        std::env::var_os("OBSERVER_REQUIRE_KERNEL").is_none(),
        "OBSERVER_REQUIRE_KERNEL is set, but:\n{}",
        String::from_utf8_lossy(&doctor.stdout)
    );
    // Not by a macro: the test runner would keep it to itself.
    let _ = writeln!(std::io::stderr(), "skipped: eBPF is not allowed here");
    vec!["ptrace"]
}

/// How often a test of chance repeats itself.
pub(crate) fn runs(default: usize) -> usize {
    std::env::var("OBSERVER_TEST_RUNS").map_or(default, |runs| runs.parse().unwrap())
}
