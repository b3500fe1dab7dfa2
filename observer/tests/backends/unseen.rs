//! What a backend sees less of than the probe: declared here, in the words of docs/capture.md.

use std::collections::BTreeSet;

/// A row of the page's table, and the keys of what the logs are compared by that it is about: none
/// where a conversation has nothing of it.
type Unseen = (&'static str, &'static [&'static str]);

const PTRACE: [Unseen; 5] = [
    ("signals that a process blocks", &[]),
    ("who sent SIGKILL from outside the scope", &[]),
    (
        "the last write of a thread that is killed in the middle of it",
        &[],
    ),
    (
        "processes that somebody else traces (gdb, strace), or that protect themselves \
         (`PR_SET_DUMPABLE`, setuid)",
        &[],
    ),
    ("what is started with `CLONE_UNTRACED`", &[]),
];

const RELAY: [Unseen; 8] = [
    ("how far the reader has got", &["read"]),
    ("signals", &["senders"]),
    ("Esc and Ctrl-C", &[]),
    ("what the host sends to the network", &["network"]),
    ("processes", &["processes"]),
    ("how the host ended", &["the host's end"]),
    ("a machine that was suspended", &[]),
    ("several servers of a host, or hosts of a machine", &[]),
];

fn declared(backend: &str) -> &'static [Unseen] {
    match backend {
        "ebpf" => &[],
        "ptrace" => &PTRACE,
        "relay" => &RELAY,
        other => panic!("no backend {other}"),
    }
}

/// What need not be equal where this backend is compared with another.
pub(crate) fn unseen(backend: &str) -> Vec<&'static str> {
    let keys = declared(backend).iter().flat_map(|(_, keys)| *keys);
    keys.copied().collect()
}

#[test]
fn the_page_declares_what_the_comparison_leaves_out() {
    for (backend, heading) in [("ptrace", "ptrace"), ("relay", "The relay")] {
        let page = include_str!("../../../docs/capture.md");
        let declared: BTreeSet<_> = declared(backend).iter().map(|(row, _)| *row).collect();
        assert_eq!(less_than_the_probe(page, heading), declared, "{backend}");
    }
}

#[test]
fn a_table_says_what_is_less() {
    let page = "## A\n|x|y|\n|-|-|\n## B\n| | probe | b |\n|---|---|---|\n| same | yes | yes |\n\
                | also | none | none; x |\n| less | all | some |\n## C\n|z|z|z|\n|-|-|-|\n|z|a|b|\n";
    assert_eq!(less_than_the_probe(page, "B"), BTreeSet::from(["less"]));
}

/// The rows of the table below a heading: all of them, or where the table has a column for the
/// probe and one for the backend, those in which the second does not begin as the first.
fn less_than_the_probe<'a>(page: &'a str, heading: &str) -> BTreeSet<&'a str> {
    let lines = page.lines();
    let section = lines
        .skip_while(|line| line.strip_prefix("## ") != Some(heading))
        .skip(1)
        .take_while(|line| !line.starts_with("## "));
    let rows = section
        .filter(|line| line.starts_with('|'))
        // Head and rule.
        .skip(2)
        .map(|row| row.trim_matches('|').split('|').map(str::trim));
    rows.filter_map(|mut cells| {
        let (name, probe, backend) = (cells.next()?, cells.next()?, cells.next());
        let is_less = backend.is_none_or(|backend| !backend.starts_with(probe));
        is_less.then_some(name)
    })
    .collect()
}
