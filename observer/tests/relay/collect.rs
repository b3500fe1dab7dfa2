//! Several relays, and one who shows them together.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use observer::capture::Clock;
use observer::cli::relay::{CollectError, Collector};
use observer::session::{ConnId, ConnectionChange, Event, Observed};

use super::faults::deaths;
use super::{Bench, End, Running, python, wait_for};

const SERVER: &str = "
import json, sys
for line in sys.stdin:
    print(json.dumps({'jsonrpc': '2.0', 'id': json.loads(line)['id'], 'result': {}}), flush=True)
";

fn ping(running: &mut Running, id: u32) {
    let stdin = running.child.stdin.as_mut().unwrap();
    writeln!(
        stdin,
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}"
    )
    .unwrap();
    running.line();
}

/// Collects until so many connections have closed.
fn collect(
    collector: &mut Collector,
    runtime: &tokio::runtime::Runtime,
    closed: usize,
) -> Vec<Observed> {
    let mut all = Vec::new();
    let is_close = |observed: &Observed| {
        matches!(
            observed.event,
            Event::Connection {
                change: ConnectionChange::Close,
                ..
            }
        )
    };
    while all.iter().filter(|observed| is_close(observed)).count() < closed {
        all.extend(runtime.block_on(collector.next()).unwrap());
    }
    all
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

fn to(bench: &Bench, socket: &Path) -> Running {
    let options = ["--to", socket.to_str().unwrap()];
    Running::start(&mut bench.command_with(&options, &python(SERVER)))
}

#[test]
fn two_relays_are_told_apart_and_nothing_is_missing() {
    let bench = Bench::relayed();
    let socket = bench.path("run/relay.sock");
    let runtime = runtime();
    let _inside = runtime.enter();
    let mut collector = Collector::bind(Some(socket.clone()), Clock::start()).unwrap();
    let mut relays = [to(&bench, &socket), to(&bench, &socket)];
    for round in 0..3 {
        for (index, relay) in (0_u32..).zip(&mut relays) {
            ping(relay, 10 * index + round);
        }
    }
    for relay in &mut relays {
        relay.close_stdin();
        assert_eq!(relay.wait(), End::Code(0));
    }
    let observed = collect(&mut collector, &runtime, 2);
    for number in [1, 2] {
        let messages = observed.iter().filter(|observed| {
            matches!(&observed.event, Event::Message { conn, .. } if *conn == ConnId(number))
        });
        assert_eq!(messages.count(), 6, "connection {number}");
    }
    assert!(
        !observed
            .iter()
            .any(|observed| matches!(observed.event, Event::Gap { .. }))
    );
}

#[test]
fn a_relay_without_a_listener_is_not_disturbed_and_a_late_listener_knows_what_it_missed() {
    let bench = Bench::relayed();
    let socket = bench.path("run/relay.sock");
    std::fs::create_dir(bench.path("run")).unwrap();
    std::fs::set_permissions(bench.path("run"), std::fs::Permissions::from_mode(0o700)).unwrap();
    let mut relay = to(&bench, &socket);
    ping(&mut relay, 1);
    let runtime = runtime();
    let _inside = runtime.enter();
    let mut collector = Collector::bind(Some(socket), Clock::start()).unwrap();
    let mut observed = Vec::new();
    let mut id = 2;
    // It looks for a listener once a second; until then its records go nowhere.
    while !observed
        .iter()
        .any(|one: &Observed| matches!(one.event, Event::Message { .. }))
    {
        ping(&mut relay, id);
        id += 1;
        let next = async {
            tokio::time::timeout(std::time::Duration::from_millis(20), collector.next()).await
        };
        observed.extend(runtime.block_on(next).ok().flatten().unwrap_or_default());
    }
    relay.close_stdin();
    assert_eq!(relay.wait(), End::Code(0));
    observed.extend(collect(&mut collector, &runtime, 1));
    let kinds: Vec<&Event> = observed.iter().map(|observed| &observed.event).collect();
    let position = |wanted: fn(&&&Event) -> bool| kinds.iter().position(|event| wanted(&event));
    let open = position(|event| {
        matches!(
            event,
            Event::Connection {
                change: ConnectionChange::Open { .. },
                ..
            }
        )
    });
    let gap = position(|event| matches!(event, Event::Gap { .. }));
    let message = position(|event| matches!(event, Event::Message { .. }));
    assert!(
        open.unwrap() < gap.unwrap() && gap.unwrap() < message.unwrap(),
        "{kinds:?}"
    );
}

#[test]
fn a_relay_that_is_killed_leaves_closed_connections() {
    let bench = Bench::relayed();
    let socket = bench.path("run/relay.sock");
    let runtime = runtime();
    let _inside = runtime.enter();
    let mut collector = Collector::bind(Some(socket.clone()), Clock::start()).unwrap();
    let mut relay = to(&bench, &socket);
    ping(&mut relay, 1);
    nix::sys::signal::kill(relay.pid(), nix::sys::signal::Signal::SIGKILL).unwrap();
    collect(&mut collector, &runtime, 1);
}

#[test]
fn a_folder_that_others_can_enter_is_refused_by_both() {
    let bench = Bench::relayed();
    std::fs::create_dir(bench.path("open")).unwrap();
    std::fs::set_permissions(bench.path("open"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let socket = bench.path("open/relay.sock");
    let runtime = runtime();
    let _inside = runtime.enter();
    let refused = Collector::bind(Some(socket.clone()), Clock::start());
    assert!(matches!(refused, Err(CollectError::Place(_))));
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    listener.set_nonblocking(true).unwrap();
    let output = bench
        .command_with(&["--to", socket.to_str().unwrap()], &["echo", "on"])
        .output()
        .unwrap();
    assert_eq!(output.stdout, b"on\n");
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("is not a folder that only you can enter")
    );
    assert!(listener.accept().is_err(), "nobody has come");
}

#[test]
fn a_socket_in_use_is_not_taken_and_one_left_behind_is() {
    let bench = Bench::relayed();
    let socket = bench.path("run/relay.sock");
    let runtime = runtime();
    let _inside = runtime.enter();
    let first = Collector::bind(Some(socket.clone()), Clock::start()).unwrap();
    let second = Collector::bind(Some(socket.clone()), Clock::start());
    assert!(matches!(second, Err(CollectError::Taken { .. })));
    drop(first);
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    Collector::bind(Some(socket), Clock::start()).unwrap();
}

#[test]
fn those_who_listen_may_be_killed_at_any_moment() {
    let bench = Bench::relayed();
    let socket = bench.path("run/relay.sock");
    let watch = || {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_observer"));
        command.args(["watch", "--quiet", "--relay"]).arg(&socket);
        let null = std::process::Stdio::null;
        command.stdout(null()).stderr(null()).spawn().unwrap()
    };
    let mut listener = watch();
    wait_for(|| socket.exists().then_some(()));
    let mut relay = to(&bench, &socket);
    for death in 0..deaths() {
        for id in 0..20 {
            ping(&mut relay, id);
        }
        std::thread::sleep(std::time::Duration::from_micros(death * 1700));
        listener.kill().unwrap();
        ping(&mut relay, 20);
        listener.wait().unwrap();
        listener = watch();
    }
    relay.close_stdin();
    assert_eq!(relay.rest(), "");
    assert_eq!(relay.wait(), End::Code(0));
    listener.kill().unwrap();
    listener.wait().unwrap();
}

#[test]
fn what_the_relays_send_is_shown_and_judged() {
    let bench = Bench::relayed();
    let socket = bench.path("run/relay.sock");
    let log = bench.path("watch.jsonl");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_observer"));
    command.args(["watch", "--relay"]).arg(&socket);
    command.arg("--log").arg(&log).env_remove("CI");
    let mut listener = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    wait_for(|| socket.exists().then_some(()));
    let mut relays = [to(&bench, &socket), to(&bench, &socket)];
    for (id, relay) in (0..).zip(&mut relays) {
        ping(relay, id);
        relay.close_stdin();
        assert_eq!(relay.wait(), End::Code(0));
    }
    let calls = || {
        let log = std::fs::read_to_string(&log).unwrap_or_default();
        (log.matches(r#""type":"connection""#).count() >= 4).then_some(())
    };
    wait_for(calls);
    let pid = nix::unistd::Pid::from_raw(listener.id().cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    let mut shown = String::new();
    std::io::Read::read_to_string(&mut listener.stdout.take().unwrap(), &mut shown).unwrap();
    assert_eq!(listener.wait().unwrap().code(), Some(0), "{shown}");
    assert!(shown.contains("calls     2: 2 answered"), "{shown}");
    assert!(!socket.exists(), "nothing is left behind");
    let records = super::records(&log);
    assert_eq!(records[0]["backend"], "relay");
    let conns: std::collections::BTreeSet<_> = super::of_type(&records, "message")
        .iter()
        .map(|message| message["conn"].as_u64())
        .collect();
    assert_eq!(conns.len(), 2);
}
