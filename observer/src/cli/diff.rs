//! `observer diff`: what changed from one log to another.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};

use super::{Exit, Failure, SettingsArgs, judge, rules, say};
use crate::compare::{Change, Count, Tally, Turn, compare};
use crate::record::Word;
use crate::verdict;
use crate::wording::observed;

fn names() -> impl Iterator<Item = &'static str> {
    verdict::rules().map(|rule| rule.name)
}

/// Compare two audit logs: which calls are abandoned now, and were not
///
/// Judges both anew and lists, by rule and tool, what started, stopped, or became more or less: by
/// the share of a tool's calls, not by their number. Exits with 1 where it got worse: a finding of
/// severity warning or error started, or became more. What is only in NEW counts as started.
///
/// The rules of servers count as those of hosts do: a host that now cancels shows a server that does
/// not listen. --rule asks about one thing only.
///
/// Exits with 3 where one of the two has no MCP message: then there is nothing to compare; and where
/// one breaks off: what seems to have stopped may be beyond that.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  observer diff codex-0.163.jsonl codex-0.171.jsonl
  observer diff --rule abandoned-call before.jsonl after.jsonl
  observer diff --json before.jsonl after.jsonl | jq '.changes[]'")]
pub(super) struct Diff {
    /// The earlier log (`-`: stdin)
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// The later log
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// Compare this rule only; can be given several times
    #[arg(long, value_name = "RULE", value_parser = PossibleValuesParser::new(names()))]
    rule: Vec<String>,
    #[command(flatten)]
    settings: SettingsArgs,
    /// Print nothing; the exit code tells
    #[arg(long, short, help_heading = "Output")]
    quiet: bool,
    /// Print one JSON object
    #[arg(long, conflicts_with = "quiet", help_heading = "Output")]
    json: bool,
}

impl Diff {
    pub(super) fn execute(self) -> Result<Exit, Failure> {
        let (old, of_old) = self.tally(&self.old)?;
        let (new, of_new) = self.tally(&self.new)?;
        let mut changes = compare(&old, &new);
        changes.retain(|change| {
            self.rule.is_empty() || self.rule.iter().any(|rule| rule == change.rule)
        });
        let worse = changes.iter().any(Change::is_worse);
        let logs = [(self.old.as_path(), &old), (self.new.as_path(), &new)];
        if self.json {
            rules::print(&format!("{:#}\n", as_json(logs, &changes, worse)))?;
        } else if !self.quiet {
            rules::print(&as_text(logs, &changes))?;
        }
        let compared = match old.messages() == 0 || new.messages() == 0 {
            true => Exit::Incomplete,
            false if worse => Exit::Findings,
            false => Exit::Clean,
        };
        Ok(of_old.worse(of_new).worse(compared))
    }

    /// What a log amounts to, as far as it can be read.
    fn tally(&self, path: &Path) -> Result<(Tally, Exit), Failure> {
        let mut tally = Tally::default();
        let judged = judge::judge(path, &self.settings, |output| tally.handle_output(output))?;
        let exit = match judged.damage {
            Some(error) => {
                say(Failure::from(error));
                Exit::Failed
            }
            // What is not there any more may only be beyond the cut.
            None if judged.cut => Exit::Incomplete,
            None => Exit::Clean,
        };
        if let Some(shortfall) = judged.shortfall {
            say(format_args!("{}: {shortfall}", judge::name(path).display()));
        }
        Ok((tally, exit))
    }
}

fn as_text(logs: [(&Path, &Tally); 2], changes: &[Change]) -> String {
    let mut text = String::new();
    for (sign, (path, tally)) in ["-", "+"].into_iter().zip(logs) {
        let _ = writeln!(text, "{sign} {}", of_log(path, tally));
    }
    text.push('\n');
    let shown = || changes.iter().filter(|change| change.turn != Turn::Same);
    let width = |of: fn(&Change) -> usize| shown().map(of).max().unwrap_or(0);
    let rules = width(|change| change.rule.len());
    let targets = width(|change| change.target.title().chars().count());
    for change in shown() {
        let sign = if change.is_worse() { '!' } else { ' ' };
        let (turn, rule) = (change.turn.word(), change.rule);
        let (target, old, new) = (
            change.target.title(),
            counted(change.old),
            counted(change.new),
        );
        let _ = writeln!(
            text,
            "{sign} {turn:<8} {rule:<rules$}  {target:<targets$}  {old} -> {new}"
        );
    }
    let same = changes.len() - shown().count();
    let verdict = match changes.iter().filter(|change| change.is_worse()).count() {
        0 if shown().next().is_none() => "no change".into(),
        0 => "not worse".into(),
        worse => format!("worse: {worse} of the changes above"),
    };
    let unchanged = match same {
        0 => String::new(),
        same => format!("; {same} as before"),
    };
    let _ = writeln!(text, "{verdict}{unchanged}");
    text
}

/// `old.jsonl: codex-mcp-client 0.163.0; 5 calls, 1 answered, 4 abandoned`.
fn of_log(path: &Path, tally: &Tally) -> String {
    let hosts = tally.hosts().into_iter().collect::<Vec<_>>().join(", ");
    let hosts = if hosts.is_empty() {
        "no host".into()
    } else {
        hosts
    };
    let calls: u64 = tally.outcomes().values().sum();
    let mut text = format!("{}: {hosts}; {calls} calls", judge::name(path).display());
    for (outcome, count) in tally.outcomes() {
        let _ = write!(text, ", {count} {}", outcome.word());
    }
    if !tally.is_complete() {
        text.push_str("; evidence incomplete");
    }
    observed(&text, usize::MAX)
}

fn counted(count: Count) -> String {
    match count.calls {
        0 => count.findings.to_string(),
        calls => format!("{} of {calls}", count.findings),
    }
}

fn as_json(logs: [(&Path, &Tally); 2], changes: &[Change], worse: bool) -> Value {
    let [old, new] = logs.map(|(path, tally)| {
        let outcomes = tally.outcomes().iter();
        let calls: serde_json::Map<String, Value> = outcomes
            .map(|(outcome, count)| (outcome.word().to_owned(), (*count).into()))
            .collect();
        json!({
            "file": judge::name(path).to_string_lossy(),
            "hosts": tally.hosts(),
            "messages": tally.messages(),
            "calls": calls,
            "complete": tally.is_complete(),
        })
    });
    let count = |count: Count| json!({"findings": count.findings, "calls": count.calls});
    let changes = changes.iter().map(|change| {
        json!({
            "change": change.turn.word(),
            "worse": change.is_worse(),
            "rule": change.rule,
            "severity": change.severity.word(),
            "method": change.target.method,
            "name": change.target.name,
            "old": count(change.old),
            "new": count(change.new),
        })
    });
    json!({"old": old, "new": new, "changes": changes.collect::<Vec<_>>(), "worse": worse})
}
