//! One run of a real host in the lab (`observer/tests/lab`), observed, and what came of it.
//!
//! Owns the starting of the lab's scripts and the reading of what they leave. What is right is
//! `compare.py`'s to say; a test adds what it wants to see besides.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// Set in CI: what would be skipped fails instead.
const REQUIRED: &str = "OBSERVER_REQUIRE_HOSTS";

/// A host and a scenario, and how they are run.
pub(crate) struct Plan {
    host: &'static str,
    scenario: &'static str,
    server: &'static str,
    wrap: &'static str,
    observer: Observer,
    backend: &'static str,
}

/// Where the observer stands.
enum Observer {
    /// `observer run`, with more words between it and the host.
    Around(&'static str),
    /// In a script that the host is started by.
    Within(String),
    /// `observer attach`, once the server runs.
    Attached,
    /// Beside it, once the server runs: this command, with `{out}` and `{pid}` filled in.
    Beside(String),
    /// Before the server's command, in the host's configuration.
    Relay,
    /// Elsewhere: the test starts it.
    Elsewhere,
}

/// Before a command, so that it has no capability, whoever starts it.
const POWERLESS: &str = "setpriv --bounding-set -all --securebits +noroot --";

impl Plan {
    pub(crate) const fn new(host: &'static str, scenario: &'static str) -> Self {
        Self {
            host,
            scenario,
            server: "plain",
            wrap: "none",
            observer: Observer::Around(""),
            backend: "ebpf",
        }
    }

    /// The server is on an SDK: `ts` or `py`.
    pub(crate) const fn server(mut self, server: &'static str) -> Self {
        self.server = server;
        self
    }

    /// The server is started through a launcher: `sh`, `npx` or `uv`.
    pub(crate) const fn wrap(mut self, wrap: &'static str) -> Self {
        self.wrap = wrap;
        self
    }

    /// The host is started by this command, inside `observer run`.
    pub(crate) fn inside(mut self, command: &'static str) -> Self {
        self.observer = Observer::Around(command);
        self
    }

    /// The host is the last words of this command line, which starts the observer itself.
    pub(crate) fn within(mut self, command: String) -> Self {
        self.observer = Observer::Within(command);
        self
    }

    /// The observer attaches itself to the running host.
    pub(crate) fn attached(mut self) -> Self {
        self.observer = Observer::Attached;
        self
    }

    /// The command attaches an observer to the running host, and keeps `{out}/audit.jsonl`.
    pub(crate) fn beside(mut self, command: String) -> Self {
        self.observer = Observer::Beside(command);
        self
    }

    /// Observer and host run without a capability, so that ptrace is what is left.
    pub(crate) const fn powerless(mut self) -> Self {
        self.backend = "ptrace";
        self
    }

    /// The observer is a relay before the server.
    pub(crate) fn relayed(mut self) -> Self {
        self.observer = Observer::Relay;
        self.backend = "relay";
        self
    }

    /// The host runs as if there were no observer.
    pub(crate) fn unobserved(mut self) -> Self {
        self.observer = Observer::Elsewhere;
        self
    }

    /// Runs it; `None`, loudly, where this machine lacks what it needs.
    pub(crate) fn run(self) -> Option<Run> {
        if let Some(reason) = self.missing() {
            let what = format!("{} {}: {reason}", self.host, self.scenario);
            assert!(
                std::env::var_os(REQUIRED).is_none(),
                "{REQUIRED} is set, but {what}"
            );
            // Not by a macro: the test runner would keep it to itself.
            let _ = writeln!(io::stderr(), "skipped: {what}");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("run");
        let mut command = script("run_host.py");
        command.args([
            self.host,
            self.scenario,
            "--server",
            self.server,
            "--wrap",
            self.wrap,
        ]);
        command.arg("--out").arg(&out);
        let observer = env!("CARGO_BIN_EXE_observer");
        let before = if self.backend == "ptrace" {
            POWERLESS
        } else {
            ""
        };
        match self.observer {
            Observer::Around(inner) => command.arg("--under").arg(format!(
                "{before} '{observer}' run --quiet --log {{out}}/audit.jsonl -- {inner}"
            )),
            Observer::Relay => command
                .arg("--relay")
                .arg(format!("'{observer}' relay --log {{out}}/audit.jsonl --")),
            Observer::Within(words) => command.arg("--under").arg(words),
            Observer::Attached => command.arg("--beside").arg(format!(
                "'{observer}' attach --quiet --log {{out}}/audit.jsonl {{pid}}"
            )),
            Observer::Beside(beside) => command.arg("--beside").arg(beside),
            Observer::Elsewhere => &mut command,
        };
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "run_host.py: {}",
            text(&output.stderr)
        );
        Some(Run {
            _folder: folder,
            out,
            backend: self.backend,
        })
    }

    /// Why it cannot be run here.
    fn missing(&self) -> Option<String> {
        if !nix::unistd::geteuid().is_root() {
            return Some("needs root".to_owned());
        }
        if self.backend == "ebpf" && !Path::new("/sys/kernel/btf/vmlinux").exists() {
            return Some("the kernel has no BTF".to_owned());
        }
        for program in ["python3", "node", "tmux", "ss", "unshare", "setpriv"] {
            let found = Command::new("sh")
                .args(["-c", "command -v \"$0\"", program])
                .output();
            if !found.is_ok_and(|found| found.status.success()) {
                return Some(format!("{program} is not installed"));
            }
        }
        let mut hosts = vec![self.host];
        hosts.extend((self.server == "ts").then_some("ts-sdk"));
        hosts.extend((self.wrap == "uv").then_some("uv"));
        let missing = hosts
            .into_iter()
            .find(|host| !hosts_folder().join(host).exists())?;
        Some(format!(
            "{missing} is not installed (observer/tests/lab/install_hosts.sh {missing})"
        ))
    }
}

/// A run that is over.
pub(crate) struct Run {
    /// Removed with the run.
    _folder: TempDir,
    out: PathBuf,
    backend: &'static str,
}

impl Run {
    /// The folder with all that the run left.
    pub(crate) fn folder(&self) -> &Path {
        &self.out
    }

    /// The observer's log of it.
    pub(crate) fn log(&self) -> PathBuf {
        self.out.join("audit.jsonl")
    }

    /// The records of one type in the observer's log.
    pub(crate) fn records(&self, kind: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.log()).unwrap();
        let records = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        records.filter(|record| record["type"] == kind).collect()
    }

    /// The findings of one rule, in the order in which they were drawn.
    pub(crate) fn findings(&self, rule: &str) -> Vec<Value> {
        let mut findings = self.records("finding");
        findings.retain(|finding| finding["rule"] == rule);
        findings
    }

    /// What the lab makes of `log`: bytes and verdicts against the ground truth.
    pub(crate) fn compare(&self, log: &Path) -> Value {
        let mut command = script("compare.py");
        let output = command
            .arg(&self.out)
            .arg("--log")
            .arg(log)
            .output()
            .unwrap();
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("compare.py: {}", self.story(&output)))
    }

    /// Fails unless every byte and every verdict of `log` is right; the outcomes, call by call.
    pub(crate) fn outcomes_in(&self, log: &Path) -> Vec<String> {
        let result = self.compare(log);
        assert!(
            result["right"] == true,
            "{result:#}\nthe host said:\n{}",
            fs::read_to_string(self.out.join("host.out")).unwrap_or_default()
        );
        let calls = result["calls"].as_array().unwrap().iter();
        calls
            .map(|call| call["outcome"].as_str().unwrap().to_owned())
            .collect()
    }

    /// [`Run::outcomes_in`] its own log, which has to be of the backend that was meant.
    pub(crate) fn outcomes(&self) -> Vec<String> {
        assert_eq!(self.records("header")[0]["backend"], self.backend);
        self.outcomes_in(&self.log())
    }

    /// For a failure: what the script, the host and the observer said.
    fn story(&self, output: &Output) -> String {
        let said = |file| fs::read_to_string(self.out.join(file)).unwrap_or_default();
        format!(
            "{}\nhost: {}\nobserver: {}",
            text(&output.stderr),
            said("host.out"),
            said("observer.out")
        )
    }
}

/// The kinds of a finding's evidence.
pub(crate) fn evidence(finding: &Value) -> Vec<&str> {
    let evidence = finding["evidence"].as_array().unwrap().iter();
    evidence.map(|one| one["kind"].as_str().unwrap()).collect()
}

fn script(name: &str) -> Command {
    let lab = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lab");
    let mut command = Command::new("python3");
    command
        .arg(lab.join(name))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::null());
    command
}

/// As `install_hosts.sh` has it.
fn hosts_folder() -> PathBuf {
    let from = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    from("OBSERVER_HOSTS").map_or_else(
        || {
            let home = from("HOME").map(|home| Path::new(&home).join(".cache"));
            let cache = from("XDG_CACHE_HOME").map(PathBuf::from).or(home);
            cache.unwrap_or_default().join("observer/hosts")
        },
        PathBuf::from,
    )
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
