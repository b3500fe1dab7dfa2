//! `observer rules`: what can be found.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use super::{Exit, Failure};
use crate::record::Word;
use crate::verdict::{self, About, Revision, Severity};

/// List the rules
///
/// Each with the side whose fault it finds, its severity and its meaning. `observer explain RULE`
/// says more of one.
#[derive(Debug, clap::Args)]
pub(super) struct Rules {
    /// All that is known of them, as JSON
    #[arg(long)]
    json: bool,
    /// The page `docs/verdicts.md`
    #[arg(long, hide = true, conflicts_with = "json")]
    markdown: bool,
}

impl Rules {
    pub(super) fn execute(&self) -> Result<Exit, Failure> {
        let text = match self {
            Self { json: true, .. } => json(),
            Self { markdown: true, .. } => verdict::page(),
            _ => table(),
        };
        print(&text)
    }
}

/// Prints a text on stdout; that nobody reads it any more is no failure.
pub(super) fn print(text: &str) -> Result<Exit, Failure> {
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::new(
            Exit::Failed,
            format_args!("cannot write to stdout: {error}"),
        )),
        _ => Ok(Exit::Clean),
    }
}

fn table() -> String {
    let width = |of: fn(&About) -> &str| verdict::rules().map(of).map(str::len).max().unwrap_or(0);
    let (names, sides) = (width(|about| about.name), width(|about| about.side));
    let mut table = String::new();
    for about in verdict::rules() {
        let About {
            name,
            side,
            meaning,
            ..
        } = about;
        let severity = about.severity.word();
        table.push_str(&format!(
            "{name:names$}  {side:sides$}  {severity:7}  {meaning}\n"
        ));
    }
    table
}

fn json() -> String {
    let rules: Vec<Json<'_>> = verdict::rules().map(Json::from).collect();
    #[expect(clippy::expect_used, reason = "all keys are strings")]
    let mut json = serde_json::to_string_pretty(&rules).expect("rules serialise");
    json.push('\n');
    json
}

/// A rule as `--json` has it.
#[derive(Serialize)]
struct Json<'a> {
    name: &'a str,
    side: &'a str,
    severity: Severity,
    #[serde(skip_serializing_if = "Option::is_none")]
    grading: Option<&'a str>,
    meaning: &'a str,
    evidence: &'a [&'a str],
    exceptions: &'a [&'a str],
    clauses: BTreeMap<&'a str, &'a str>,
}

impl From<&'static About> for Json<'static> {
    fn from(about: &'static About) -> Self {
        let clauses = Revision::ALL
            .into_iter()
            .filter_map(|revision| Some((revision.as_str(), about.clause(revision)?)))
            .collect();
        Self {
            name: about.name,
            side: about.side,
            severity: about.severity,
            grading: about.grading,
            meaning: about.meaning,
            evidence: about.evidence,
            exceptions: about.exceptions,
            clauses,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_line_a_rule() {
        let table = table();
        assert_eq!(table.lines().count(), verdict::rules().len());
        assert!(table.starts_with("abandoned-call"));
        assert!(table.lines().all(|line| line.ends_with('.')));
    }

    #[test]
    fn the_json_has_every_clause() {
        let rules: serde_json::Value = serde_json::from_str(&json()).unwrap();
        let first = &rules[0];
        assert_eq!(first["name"], "abandoned-call");
        assert_eq!(
            first["clauses"].as_object().map(serde_json::Map::len),
            Some(5)
        );
        assert_eq!(first["severity"], "warning");
    }
}
