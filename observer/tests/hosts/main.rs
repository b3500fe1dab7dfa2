//! Real hosts under the observer, in the running kernel: offline, against a mock model, with a
//! server that keeps the ground truth. Each test holds every byte and every verdict against it.
//!
//! Needs root, BPF, Python, Node, tmux and installed hosts; says "skipped:" where one is missing,
//! and fails instead where `OBSERVER_REQUIRE_HOSTS` is set, as in CI.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, in its helpers too"
)]

mod example;
mod run;
mod view;

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use run::{Plan, evidence};

#[test]
fn codex_old_abandons_a_call_and_sends_it_again() {
    let Some(run) = Plan::new("codex-old", "timeout-retry").run() else {
        return;
    };
    assert_eq!(run.outcomes()[0], "abandoned");
    let findings = run.findings("abandoned-call");
    let of_the_first: Vec<_> = findings
        .iter()
        .filter(|finding| finding["id"] == findings[0]["id"])
        .collect();
    let last = of_the_first.last().unwrap();
    assert_eq!(last["confidence"], "probable", "{findings:#?}");
    assert!(evidence(last).contains(&"retry"), "{findings:#?}");
}

#[test]
fn the_late_answer_to_an_abandoned_call_confirms_it() {
    let Some(run) = Plan::new("codex-old", "timeout-retry-late").run() else {
        return;
    };
    assert_eq!(run.outcomes()[0], "abandoned");
    let findings = run.findings("abandoned-call");
    let confirmed = findings
        .iter()
        .find(|finding| finding["confidence"] == "confirmed")
        .unwrap();
    assert!(
        evidence(confirmed).contains(&"late-answer"),
        "{findings:#?}"
    );
    let earlier = &findings[0];
    assert_eq!(earlier["confidence"], "probable", "{findings:#?}");
    assert_eq!(confirmed["supersedes"], earlier["finding"], "{findings:#?}");
}

#[test]
fn codex_cancels_a_call_before_it_sends_it_again() {
    let Some(run) = Plan::new("codex", "timeout-retry").run() else {
        return;
    };
    assert_eq!(run.outcomes(), ["cancelled", "cancelled"]);
    assert_eq!(
        run.findings("abandoned-call"),
        Vec::<serde_json::Value>::new()
    );
}

#[test]
fn codex_old_says_nothing_when_its_user_presses_esc() {
    let Some(run) = Plan::new("codex-old", "esc").run() else {
        return;
    };
    assert_eq!(run.outcomes(), ["abandoned"]);
    let findings = run.findings("abandoned-call");
    assert_eq!(findings[0]["confidence"], "probable", "{findings:#?}");
    assert!(evidence(&findings[0]).contains(&"key-esc"), "{findings:#?}");
}

#[test]
fn claude_code_cancels_when_its_user_presses_esc() {
    let Some(run) = Plan::new("claude-code", "esc").run() else {
        return;
    };
    assert_eq!(run.outcomes(), ["cancelled"]);
}

#[test]
fn claude_code_takes_its_server_down_on_sigint() {
    let Some(run) = Plan::new("claude-code", "sigint").run() else {
        return;
    };
    assert_eq!(run.outcomes(), ["torn-down"]);
    let signals = run.records("interrupt");
    assert!(
        signals.iter().any(|signal| signal["kind"] == "sigint"),
        "{signals:#?}"
    );
}

#[test]
fn a_killed_host_tears_down_and_abandons_nothing() {
    let Some(run) = Plan::new("codex", "sigkill").run() else {
        return;
    };
    assert_eq!(run.outcomes(), ["torn-down"]);
}

#[test]
fn without_a_capability_the_same_is_seen() {
    sees_the_retry(Plan::new("codex-old", "timeout-retry").powerless());
}

#[test]
fn a_relay_sees_that_codex_old_abandons_a_call() {
    sees_the_retry(Plan::new("codex-old", "timeout-retry").relayed());
}

#[test]
fn a_relay_sees_that_claude_code_cancels_a_call() {
    let Some(run) = Plan::new("claude-code", "timeout").relayed().run() else {
        return;
    };
    assert_eq!(run.outcomes(), ["cancelled"]);
}

/// Codex writes with `writev` into pipes.
#[test]
fn a_megabyte_through_pipes() {
    whole(Plan::new("codex", "big"));
    whole(Plan::new("codex", "big").server("ts"));
}

/// Claude Code writes with `sendto` into a socket pair a direction.
#[test]
fn a_megabyte_through_bun_socketpairs() {
    whole(Plan::new("claude-code", "big"));
    whole(Plan::new("claude-code", "big").server("ts"));
}

/// Node writes with `write` into a socket pair a direction.
#[test]
fn a_megabyte_through_node_socketpairs() {
    whole(Plan::new("ts-sdk", "big"));
    whole(Plan::new("ts-sdk", "big").server("ts"));
}

#[test]
fn a_server_behind_launchers() {
    for launcher in ["sh", "npx", "uv"] {
        whole(Plan::new("ts-sdk", "big").wrap(launcher));
        whole(Plan::new("codex", "ok").wrap(launcher));
    }
}

#[test]
fn a_host_in_its_own_pid_namespace() {
    whole(Plan::new("ts-sdk", "big").inside("unshare --pid --fork --mount-proc"));
    whole(Plan::new("codex", "ok").inside("unshare --pid --fork --mount-proc"));
}

#[test]
fn a_host_that_ran_already() {
    let Some(run) = Plan::new("codex-old", "timeout-retry").attached().run() else {
        return;
    };
    assert_eq!(run.outcomes()[0], "abandoned");
}

/// Both use the ids 0, 1 and 2 at the same time, and one log holds both.
#[test]
fn two_hosts_with_equal_ids() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("audit.jsonl");
    let mut watch = Command::new(env!("CARGO_BIN_EXE_observer"))
        .args(["watch", "--quiet", "--log"])
        .arg(&log)
        .env_remove("CI")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    for _ in 0..100 {
        if fs::metadata(&log).is_ok_and(|file| file.len() > 0) {
            break;
        }
        thread::sleep(Duration::from_millis(50));
    }
    let other = thread::spawn(|| Plan::new("ts-sdk", "timeout-retry").unobserved().run());
    let abandoning = Plan::new("codex-old", "timeout-retry").unobserved().run();
    let other = other.join().unwrap();
    kill(Pid::from_raw(watch.id().cast_signed()), Signal::SIGINT).unwrap();
    watch.wait().unwrap();
    let (Some(abandoning), Some(other)) = (abandoning, other) else {
        return;
    };
    assert_eq!(abandoning.outcomes_in(&log)[0], "abandoned");
    assert_eq!(other.outcomes_in(&log), ["cancelled"]);
}

/// The comparison itself can fail: a log that lacks a line, or has another, is wrong.
#[test]
fn a_changed_log_is_not_right() {
    let Some(run) = Plan::new("ts-sdk", "ok").run() else {
        return;
    };
    assert_eq!(run.outcomes(), ["answered"]);
    let log = fs::read_to_string(run.log()).unwrap();
    let answer = log
        .lines()
        .find(|line| line.contains(r#""text":"hello""#))
        .unwrap();
    let changed = run.log().with_extension("changed");
    for text in [
        log.replace(&format!("{answer}\n"), ""),
        log.replace(r#""text":"hello""#, r#""text":"hullo""#),
        log.replace(r#""outcome":"answered""#, r#""outcome":"abandoned""#),
    ] {
        fs::write(&changed, text).unwrap();
        assert_eq!(run.compare(&changed)["right"], false);
    }
}

/// Runs it; the call that is sent again has to be abandoned because of that.
fn sees_the_retry(plan: Plan) {
    if let Some(run) = plan.run() {
        assert_eq!(run.outcomes()[0], "abandoned");
        let findings = run.findings("abandoned-call");
        let told = |finding| evidence(finding).contains(&"retry");
        assert!(findings.iter().any(told), "{findings:#?}");
    }
}

/// Runs it; every byte has to be in the log, and every call answered.
fn whole(plan: Plan) {
    if let Some(run) = plan.run() {
        let outcomes = run.outcomes();
        assert!(
            outcomes.iter().all(|outcome| outcome == "answered"),
            "{outcomes:?}"
        );
        assert_eq!(run.records("gap"), Vec::<serde_json::Value>::new());
    }
}
