//! Programs that are not ours read the reports: a schema, XML and CSV parsers, a browser.
//!
//! `.ci/run` has all of them; elsewhere a test says what it lacks, unless `OBSERVER_REQUIRE_READERS`
//! is set.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::lab::{ABANDONS, HOSTILE, Lab, end, hostile_log, traces};

/// A lab with the reports of some logs in it, and among them the hostile one.
fn reports() -> Lab {
    let lab = Lab::new();
    lab.write("hostile.jsonl", &hostile_log());
    lab.write(
        "silent.jsonl",
        "{\"type\":\"header\",\"t\":0,\"schema\":\"observer/1\"}\n",
    );
    let trace = traces().join(ABANDONS);
    let cut = fs::read_to_string(&trace).expect("a trace");
    lab.write("cut.jsonl", &cut[..cut.len() - 20]);
    let formats = [
        "json=report.json",
        "junit=report.xml",
        "sarif=report.sarif",
        "csv=report.csv",
        "perfetto=report.trace",
        "html=report.html",
    ];
    let mut args = vec!["report"];
    args.extend(formats.iter().flat_map(|format| ["--format", format]));
    let trace = trace.to_str().expect("UTF-8");
    args.extend([trace, "hostile.jsonl", "silent.jsonl", "cut.jsonl"]);
    let ended = lab.observer(&args);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    lab
}

#[test]
fn schemas_and_parsers_take_the_machines_formats() {
    let Some(python) = python() else {
        return lacking("a Python with check-jsonschema and junitparser");
    };
    let lab = reports();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/report/readers/readers.py");
    let ended = end(Command::new(python).arg(script).arg(lab.0.path()));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn ci_systems_take_what_the_pages_give_them() {
    let Some(python) = python() else {
        return lacking("a Python with check-jsonschema");
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(root.join("docs/ci.md")).expect("the page");
    let blocks: Vec<_> = page
        .split("```yaml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    let [workflow, pipeline] = blocks[..] else {
        panic!("a workflow and a pipeline: {blocks:?}");
    };
    let lab = Lab::new();
    lab.write("workflow.yml", &format!("on: push\n{workflow}"));
    lab.write("pipeline.yml", pipeline);
    for (schema, file) in [
        ("github-actions", root.join("action.yml")),
        ("github-workflows", lab.path("workflow.yml")),
        ("gitlab-ci", lab.path("pipeline.yml")),
    ] {
        let ended = end(Command::new(&python)
            .args(["-m", "check_jsonschema", "--builtin-schema"])
            .arg(format!("vendor.{schema}"))
            .arg(file));
        assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    }
}

#[test]
fn an_xml_parser_takes_the_junit_report() {
    if !runs("xmllint", "--version") {
        return lacking("xmllint");
    }
    let lab = reports();
    let ended = end(Command::new("xmllint")
        .args(["--noout", "--nonet"])
        .arg(lab.path("report.xml")));
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_browser_shows_the_page_and_obeys_nothing_in_it() {
    if !runs("chromium", "--version") {
        return lacking("chromium");
    }
    let lab = reports();
    let page = lab.read("report.html");
    assert!(!page.contains("<script") && !page.contains("http://") && !page.contains("https://"));
    let ended = end(Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", lab.path("profile").display()))
        .arg(format!("file://{}", lab.path("report.html").display())));
    let dom = ended.stdout;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!dom.contains("<script"), "nothing became an element");
    let count = |part: &str| dom.matches(part).count();
    assert_eq!(count("<section "), 4, "a section for each log");
    assert_eq!(count("<svg "), 3, "a drawing for each log with calls");
    assert_eq!(count("<details "), page.matches("<details ").count());
    // What a browser shows is what was there, its control characters apart.
    let shown = HOSTILE
        .split('\u{1b}')
        .next()
        .expect("a beginning")
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    assert!(dom.contains(&shown), "the names are shown as they are");
}

/// Says that a test cannot run here; fails where it must.
fn lacking(what: &str) {
    assert!(
        std::env::var_os("OBSERVER_REQUIRE_READERS").is_none(),
        "{what} is not here"
    );
    println!("skipped: {what} is not here");
}

/// The tools' own Python as `.ci/run` installs it, or else the system's.
fn python() -> Option<PathBuf> {
    let home = std::env::var_os("HOME")
        .map(PathBuf::from)
        .unwrap_or_default();
    let cache = std::env::var_os("XDG_CACHE_HOME").map_or(home.join(".cache"), PathBuf::from);
    let candidates = [
        cache.join("observer/tools/python/bin/python"),
        "python3".into(),
    ];
    candidates.into_iter().find(|python| {
        let probe = Command::new(python)
            .args(["-c", "import check_jsonschema, jsonschema, junitparser"])
            .output();
        probe.is_ok_and(|output| output.status.success())
    })
}

fn runs(program: &str, argument: &str) -> bool {
    let probe = Command::new(program).arg(argument).output();
    probe.is_ok_and(|output| output.status.success())
}
