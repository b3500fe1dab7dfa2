//! `cargo xtask hosts`: real hosts under the observer, each verdict held against the ground truth.
//!
//! Owns the choice of runs and the table. How a host is driven and what is right is the lab's
//! (`observer/tests/lab`).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

/// The hosts of the table in `docs/hosts.md`.
const HOSTS: [&str; 11] = [
    "codex",
    "codex-old",
    "claude-code",
    "gemini-cli",
    "ts-sdk",
    "ts-sdk2",
    "py-sdk",
    "py-agent",
    "py-sdk2",
    "rmcp",
    "cline",
];

/// Its runs share a daemon on one port, which the end of one takes from the other.
const ALONE: &str = "cline";

/// What every host can do.
const SCENARIOS: [&str; 9] = [
    "ok",
    "big",
    "parallel",
    "timeout",
    "timeout-late",
    "sigint",
    "sigterm",
    "sigkill",
    "linger",
];

/// What only a host with a model can do.
const OF_MODELS: [&str; 4] = [
    "noisy",
    "timeout-progress",
    "timeout-retry",
    "timeout-retry-late",
];

/// What only a host with a terminal can do.
const OF_TERMINALS: [&str; 3] = ["esc", "quit", "ctrl-c"];

/// What only a client library can do.
const OF_LIBRARIES: [&str; 1] = ["api-abort"];

/// Longest that a run may take, in seconds; the longest scenario takes 100.
const PATIENCE: &str = "240";

/// The table in `docs/hosts.md` stands between these lines.
const BEGIN: &str = "<!-- cargo xtask hosts --write: begin -->";
const END: &str = "<!-- cargo xtask hosts --write: end -->";

/// Run real hosts under the observer, offline, and say which verdicts are right.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Hosts to run (the lab's installer knows them); all of the table's by default.
    hosts: Vec<String>,
    /// Scenarios to run; all that the host supports by default.
    #[arg(long = "scenario", value_name = "SCENARIO")]
    scenarios: Vec<String>,
    /// How many to run at once: most of their time is waiting.
    #[arg(long, default_value_t = 3)]
    jobs: usize,
    /// The server that they talk to: the plain one, or one on an SDK.
    #[arg(long, default_value = "plain", value_parser = ["plain", "ts", "py"])]
    server: String,
    /// Write the table into docs/hosts.md.
    #[arg(long)]
    write: bool,
}

/// What `compare.py` says of a run.
#[derive(Clone, Debug, Deserialize)]
struct Verdict {
    right: bool,
    faults: Vec<String>,
    calls: Vec<Call>,
}

#[derive(Clone, Debug, Deserialize)]
struct Call {
    outcome: Option<String>,
    findings: Vec<String>,
}

type Table = BTreeMap<(String, String), Verdict>;

pub(crate) fn run(args: &Args) -> Result<()> {
    let root = crate::root()?;
    let lab = Lab {
        scripts: root.join("observer/tests/lab"),
        runs: root.join("target/lab"),
        observer: build_observer(root)?,
        server: args.server.clone(),
        alone: Mutex::default(),
    };
    let hosts: Vec<&str> = if args.hosts.is_empty() {
        HOSTS.to_vec()
    } else {
        args.hosts.iter().map(String::as_str).collect()
    };
    lab.install(&hosts)?;
    let pairs: Vec<(String, String)> = hosts
        .iter()
        .flat_map(|host| scenarios_of(host, &args.scenarios).map(|s| ((*host).to_owned(), s)))
        .collect();
    let table = lab.run_all(&pairs, args.jobs);
    let text = markdown(&hosts, &table);
    println!("{text}");
    if args.write {
        write_into(&root.join("docs/hosts.md"), &text)?;
    }
    let wrong = table.values().filter(|verdict| !verdict.right).count();
    ensure!(
        wrong == 0,
        "{wrong} of {} runs are wrong; target/lab holds them",
        table.len()
    );
    Ok(())
}

/// The scenarios that `host` supports, of those that are wanted.
fn scenarios_of(host: &str, wanted: &[String]) -> impl Iterator<Item = String> {
    let library = ["ts-sdk", "py-sdk", "rmcp"]
        .iter()
        .any(|library| host.starts_with(library));
    let own: [&[&str]; 2] = match host {
        "py-agent" => [&OF_MODELS, &[]],
        _ if library => [&OF_LIBRARIES, &[]],
        _ => [&OF_MODELS, &OF_TERMINALS],
    };
    SCENARIOS
        .iter()
        .chain(own.into_iter().flatten())
        .map(|scenario| (*scenario).to_owned())
        .filter(|scenario| wanted.is_empty() || wanted.contains(scenario))
}

fn build_observer(root: &Path) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--package", "observer"])
        .current_dir(root)
        .status()
        .context("cannot start cargo")?;
    ensure!(status.success(), "the observer does not build");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    Ok(root.join(target).join("debug/observer"))
}

/// Where the lab is, and what it runs.
struct Lab {
    scripts: PathBuf,
    runs: PathBuf,
    observer: PathBuf,
    server: String,
    /// Held by a run of [`ALONE`].
    alone: Mutex<()>,
}

impl Lab {
    fn install(&self, hosts: &[&str]) -> Result<()> {
        let status = Command::new(self.scripts.join("install_hosts.sh"))
            .args(hosts)
            .status()
            .context("cannot start install_hosts.sh")?;
        ensure!(status.success(), "not every host could be installed");
        Ok(())
    }

    /// Runs all pairs, `jobs` at a time, with a line for each as it ends.
    fn run_all(&self, pairs: &[(String, String)], jobs: usize) -> Table {
        let next = AtomicUsize::new(0);
        let (ended, runs) = mpsc::channel();
        let work = |ended: mpsc::Sender<_>| {
            while let Some(pair) = pairs.get(next.fetch_add(1, Ordering::Relaxed)) {
                let verdict = self
                    .run(&pair.0, &pair.1)
                    .unwrap_or_else(|error| Verdict::failed(&error));
                if ended.send((pair.clone(), verdict)).is_err() {
                    break;
                }
            }
        };
        thread::scope(|scope| {
            for _ in 0..jobs.max(1) {
                let ended = ended.clone();
                scope.spawn(|| work(ended));
            }
            drop(ended);
            runs.iter()
                .inspect(|((host, scenario), verdict)| {
                    println!("{host} {scenario}: {}", verdict.in_words());
                    verdict
                        .faults
                        .iter()
                        .for_each(|fault| println!("    {fault}"));
                })
                .collect()
        })
    }

    fn run(&self, host: &str, scenario: &str) -> Result<Verdict> {
        let _turn = (host == ALONE).then(|| self.alone.lock());
        let out = self.runs.join(format!("{host}-{scenario}"));
        let under = format!(
            "{} run --quiet --log {{out}}/audit.jsonl --",
            self.observer.display()
        );
        let status = Command::new("timeout")
            .args([PATIENCE, "python3"])
            .arg(self.scripts.join("run_host.py"))
            .args([
                host,
                scenario,
                "--server",
                &self.server,
                "--under",
                &under,
                "--out",
            ])
            .arg(&out)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .context("cannot start run_host.py")?;
        if !status.success() {
            bail!("run_host.py: {status}");
        }
        let output = Command::new("python3")
            .arg(self.scripts.join("compare.py"))
            .arg(&out)
            .output()
            .context("cannot start compare.py")?;
        serde_json::from_slice(&output.stdout)
            .with_context(|| String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }
}

impl Verdict {
    /// Of a run that came to nothing.
    fn failed(error: &anyhow::Error) -> Self {
        Self {
            right: false,
            faults: vec![format!("{error:#}")],
            calls: Vec::new(),
        }
    }

    /// `right: cancelled`, `wrong: answered`.
    fn in_words(&self) -> String {
        let calls: Vec<String> = self.calls.iter().map(Call::in_words).collect();
        let word = if self.right { "right" } else { "**wrong**" };
        format!(
            "{word}: {}",
            if calls.is_empty() {
                "-".to_owned()
            } else {
                calls.join(" + ")
            }
        )
    }
}

impl Call {
    /// The outcome, and how sure the finding of an abandoned call is.
    fn in_words(&self) -> String {
        let outcome = self.outcome.as_deref().unwrap_or("not seen");
        let grade = self
            .findings
            .iter()
            .find_map(|finding| finding.strip_prefix("abandoned-call "));
        grade.map_or_else(|| outcome.to_owned(), |grade| format!("{outcome} {grade}"))
    }
}

fn markdown(hosts: &[&str], table: &Table) -> String {
    let scenarios: Vec<&str> = SCENARIOS
        .into_iter()
        .chain(OF_MODELS)
        .chain(OF_TERMINALS)
        .chain(OF_LIBRARIES)
        .filter(|scenario| table.keys().any(|(_, one)| one == scenario))
        .collect();
    let mut lines = vec![
        format!("| scenario | {} |", hosts.join(" | ")),
        format!("|---{}|", "|---".repeat(hosts.len())),
    ];
    for scenario in scenarios {
        let cells = hosts.iter().map(|host| {
            let cell = table.get(&((*host).to_owned(), scenario.to_owned()));
            cell.map_or_else(|| "-".to_owned(), Verdict::in_words)
        });
        lines.push(format!(
            "| `{scenario}` | {} |",
            cells.collect::<Vec<_>>().join(" | ")
        ));
    }
    lines.join("\n")
}

/// Puts `text` between the two lines that mark the table's place.
fn write_into(path: &Path, text: &str) -> Result<()> {
    let old =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let (before, rest) = old
        .split_once(BEGIN)
        .context("docs/hosts.md has no place for the table")?;
    let (_, after) = rest
        .split_once(END)
        .context("the table in docs/hosts.md has no end")?;
    fs::write(path, format!("{before}{BEGIN}\n\n{text}\n\n{END}{after}"))
        .with_context(|| format!("cannot write {}", path.display()))
}
