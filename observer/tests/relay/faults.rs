//! When the relay, or what it writes to, fails: the session is as it would be without it.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill, killpg};

use super::{Bench, End, Running, alike, is_alive, of_type, wait_for};

/// Says its pid, and echoes.
const ECHO: [&str; 3] = ["sh", "-c", "echo $$; exec cat"];

/// How often each kind of sudden death is tried.
pub(super) fn deaths() -> u64 {
    let wanted = std::env::var("OBSERVER_RELAY_DEATHS").ok();
    wanted.and_then(|number| number.parse().ok()).unwrap_or(10)
}

/// A session under a relay with this log; what came of it, and what was said on stderr.
fn session(bench: &Bench, options: &[&str]) -> (String, End, String) {
    let mut command = bench.command_with(options, &["sh", "-c", "cat; exit 9"]);
    let mut running = Running::start(command.stderr(Stdio::piped()));
    let mut stdin = running.child.stdin.take().unwrap();
    let poured = thread::spawn(move || {
        for id in 0..2000 {
            writeln!(
                stdin,
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}"
            )
            .unwrap();
        }
    });
    let rest = running.rest();
    poured.join().unwrap();
    let end = running.wait();
    let mut said = String::new();
    running
        .child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    (rest, end, said)
}

#[test]
fn a_log_that_cannot_be_written_does_not_end_the_session() {
    let bench = Bench::relayed();
    let (expected, ..) = session(&bench, &["--log", "audit.jsonl"]);
    assert_eq!(expected.lines().count(), 2000);
    let cases: [(&[&str], &str); 3] = [
        (
            &["--log", "/dev/full"],
            "cannot write to /dev/full: No space left on device",
        ),
        (
            &["--log", "none/audit.jsonl"],
            "cannot open none/audit.jsonl: No such file",
        ),
        (
            &["--log", "/dev/null/audit.jsonl"],
            "cannot open /dev/null/audit.jsonl: Not a directory",
        ),
    ];
    for (options, complaint) in cases {
        let (rest, end, said) = session(&bench, options);
        assert_eq!((rest, end), (expected.clone(), End::Code(9)), "{options:?}");
        assert!(said.contains(complaint), "{said}");
        assert_eq!(said.lines().count(), 1, "it is said once: {said}");
    }
}

#[test]
fn a_stdout_that_is_closed_from_the_beginning_is_no_fault() {
    alike(&("in\n".to_owned(), End::Code(0)), |bench| {
        let server = bench.command(&["sh", "-c", "cat > heard"]);
        let words = std::iter::once(server.get_program()).chain(server.get_args());
        let mut command = std::process::Command::new("sh");
        command
            .args(["-c", "exec \"$@\" >&-", "sh"])
            .args(words)
            .current_dir(bench.folder.path());
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"in\n").unwrap();
        let end = End::of(child.wait().unwrap());
        (fs::read_to_string(bench.path("heard")).unwrap(), end)
    });
}

#[test]
fn killing_the_relay_kills_the_server_and_nothing_stays() {
    for death in 0..deaths() {
        alike(&(End::Signal(9), true), |bench| {
            let mut running = bench.start(&ECHO);
            let server: u32 = running.line().parse().unwrap();
            let mut stdin = running.child.stdin.take().unwrap();
            let writer = thread::spawn(move || while stdin.write_all(&[b'x'; 5000]).is_ok() {});
            thread::sleep(Duration::from_micros(death * 700));
            kill(running.pid(), Signal::SIGKILL).unwrap();
            // The end of file comes, so nobody holds the host's pipe.
            running.stdout.read_to_end(&mut Vec::new()).unwrap();
            writer.join().unwrap();
            let end = running.wait();
            (end, wait_for(|| (!is_alive(server)).then_some(true)))
        });
    }
}

#[test]
fn killing_the_group_leaves_a_whole_log() {
    let bench = Bench::relayed();
    let mut running = bench.start(&ECHO);
    running.line();
    let request = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}"#;
    let stdin = running.child.stdin.as_mut().unwrap();
    stdin
        .write_all(&[request.as_slice(), b"\n"].concat())
        .unwrap();
    running.line();
    killpg(running.pid(), Signal::SIGKILL).unwrap();
    assert_eq!(running.wait(), End::Signal(9));
    let records = bench.records();
    let interrupt = of_type(&records, "interrupt").pop().unwrap();
    assert_eq!(interrupt["kind"], "sigkill");
    let exit = of_type(&records, "process")
        .into_iter()
        .find(|process| process["event"] == "exit");
    assert_eq!(exit.unwrap()["status"]["signal"], 9);
    assert!(
        of_type(&records, "message")
            .iter()
            .any(|message| message["from"] == "client")
    );
}

#[test]
fn killing_the_passing_process_ends_the_session_as_closed_pipes_do() {
    if !cfg!(target_os = "linux") {
        println!("skipped: the relay's processes cannot be found without /proc");
        return;
    }
    for _ in 0..deaths() {
        let bench = Bench::relayed();
        let mut running = bench.start(&ECHO);
        let server: u32 = running.line().parse().unwrap();
        let passer = passer(running.child.id(), server);
        kill(nix::unistd::Pid::from_raw(passer), Signal::SIGKILL).unwrap();
        // `cat` gets the end of file, and ends by itself.
        assert_eq!(running.rest(), "");
        assert_eq!(running.wait(), End::Code(0));
    }
}

/// The child of the front that leads a session of its own.
fn passer(front: u32, server: u32) -> i32 {
    let children = fs::read_to_string(format!("/proc/{front}/task/{front}/children")).unwrap();
    let children = children
        .split_whitespace()
        .map(|pid| pid.parse::<i32>().unwrap());
    let leads = |pid: &i32| {
        let pid = nix::unistd::Pid::from_raw(*pid);
        nix::unistd::getsid(Some(pid)) == Ok(pid)
    };
    children
        .filter(|pid| pid.cast_unsigned() != server)
        .find(leads)
        .unwrap()
}

#[test]
fn the_log_is_for_its_owner_only() {
    let bench = Bench::relayed();
    bench.start(&["true"]).wait();
    bench.records();
    let mode = fs::metadata(bench.path("audit.jsonl"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}
