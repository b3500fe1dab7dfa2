//! Holds the documentation to what is there: links and paths that it names exist.
#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helpers too"
)]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// What a path in backticks begins with, where it means a file of the repository.
const TOP: [&str; 6] = [
    "observer/",
    "observer-ebpf/",
    "xtask/",
    "docs/",
    "fuzz/",
    ".ci/",
];

#[test]
fn what_the_pages_point_to_exists() {
    let mut faults = String::new();
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for (number, line) in (1..).zip(text.lines()) {
            let beside = page.parent().unwrap();
            let links = links(line).map(|link| beside.join(link));
            let paths = paths(line).map(|path| root().join(path));
            for target in links.chain(paths).filter(|target| !target.exists()) {
                let shown = page.strip_prefix(root()).unwrap().display();
                let _ = writeln!(faults, "{shown}:{number}: there is no {}", target.display());
            }
        }
    }
    assert!(
        faults.is_empty(),
        "the documentation points to nothing:\n{faults}"
    );
}

#[test]
fn links_and_paths_are_found() {
    let line = "see [a](docs/a.md#part), [b](https://example.org/b) and `observer/src/lib.rs`";
    assert_eq!(links(line).collect::<Vec<_>>(), ["docs/a.md"]);
    assert_eq!(paths(line).collect::<Vec<_>>(), ["observer/src/lib.rs"]);
    assert_eq!(paths("`observer run -- x`, `observer/v1 x`").count(), 0);
}

/// The targets of the links that stay within the repository, without their anchors.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target.split('#').next().unwrap_or(target))
        .filter(|target| !target.is_empty() && !target.contains("://"))
}

/// The paths that stand alone in backticks.
fn paths(line: &str) -> impl Iterator<Item = &str> {
    line.split('`')
        .skip(1)
        .step_by(2)
        .filter(|code| TOP.iter().any(|top| code.starts_with(top)) && !code.contains(' '))
}

/// The pages that people read.
fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for folder in [
        "",
        "docs",
        "docs/examples/agent-in-ci",
        "observer/tests/lab",
        "observer/tests/traces",
    ] {
        let Ok(entries) = fs::read_dir(root().join(folder)) else {
            continue;
        };
        let paths = entries.map(|entry| entry.unwrap().path());
        pages.extend(paths.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    pages.sort();
    pages
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}
