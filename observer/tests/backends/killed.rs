//! The observer is killed with SIGKILL at any moment: what it watched goes on as if nothing were.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::moving::Random;
use crate::programs::SCRIPTS;
use crate::roles::role;
use crate::stage::{Stage, backends, runs};

/// What stands still for so long stands still forever.
const FOREVER: Duration = Duration::from_secs(60);

#[test]
fn what_was_run_goes_on_when_the_observer_is_killed() {
    let stage = Stage::set();
    let script = everything(&stage);
    let began = Instant::now();
    let expected = rest(&mut start(stage.command("bash").args(["-c", &script])).1);
    // A tracer slows it down, so that most moments lie before its end.
    let longest = 2 * began.elapsed().as_millis() as usize;
    let mut chance = Random::new(0x5eed);
    for backend in backends() {
        for run in 0..runs(6) {
            let mut observed = stage.run(backend);
            observed.args(["--", "bash", "-c", &script]);
            let (mut observer, mut output) = start(&mut observed);
            let moment = Duration::from_millis(chance.below(longest) as u64);
            thread::sleep(moment);
            observer.kill().unwrap();
            observer.wait().unwrap();
            assert_eq!(expected, rest(&mut output), "{backend} {run}: {moment:?}");
        }
    }
}

#[test]
fn what_was_attached_to_goes_on_when_the_observer_is_killed() {
    let stage = Stage::set();
    let script = everything(&stage);
    let expected = rest(&mut start(stage.command("bash").args(["-c", &script])).1);
    let mut chance = Random::new(0x0dd5);
    for run in 0..runs(6) {
        let (mut program, mut output) = start(stage.command("bash").args(["-c", &script]));
        let mut observer = stage
            .command(stage.observer())
            .args(["attach", "--quiet", "--backend", "ptrace"])
            .arg(program.id().to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let moment = Duration::from_millis(chance.below(1500) as u64);
        thread::sleep(moment);
        observer.kill().unwrap();
        observer.wait().unwrap();
        assert_eq!(expected, rest(&mut output), "{run}: {moment:?}");
        assert!(program.wait().unwrap().success());
    }
}

/// All that programs do, one after the other; each with its status.
fn everything(stage: &Stage) -> String {
    let mut script = String::from("echo started\n");
    for (name, part) in SCRIPTS {
        let file = stage.path(&name.replace(' ', "-"));
        fs::write(&file, part).unwrap();
        script.push_str(&format!("bash {}; echo status $?\n", file.display()));
    }
    let workout = role(&stage.roles(), "workout").join(" ");
    script.push_str(&format!("{workout}; echo status $?"));
    script
}

/// Starts it, and waits until it says so.
fn start(command: &mut Command) -> (Child, BufReader<ChildStdout>) {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "started\n");
    (child, output)
}

/// What it prints from then on, to its end.
fn rest(output: &mut BufReader<ChildStdout>) -> String {
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut text = String::new();
            output.read_to_string(&mut text).unwrap();
            sender.send(text).unwrap();
        });
        let rest = receiver.recv_timeout(FOREVER);
        // Not a panic: the scope would wait for the reader first.
        rest.unwrap_or_else(|_| {
            let _ = std::io::Write::write_all(
                &mut std::io::stderr(),
                b"a program stands still since its observer was killed\n",
            );
            std::process::abort()
        })
    })
}
