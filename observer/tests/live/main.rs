//! The commands that observe, as a user calls them: real processes, the real kernel.
//!
//! What `run` does is held against each backend: ptrace everywhere, and eBPF where it is allowed. All
//! else needs root (or `CAP_BPF` and `CAP_PERFMON`) and a kernel that lets BPF in. Elsewhere each test
//! says `skipped: reason` on stderr and passes; with `OBSERVER_REQUIRE_KERNEL=1` it fails instead.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests, and what they share, fail by panicking"
)]

mod observer;
mod pty;
mod terminal;
mod view;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use observer::{Observer, backends, can_capture, log};
use serde_json::json;

/// A server that speaks MCP and takes five seconds for its only tool.
const SERVER: [&str; 2] = ["demo-part", "server"];

fn initialize(id: &str) -> String {
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": params}).to_string()
}

#[test]
fn a_command_keeps_its_status_and_its_streams() {
    for backend in backends() {
        let run = |script| Observer::new(&["run", "-q", "--backend", backend, "sh", "-c", script]);
        let output = run("read line; echo \"out $line\"; echo err >&2; exit 7")
            .input("in\n")
            .output();
        assert_eq!(output.status, Some(7), "{backend}");
        assert_eq!(output.stdout, "out in\n", "{backend}");
        assert!(output.stderr.starts_with("err\n"), "{}", output.stderr);
        assert_eq!(run("kill -TERM $$").output().status, Some(128 + 15));
    }
}

#[test]
fn a_command_that_cannot_run_has_the_codes_of_env() {
    for backend in backends() {
        for (command, status) in [("/nonexistent", 127), ("no-such-command", 127), ("/", 126)] {
            let output = Observer::new(&["run", "--backend", backend, "--", command]).output();
            assert_eq!(output.status, Some(status), "{backend} {command}");
            assert_eq!(output.stderr.lines().count(), 1, "{}", output.stderr);
        }
    }
    let unwritable = Observer::new(&["run", "--log", "/nonexistent/log", "--", "true"]).output();
    assert_eq!(unwritable.status, Some(125));
}

#[test]
fn a_run_without_mcp_is_no_success_where_strictness_is_asked_for() {
    for backend in backends() {
        let run = |options: &[&str]| {
            let run = ["run", "--quiet", "--backend", backend];
            Observer::new(&[&run, options, &["sh", "-c", "exit 7"]].concat()).output()
        };
        assert_eq!(run(&[]).status, Some(7), "{backend}");
        let strict = run(&["--strict"]);
        assert_eq!(strict.status, Some(3), "{backend}");
        assert!(
            strict.stderr.contains("no MCP message was seen"),
            "{}",
            strict.stderr
        );
    }
}

#[test]
fn a_signal_to_the_observer_is_one_to_the_command() {
    let script = "trap 'exit 5' TERM; echo ready; while :; do sleep 0.05; done";
    for backend in backends() {
        let run = ["run", "--quiet", "--backend", backend, "sh", "-c", script];
        let mut running = Observer::new(&run).start();
        assert_eq!(running.line(), "ready", "{backend}");
        running.signal(Signal::SIGTERM);
        assert_eq!(running.finish().status, Some(5), "{backend}");
    }
}

#[test]
fn signals_that_were_ignored_stay_so_and_hide_no_end() {
    let bit = |signal| 1 << (signal as u64 - 1);
    let ignored = |observer: &[&str]| {
        let output = Command::new("env")
            .args(["--ignore-signal=CHLD", "--ignore-signal=INT"])
            .args(observer)
            .args(["awk", "/^SigIgn/ { print $2 }", "/proc/self/status"])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success());
        let ignored = String::from_utf8(output.stdout).unwrap();
        let ignored = u64::from_str_radix(ignored.trim(), 16).unwrap();
        // Rust's own start changes SIGPIPE, and above the standard signals are the C library's.
        ignored & 0x7fff_ffff & !bit(Signal::SIGPIPE)
    };
    let plain = ignored(&[]);
    assert_eq!(plain & bit(Signal::SIGCHLD), bit(Signal::SIGCHLD));
    for backend in backends() {
        let observer = env!("CARGO_BIN_EXE_observer");
        let observed = ignored(&[observer, "run", "--quiet", "--backend", backend, "--"]);
        assert_eq!(plain, observed, "{backend}");
    }
}

#[test]
fn what_a_command_leaves_running_is_named_and_not_waited_for() {
    let script = "sleep 60 >/dev/null 2>&1 & echo $!; exit 3";
    for backend in backends() {
        let backend = format!("--backend={backend}");
        let run = ["run", "--linger=100ms", &backend, "sh", "-c", script];
        let mut running = Observer::new(&run).start();
        let left = running.line();
        let output = running.finish();
        nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(left.parse().unwrap()),
            Signal::SIGKILL,
        )
        .unwrap();
        assert_eq!(output.status, Some(3), "{backend}");
        assert!(
            output
                .stderr
                .contains(&format!("running still: sleep[{left}]")),
            "{}",
            output.stderr
        );
    }
}

#[test]
fn a_command_runs_as_the_user_who_called_sudo() {
    if !can_capture() {
        return;
    }
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: needs root to become another user");
        return;
    }
    let run = [
        "run",
        "--quiet",
        "--",
        "sh",
        "-c",
        "echo $(id -u) $(id -g) ${SUDO_UID-none} $USER",
    ];
    let nobody = nix::unistd::User::from_name("nobody").unwrap().unwrap();
    let output = Observer::new(&run)
        .env("SUDO_UID", &nobody.uid.to_string())
        .env("SUDO_GID", &nobody.gid.to_string())
        .output();
    assert_eq!(
        output.stdout,
        format!("{} {} none nobody\n", nobody.uid, nobody.gid)
    );

    let lost = Observer::new(&run).env("SUDO_UID", "nonsense").output();
    assert_eq!((lost.status, lost.stdout.as_str()), (Some(125), ""));
}

#[test]
fn attaching_to_a_server_brings_its_host() {
    if !can_capture() {
        return;
    }
    // This process is the host.
    let mut server = Command::new(env!("CARGO_BIN_EXE_observer"))
        .args(SERVER)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    let pid = server.id().to_string();
    let mut attached = Observer::new(&["attach", "--log", file.to_str().unwrap(), &pid]).start();
    attached.await_on_stderr("watching");

    let mut stdin = server.stdin.take().unwrap();
    let mut stdout = BufReader::new(server.stdout.take().unwrap());
    let request = initialize("of the attach test");
    writeln!(stdin, "{request}").unwrap();
    let mut answer = String::new();
    stdout.read_line(&mut answer).unwrap();
    drop(stdin);
    server.wait().unwrap();
    attached.signal(Signal::SIGINT);
    let output = attached.finish();
    assert_eq!(output.status, Some(0), "{}", output.stderr);

    let records = log(&file);
    let of_type = |wanted| {
        records
            .iter()
            .filter(move |record| record["type"] == wanted)
    };
    let messages: Vec<_> = of_type("message").map(|record| &record["json"]).collect();
    assert_eq!(messages.len(), 2, "{records:#?}");
    assert_eq!(messages[0]["id"], "of the attach test");
    assert_eq!(messages[1].to_string(), answer.trim_end());
    let connection = of_type("connection").next().unwrap();
    assert_eq!(connection["client"]["pid"], std::process::id());
    assert_eq!(connection["server"]["pid"].to_string(), pid);
    let joined = of_type("gap").all(|gap| gap["reason"] == "mid-stream");
    assert!(joined && of_type("gap").count() == 2, "{records:#?}");
    assert_eq!(of_type("call").next().unwrap()["outcome"], "answered");
}

#[test]
fn nobody_to_attach_to_is_a_wrong_use() {
    for target in ["no such program", "4194305"] {
        let output = Observer::new(&["attach", target]).output();
        assert_eq!(output.status, Some(2), "{}", output.stderr);
        assert_eq!(output.stderr.lines().count(), 1, "{}", output.stderr);
        assert!(output.stderr.contains(target), "{}", output.stderr);
    }
}

#[test]
fn watch_finds_who_speaks_mcp_and_ends_when_told() {
    if !can_capture() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    let mut watching = Observer::new(&["watch", "--log", file.to_str().unwrap()]).start();
    watching.await_on_stderr("watching");
    let mut server = Command::new(env!("CARGO_BIN_EXE_observer"))
        .args(SERVER)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let request = initialize("of the watch test");
    writeln!(server.stdin.take().unwrap(), "{request}").unwrap();
    server.wait().unwrap();
    watching.signal(Signal::SIGTERM);
    assert!(watching.finish().status.is_some());
    let records = log(&file);
    let ours = |record: &&serde_json::Value| record["json"]["id"] == "of the watch test";
    assert_eq!(records.iter().filter(ours).count(), 1);
    assert_eq!(records.last().unwrap()["type"], "summary");
}

#[test]
fn the_demo_shows_what_it_promises() {
    if !can_capture() {
        return;
    }
    let output = Observer::new(&["demo", "--quiet"]).output();
    assert_eq!(output.status, Some(0), "{}", output.stderr);
    assert!(
        output.stdout.contains("abandoned-call"),
        "{}",
        output.stdout
    );
    let strict = Observer::new(&["demo", "--quiet", "--fail-on", "abandoned-call"]).output();
    assert_eq!(strict.status, Some(1));
}

#[test]
fn the_doctor_finds_nothing_wrong_where_capturing_works() {
    if !can_capture() {
        return;
    }
    let output = Observer::new(&["doctor"]).output();
    assert_eq!(output.status, Some(0), "{}", output.stdout);
    assert!(!output.stdout.contains("FAIL"), "{}", output.stdout);
}

#[test]
fn without_rights_each_command_says_what_to_do() {
    let Some(unprivileged) = observer::for_nobody() else {
        println!("skipped: needs root to become another user");
        return;
    };
    for (args, status) in [
        (&["watch"][..], 4),
        (&["demo", "--backend", "ebpf"], 4),
        (&["attach", "1", "--backend", "ebpf"], 4),
        (&["attach", "1", "--backend", "ptrace"], 4),
        (&["run", "--backend", "ebpf", "--", "true"], 125),
    ] {
        let output = unprivileged.call(args);
        assert_eq!(output.status, Some(status), "{args:?}: {}", output.stderr);
        assert_eq!(output.stderr.lines().count(), 1, "{}", output.stderr);
        assert!(output.stderr.contains("sudo "), "{}", output.stderr);
    }
    let doctor = unprivileged.call(&["doctor", "--backend", "ebpf"]);
    assert_eq!(doctor.status, Some(4));
    assert!(
        doctor.stdout.contains("remedy: run it as root"),
        "{}",
        doctor.stdout
    );
}

#[test]
fn without_rights_ptrace_is_taken_and_said_to_be() {
    let Some(unprivileged) = observer::for_nobody() else {
        println!("skipped: needs root to become another user");
        return;
    };
    let output = unprivileged.call(&["run", "--", "sh", "-c", "exit 6"]);
    assert_eq!(output.status, Some(6), "{}", output.stderr);
    let said = output.stderr.lines().next().unwrap();
    assert!(said.contains("capturing with ptrace"), "{said}");
    assert!(said.contains("lacks CAP_BPF and CAP_PERFMON"), "{said}");

    let demo = unprivileged.call(&["demo", "--quiet"]);
    assert_eq!(demo.status, Some(0), "{}", demo.stderr);
    assert!(demo.stdout.contains("abandoned-call"), "{}", demo.stdout);
    let doctor = unprivileged.call(&["doctor"]);
    assert_eq!(doctor.status, Some(0), "{}", doctor.stdout);
    assert!(doctor.stdout.contains("with ptrace"), "{}", doctor.stdout);

    // The whole machine is none of its business, whoever asks.
    let watch = Observer::new(&["watch", "--backend", "ptrace"]).output();
    assert_eq!(watch.status, Some(4));
    assert!(watch.stderr.contains("observer attach"), "{}", watch.stderr);
}
