//! The example for CI, run as it is: a host that gives calls up without a word fails it.

use std::fs;
use std::path::Path;

use crate::run::{Plan, Run};

/// A run of a host in the example's script, and the script's exit code.
fn ci(host: &'static str) -> Option<(Run, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let script = root.join("docs/examples/agent-in-ci/ci.sh");
    let words = format!(
        "env OBSERVER='{}' OBSERVER_OUT={{out}}/ci GITHUB_ACTIONS=true \
         GITHUB_STEP_SUMMARY={{out}}/summary.md \
         sh -c '\"$@\" > {{out}}/ci.out; echo $? > {{out}}/ci.code' sh '{}'",
        env!("CARGO_BIN_EXE_observer"),
        script.display()
    );
    let run = Plan::new(host, "timeout-retry").within(words).run()?;
    let code = fs::read_to_string(run.folder().join("ci.code")).unwrap();
    Some((run, code.trim().to_owned()))
}

fn said(run: &Run, file: &str) -> String {
    fs::read_to_string(run.folder().join(file)).unwrap()
}

#[test]
fn a_host_that_abandons_calls_fails_the_build() {
    let Some((run, code)) = ci("codex-old") else {
        return;
    };
    let told = said(&run, "ci.out");
    assert_eq!(code, "1", "{told}");
    assert!(told.contains("::error title=abandoned-call "), "{told}");
    assert!(said(&run, "summary.md").contains("**denied**"));
    let junit = said(&run, "ci/junit.xml");
    assert!(junit.contains("failures=\"1\""), "{junit}");
    assert!(said(&run, "ci/observer.sarif").contains("\"ruleId\": \"abandoned-call\""));
    assert!(said(&run, "ci/report.html").contains("abandoned-call"));
}

#[test]
fn a_host_that_cancels_its_calls_passes_the_build() {
    let Some((run, code)) = ci("codex") else {
        return;
    };
    let told = said(&run, "ci.out");
    assert_eq!(code, "0", "{told}");
    assert!(told.contains(": passed; "), "{told}");
    assert!(said(&run, "ci/junit.xml").contains("failures=\"0\" errors=\"0\""));
}
