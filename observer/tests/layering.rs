//! Holds the house's shape: the direction of `use`, the pure layers' own lints, and what every
//! source file owes its reader. Reads the sources as text; compiles nothing.
#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helpers too"
)]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// The layers of `observer/src`. Each may name itself and those before it, nothing else.
const LAYERS: [&str; 13] = [
    "capture", "stream", "jsonrpc", "session", "verdict", "record", "wording", "pipeline",
    "policy", "report", "sink", "tui", "cli",
];

/// No clock, no I/O, no thread: these deny the lists in `clippy.toml` for themselves.
const PURE: [&str; 12] = [
    "stream",
    "jsonrpc",
    "session",
    "verdict",
    "record",
    "wording",
    "pipeline",
    "policy",
    "report",
    "tui/model",
    "tui/update",
    "tui/view",
];

/// Of `capture`, the other layers know the contract alone, never a backend. `cli` starts them.
const CONTRACT_ONLY: [&str; 11] = [
    "stream", "jsonrpc", "session", "verdict", "record", "wording", "pipeline", "policy", "report",
    "sink", "tui",
];

/// What a reader can hold in the head, with room for a file's tests.
const LONGEST_FILE: usize = 600;

#[test]
fn each_layer_names_only_those_before_it() {
    let mut faults = String::new();
    for file in sources("observer/src") {
        let Some(layer) = layer_of(&file) else {
            continue;
        };
        let code = code_only(&fs::read_to_string(&file).unwrap());
        for path in crate_paths(&code, &file) {
            if let Some(fault) = forbidden(layer, &path) {
                let _ = writeln!(faults, "{}:{}: {fault}", shown(&file), path.line);
            }
        }
    }
    assert!(
        faults.is_empty(),
        "data goes one way, {}:\n{faults}",
        LAYERS.join(" -> ")
    );
}

#[test]
fn pure_layers_deny_clocks_and_io() {
    let mut faults = String::new();
    for layer in PURE {
        let root = layer_root(layer);
        let code = code_only(&fs::read_to_string(&root).unwrap());
        let wanted = "#![deny(clippy::disallowed_methods, clippy::disallowed_types)]";
        if !code.contains(wanted) {
            let _ = writeln!(faults, "{}: lacks {wanted}", shown(&root));
        }
        for file in sources("observer/src").filter(|file| is_in(file, layer)) {
            let code = code_only(&fs::read_to_string(&file).unwrap());
            for (number, line) in (1..).zip(code.lines()) {
                let lifts = line.contains("allow(") || line.contains("expect(");
                if lifts && line.contains("clippy::disallowed_") {
                    let _ = writeln!(faults, "{}:{number}: lifts the ban", shown(&file));
                }
                for word in [
                    "std::fs",
                    "std::net::Tcp",
                    "std::thread",
                    "tokio",
                    "nix::",
                    "libc::",
                ] {
                    if line.contains(word) {
                        let _ = writeln!(faults, "{}:{number}: names {word}", shown(&file));
                    }
                }
            }
        }
    }
    assert!(
        faults.is_empty(),
        "a pure layer has no clock and no I/O:\n{faults}"
    );
}

#[test]
fn files_are_short_and_say_what_they_own() {
    let mut faults = String::new();
    for file in ["observer", "observer-ebpf", "xtask", "fuzz"]
        .into_iter()
        .flat_map(sources)
    {
        let text = fs::read_to_string(&file).unwrap();
        let lines = text.lines().count();
        if lines > LONGEST_FILE {
            let _ = writeln!(
                faults,
                "{}: {lines} lines, over {LONGEST_FILE}",
                shown(&file)
            );
        }
        // A script's `#!` and crate attributes may stand before the docs.
        let opening = text
            .lines()
            .find(|line| !line.is_empty() && !line.starts_with('#'));
        if !opening.is_some_and(|line| line.starts_with("//!")) {
            let _ = writeln!(
                faults,
                "{}: does not begin with module docs (`//!`)",
                shown(&file)
            );
        }
    }
    assert!(faults.is_empty(), "each file can be read alone:\n{faults}");
}

#[test]
fn every_module_of_the_library_is_a_layer() {
    let lib = fs::read_to_string(root().join("observer/src/lib.rs")).unwrap();
    let modules: Vec<&str> = names_after(&lib, "pub mod ");
    for module in &modules {
        assert!(
            LAYERS.contains(module),
            "`{module}` has no place in the order of the layers"
        );
    }
    for layer in LAYERS {
        assert!(
            modules.contains(&layer),
            "`{layer}` is no public module of the library"
        );
    }
}

/// A path that begins at the crate's root, `crate::capture::event` as `["capture", "event"]`.
struct CratePath {
    line: usize,
    names: Vec<String>,
}

/// Why `layer` may not name `path`.
fn forbidden(layer: &str, path: &CratePath) -> Option<String> {
    let target = path.names.first()?;
    let place = |name: &str| LAYERS.iter().position(|one| *one == name);
    let (own, other) = (place(layer)?, place(target)?);
    let full = path.names.join("::");
    if other > own {
        return Some(format!(
            "`{layer}` names `crate::{full}`, which comes after it"
        ));
    }
    // Modules are lower case; what the contract exports is not.
    let into_backend = target == "capture"
        && path
            .names
            .get(1)
            .is_some_and(|name| name.starts_with(char::is_lowercase));
    if CONTRACT_ONLY.contains(&layer) && into_backend {
        return Some(format!("`{layer}` names `crate::{full}`, inside a backend"));
    }
    None
}

/// Every path in `code` that begins at the root of the crate, wherever it stands.
fn crate_paths(code: &str, file: &Path) -> Vec<CratePath> {
    let mut found = Vec::new();
    let up_to_root = format!("{}::", vec!["super"; depth_of(file)].join("::"));
    for start in ["crate::", "observer::", up_to_root.as_str()] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            let line = code[..at].matches('\n').count() + 1;
            let mut paths = Vec::new();
            read_tree(&code[at + start.len()..], &mut Vec::new(), &mut paths);
            found.extend(paths.into_iter().map(|names| CratePath { line, names }));
        }
    }
    found
}

/// Reads one path or use tree (`a::{b, c::d}`) and returns what is left of the text.
fn read_tree<'a>(text: &'a str, prefix: &mut Vec<String>, paths: &mut Vec<Vec<String>>) -> &'a str {
    let mut rest = text.trim_start();
    let depth = prefix.len();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside.trim_start();
        while !rest.is_empty() && !rest.starts_with('}') {
            rest = read_tree(rest, prefix, paths);
            // An alias (`as x`), or what else stands before the next member.
            rest = rest.trim_start_matches(|c| c != ',' && c != '}');
            rest = rest.trim_start_matches(',').trim_start();
        }
        return rest.strip_prefix('}').unwrap_or(rest);
    }
    let end = rest
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(rest.len());
    if end > 0 {
        prefix.push(rest[..end].to_owned());
        rest = &rest[end..];
        if let Some(next) = rest.strip_prefix("::") {
            rest = read_tree(next, prefix, paths);
        } else {
            paths.push(prefix.clone());
        }
    } else {
        // `*`, or a turbofish: the path ends here.
        paths.push(prefix.clone());
    }
    prefix.truncate(depth);
    rest
}

/// The layer that a file of `observer/src` belongs to; `lib.rs` and `main.rs` to none.
fn layer_of(file: &Path) -> Option<&'static str> {
    let inside = file.strip_prefix(root().join("observer/src")).ok()?;
    let first = inside.components().next()?.as_os_str().to_str()?;
    LAYERS
        .into_iter()
        .find(|layer| *layer == first.trim_end_matches(".rs"))
}

/// Whether a file belongs to a module of `observer/src`, or to one inside it.
fn is_in(file: &Path, module: &str) -> bool {
    let module = root().join("observer/src").join(module);
    file.starts_with(&module) || file == module.with_extension("rs")
}

/// How many `super` lead from the module of `file` to the crate's root.
fn depth_of(file: &Path) -> usize {
    let inside = file.strip_prefix(root().join("observer/src")).unwrap();
    let folders = inside.components().count() - 1;
    if inside.ends_with("mod.rs") {
        folders
    } else {
        folders + 1
    }
}

fn layer_root(layer: &str) -> PathBuf {
    let file = root().join(format!("observer/src/{layer}.rs"));
    if file.exists() {
        file
    } else {
        root().join(format!("observer/src/{layer}/mod.rs"))
    }
}

/// The names after `keyword` at the beginning of a line, up to the semicolon.
fn names_after<'a>(text: &'a str, keyword: &str) -> Vec<&'a str> {
    text.lines()
        .filter_map(|line| line.strip_prefix(keyword)?.strip_suffix(';'))
        .collect()
}

/// `text` without what is in comments and literals; lines stay where they are.
fn code_only(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = raw_string(rest) {
            length
        } else if c == '"' {
            quoted(rest, '"')
        } else if c == '\'' && is_char_literal(rest) {
            quoted(rest, '\'')
        } else {
            code.push(c);
            rest = &rest[c.len_utf8()..];
            // The `r` of a name is no raw string: a word is taken whole.
            if c.is_alphanumeric() || c == '_' {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
                let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
                code.push_str(word);
                rest = after;
            }
            continue;
        };
        code.extend(rest[..skipped].matches('\n'));
        rest = &rest[skipped..];
    }
    code
}

/// The length of the raw string that `text` begins with.
fn raw_string(text: &str) -> Option<usize> {
    let after = text.strip_prefix('b').unwrap_or(text).strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let body = after[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let end = body
        .find(&close)
        .map_or(body.len(), |end| end + close.len());
    Some(text.len() - body.len() + end)
}

/// The length of the literal that `text` begins with, its quotes included.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Whether the `'` that `text` begins with opens a literal, and not a lifetime.
fn is_char_literal(text: &str) -> bool {
    let mut after = text.chars().skip(1);
    let first = after.next();
    first == Some('\\') || after.next() == Some('\'')
}

/// The Rust files below a folder of the repository; none where there is no such folder.
fn sources(folder: &str) -> impl Iterator<Item = PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(folder) else {
            continue;
        };
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files.into_iter()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

fn shown(file: &Path) -> String {
    file.strip_prefix(root())
        .unwrap_or(file)
        .display()
        .to_string()
}

#[test]
fn the_reader_of_paths_sees_what_a_compiler_would() {
    let file = root().join("observer/src/session/pairing.rs");
    let read = |text: &str| -> Vec<String> {
        crate_paths(&code_only(text), &file)
            .iter()
            .map(|path| path.names.join("::"))
            .collect()
    };
    assert_eq!(read("use crate::verdict::Judge;"), ["verdict::Judge"]);
    assert_eq!(
        read("use crate::{capture::{Pid, StreamId as S}, jsonrpc};"),
        ["capture::Pid", "capture::StreamId", "jsonrpc"]
    );
    assert_eq!(read("fn f(x: &crate::sink::Line<'_>) {}"), ["sink::Line"]);
    assert_eq!(
        read("use super::super::record::Record;"),
        ["record::Record"]
    );
    assert_eq!(read("use super::event::Side;"), Vec::<String>::new());
    assert_eq!(
        read("// crate::cli\n/* crate::cli */ const A: &str = \"crate::cli\";"),
        [""; 0]
    );
    assert_eq!(
        read("const A: &str = r#\"\"crate::cli\"#; fn f<'a>(a: &'a str) {}"),
        [""; 0]
    );
    assert_eq!(
        read("const Q: char = '\"'; use crate::cli::Args;"),
        ["cli::Args"]
    );

    let up = CratePath {
        line: 1,
        names: vec!["verdict".into(), "Judge".into()],
    };
    assert!(forbidden("session", &up).is_some());
    assert!(forbidden("record", &up).is_none());
    let backend = CratePath {
        line: 1,
        names: vec!["capture".into(), "ebpf".into()],
    };
    assert!(forbidden("session", &backend).is_some());
    assert!(forbidden("cli", &backend).is_none());
}
