//! Attaching by ptrace to what runs already, as its own user.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStderr, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::conversation::WAYS;
use crate::roles::role;
use crate::stage::Stage;

#[test]
fn a_host_that_runs_already_is_seen_with_its_servers() {
    let stage = Stage::set();
    let file = stage.path("audit.jsonl");
    let way = WAYS[0];
    let host = role(
        &stage.roles(),
        &format!("host {} {} {}", way.kind, way.write, way.read),
    );
    // The shell has run for a while when it starts the host.
    let script = "read -r go; \"$@\"; sleep 0.1";
    let mut shell = stage
        .command("bash")
        .args(["-c", script, "bash"])
        .args(host)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut observer = stage
        .command(stage.observer())
        .args(["attach", "--backend", "ptrace", "--log"])
        .arg(&file)
        .arg(shell.id().to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(observer.stderr.take().unwrap());
    await_text(&mut said, "watching");
    shell.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert!(shell.wait().unwrap().success());
    // It ends with what it was attached to.
    assert_eq!(observer.wait().unwrap().code(), Some(0));

    let text = fs::read_to_string(file).unwrap();
    let records: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(records[0]["backend"], "ptrace");
    let count = |kind| {
        records
            .iter()
            .filter(|record| record["type"] == kind)
            .count()
    };
    assert_eq!((count("message"), count("gap")), (29, 0), "{text:.3000}");
}

#[test]
fn a_program_with_many_threads_goes_on_when_it_is_let_go() {
    let stage = Stage::set();
    let workout = role(&stage.roles(), "workout");
    let run = || {
        stage
            .command(&workout[0])
            .args(&workout[1..])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let expected = run().wait_with_output().unwrap().stdout;
    let program = run();
    let mut observer = attach(&stage, program.id());
    let mut said = BufReader::new(observer.stderr.take().unwrap());
    await_text(&mut said, "watching");
    kill(Pid::from_raw(observer.id() as i32), Signal::SIGINT).unwrap();
    assert_eq!(observer.wait().unwrap().code(), Some(0));
    let output = program.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(output.stdout, expected);
}

#[test]
fn a_process_has_one_tracer_and_is_told_so() {
    let stage = Stage::set();
    let mut sleeper = stage.command("sleep").arg("60").spawn().unwrap();
    let mut first = attach(&stage, sleeper.id());
    let mut said = BufReader::new(first.stderr.take().unwrap());
    await_text(&mut said, "watching");
    let second = attach(&stage, sleeper.id()).wait_with_output().unwrap();
    assert_eq!(second.status.code(), Some(4));
    let text = String::from_utf8(second.stderr).unwrap();
    assert!(text.contains("traces it already"), "{text}");
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert_eq!(first.wait().unwrap().code(), Some(0));
}

fn attach(stage: &Stage, pid: u32) -> std::process::Child {
    let mut command: Command = stage.command(stage.observer());
    command.args(["attach", "--backend", "ptrace", &pid.to_string()]);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn await_text(said: &mut BufReader<ChildStderr>, text: &str) {
    let mut line = String::new();
    while !line.contains(text) {
        line.clear();
        assert_ne!(
            said.read_line(&mut line).unwrap(),
            0,
            "it does not say {text:?}"
        );
    }
}
