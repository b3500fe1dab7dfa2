//! What the log says, and where it is.

use std::fs;
use std::io::Write;
use std::process::Command;

use serde_json::{Value, json};

use super::{Bench, End, Running, of_type, python, records, wait_for};

/// Answers what it is asked, but for `tools/call`.
const SERVER: &str = "
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if request.get('method') != 'tools/call' and 'id' in request:
        print(json.dumps({'jsonrpc': '2.0', 'id': request['id'], 'result': {}}), flush=True)
";

/// A host that initialises, calls a tool, cancels it in time, and closes.
fn session(running: &mut Running) {
    let send = |running: &mut Running, message: Value| {
        writeln!(running.child.stdin.as_mut().unwrap(), "{message}").unwrap();
    };
    send(
        running,
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}),
    );
    running.line();
    send(
        running,
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    );
    send(
        running,
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "slow"}}),
    );
    send(
        running,
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
    );
    send(
        running,
        json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}),
    );
    running.line();
    running.close_stdin();
    assert_eq!(running.rest(), "");
    assert_eq!(running.wait(), End::Code(0));
}

#[test]
fn the_log_holds_the_session_and_its_verdicts() {
    let bench = Bench::relayed();
    let server = python(SERVER);
    let mut running = bench.start(&server);
    session(&mut running);
    let records = bench.records();

    let header = &records[0];
    assert_eq!(
        (&header["type"], &header["backend"]),
        (&json!("header"), &json!("relay"))
    );
    assert_eq!(header["scope"], json!({"kind": "run", "command": server}));

    let host = std::process::id();
    let connection = of_type(&records, "connection")[0];
    assert_eq!(connection["transport"], "relay");
    assert_eq!(connection["client"]["pid"], host);

    let methods = |from: &str| -> Vec<Value> {
        let messages = of_type(&records, "message").into_iter();
        messages
            .filter(|message| message["from"] == from)
            .map(|message| message["json"].clone())
            .collect()
    };
    let asked: Vec<_> = methods("client")
        .iter()
        .map(|message| message["method"].clone())
        .collect();
    let wanted = [
        "initialize",
        "notifications/initialized",
        "tools/call",
        "notifications/cancelled",
        "ping",
    ];
    assert_eq!(asked, wanted);
    assert_eq!(
        methods("server")
            .iter()
            .map(|message| message["id"].clone())
            .collect::<Vec<_>>(),
        [json!(0), json!("p")]
    );

    let outcomes: Vec<_> = of_type(&records, "call")
        .iter()
        .map(|call| (call["id"].clone(), call["outcome"].clone()))
        .collect();
    let wanted = [
        (json!(0), json!("answered")),
        (json!(1), json!("cancelled")),
        (json!("p"), json!("answered")),
    ];
    assert!(
        wanted.iter().all(|call| outcomes.contains(call)) && outcomes.len() == 3,
        "{outcomes:?}"
    );
    assert_eq!(of_type(&records, "finding"), Vec::<&Value>::new());
    let summary = records.last().unwrap();
    assert_eq!(summary["complete"], true);
    let exit = of_type(&records, "process")
        .into_iter()
        .find(|process| process["event"] == "exit")
        .unwrap();
    assert_eq!(exit["status"], json!({"code": 0}));
}

#[test]
fn a_replay_of_the_log_says_the_same() {
    let bench = Bench::relayed();
    session(&mut bench.start(&python(SERVER)));
    let mut live = bench.records();
    let mut replay = Command::new(env!("CARGO_BIN_EXE_observer"));
    replay
        .args([
            "replay",
            "--quiet",
            "--log",
            "replayed.jsonl",
            "audit.jsonl",
        ])
        .current_dir(bench.folder.path())
        .env_remove("CI");
    assert!(replay.output().unwrap().status.success());
    let mut replayed = records(&bench.path("replayed.jsonl"));
    // Each log is sealed by itself: what the seals are of differs by the header.
    for record in live.iter_mut().chain(&mut replayed) {
        record.as_object_mut().unwrap().remove("chain");
    }
    for kind in ["call", "finding", "summary"] {
        assert_eq!(of_type(&live, kind), of_type(&replayed, kind), "{kind}");
    }
}

#[test]
fn without_options_each_run_has_a_log_of_its_own() {
    let bench = Bench::relayed();
    for _ in 0..2 {
        Running::start(&mut bench.command_with(&["--name", "my/files"], &["true"])).wait();
    }
    let folder = bench.path("state/observer/relay");
    let logs: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|log| log.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(logs.len(), 2);
    for log in logs {
        assert!(
            log.starts_with("my_files-2") && log.ends_with(".jsonl"),
            "{log}"
        );
        records(&folder.join(log));
    }
}

#[test]
fn a_log_that_is_there_is_kept() {
    let bench = Bench::relayed();
    bench.start(&["true"]).wait();
    bench.records();
    let before = fs::read(bench.path("audit.jsonl")).unwrap();
    bench.start(&["true"]).wait();
    records(&bench.path("audit-2.jsonl"));
    assert_eq!(fs::read(bench.path("audit.jsonl")).unwrap(), before);
}

#[test]
fn signals_of_the_host_are_in_the_log() {
    let bench = Bench::relayed();
    let mut running = bench.start(&[
        "sh",
        "-c",
        "trap 'exit 3' TERM; echo ready; while :; do sleep 0.01; done",
    ]);
    running.line();
    nix::sys::signal::kill(running.pid(), nix::sys::signal::Signal::SIGTERM).unwrap();
    assert_eq!(running.wait(), End::Code(3));
    let records = bench.records();
    let interrupt = of_type(&records, "interrupt").pop().unwrap();
    assert_eq!(
        (&interrupt["kind"], &interrupt["sender"]),
        (&json!("sigterm"), &json!(std::process::id()))
    );
}

/// A server that is stopped with a call in flight, each time by a host that signals it so.
#[test]
fn a_server_that_the_host_stopped_did_not_die_by_itself() {
    use nix::sys::signal::{Signal, kill, killpg};
    let ways = [(Signal::SIGINT, false), (Signal::SIGINT, true)];
    let ways = ways.into_iter().chain([(Signal::SIGKILL, true)]);
    for (signal, to_group) in ways.cycle().take(12) {
        let bench = Bench::relayed();
        let mut running = bench.start(&["sh", "-c", "read line; echo '{}'; exec sleep 600"]);
        let request =
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "slow"}});
        writeln!(running.child.stdin.as_mut().unwrap(), "{request}").unwrap();
        running.line();
        match to_group {
            true => killpg(running.pid(), signal).unwrap(),
            false => kill(running.pid(), signal).unwrap(),
        }
        assert_eq!(running.wait(), End::Signal(signal as i32));
        let records = bench.records();
        let rules: Vec<_> = of_type(&records, "finding")
            .iter()
            .map(|finding| finding["rule"].clone())
            .collect();
        assert!(
            rules.contains(&json!("torn-down-pending")) && !rules.contains(&json!("server-died")),
            "{signal} {to_group}: {rules:?}"
        );
    }
}

/// A server that takes its time to read, through pipes and through socket pairs.
#[test]
fn what_was_read_late_was_read() {
    let script = "import os,time\ntime.sleep(.05)\nos.read(0, 4096)\ntime.sleep(.3)\nprint('{}')\nos.read(0, 1)";
    for sockets in [false, true] {
        let bench = Bench::relayed();
        let request =
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "slow"}});
        let request = format!("{request}\n");
        if sockets {
            let (mut to_server, stdin) = super::socket_pair();
            let (from_server, stdout) = super::socket_pair();
            let mut command = bench.command(&python(script));
            let mut child = command.stdin(stdin).stdout(stdout).spawn().unwrap();
            drop(command);
            to_server.write_all(request.as_bytes()).unwrap();
            std::io::Read::read_exact(&mut &from_server, &mut [0; 3]).unwrap();
            drop(to_server);
            child.wait().unwrap();
        } else {
            let mut running = bench.start(&python(script));
            let stdin = running.child.stdin.as_mut().unwrap();
            stdin.write_all(request.as_bytes()).unwrap();
            running.line();
            running.close_stdin();
            running.wait();
        }
        let records = bench.records();
        let read: Vec<_> = of_type(&records, "delivered")
            .into_iter()
            .filter(|delivered| delivered["from"] == "client")
            .map(|delivered| delivered["offset"].clone())
            .collect();
        assert_eq!(read, [json!(request.len())], "sockets: {sockets}");
    }
}

/// Many lines that are no MCP, each of which the log has: with a size it goes on in other files,
/// and compressed where its name says so.
#[test]
fn a_log_goes_on_in_another_file_and_is_compressed_by_its_name() {
    let (run, verify) = (
        |bench: &Bench, options: &[&str]| {
            let server = ["sh", "-c", "seq 1000"];
            let mut running = Running::start(&mut bench.command_with(options, &server));
            running.close_stdin();
            running.rest();
            assert_eq!(running.wait(), End::Code(0));
        },
        |bench: &Bench, name: &str| {
            let output = Command::new(env!("CARGO_BIN_EXE_observer"))
                .args(["verify", name])
                .current_dir(bench.folder.path())
                .output()
                .unwrap();
            (output.status.code() == Some(0))
                .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
        },
    );
    let bench = Bench::relayed();
    run(&bench, &["--log", "audit.jsonl", "--rotate", "4KiB"]);
    // The log is written a moment longer than the server lives.
    let said = wait_for(|| verify(&bench, "audit.jsonl"));
    assert!(
        said.contains("audit.2.jsonl: part 2, whole so far"),
        "{said}"
    );
    run(&bench, &["--log", "audit.jsonl.zst"]);
    wait_for(|| verify(&bench, "audit.jsonl.zst"));
    let log = fs::read(bench.path("audit.jsonl.zst")).unwrap();
    assert_eq!(log[..4], [0x28, 0xB5, 0x2F, 0xFD]);
}
