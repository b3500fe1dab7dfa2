//! How streams and connections end.

use super::world::{INIT, MILLISECOND, SECOND, Wire, World, call, result};
use crate::capture::{CaptureEvent, Pid};
use crate::session::{Event, Settings, Visibility};

/// A world with one connection over which `initialize` was answered.
fn connected(wrapped: bool) -> (World, Pid, Option<Pid>, Pid, Wire) {
    let mut world = World::new();
    let host = world.spawn(1);
    let wrapper = wrapped.then(|| world.spawn(host));
    let server = world.spawn(wrapper.unwrap_or(host));
    let wire = world.wire();
    world.ask(host, server, wire, INIT);
    world.answer(server, host, wire, &result(0));
    world.outputs.clear();
    (world, host, wrapper, server, wire)
}

#[test]
fn ends_of_files_close_it() {
    let (mut world, .., wire) = connected(false);
    world.eof(wire.stdin);
    world.eof(wire.stdin);
    assert_eq!(world.log(), ["1 Client eof"]);
    world.eof(wire.stdout);
    assert_eq!(world.log(), ["1 Client eof", "1 Server eof", "1 close"]);
    assert!(world.forgot(wire.stdin) && world.forgot(wire.stdout));
}

#[test]
fn a_dead_server_has_closed_its_end() {
    let (mut world, _, _, server, wire) = connected(false);
    world.exit(server);
    assert_eq!(
        world.log(),
        [""; 0],
        "the backend may still tell of it itself"
    );
    world.wait(SECOND);
    assert_eq!(world.log(), ["1 Server eof", "1 close"]);
    assert!(world.forgot(wire.stdin));
}

#[test]
fn a_dead_host_has_closed_its_ends_though_the_server_lives() {
    let (mut world, host, ..) = connected(false);
    world.exit(host);
    world.wait(SECOND);
    assert_eq!(world.log(), ["1 Client eof", "1 close"]);
}

#[test]
fn a_wrapper_that_lives_keeps_the_stream_open() {
    let (mut world, _, wrapper, server, wire) = connected(true);
    world.exit(server);
    world.wait(SECOND);
    assert_eq!(world.log(), [""; 0]);
    world.exit(wrapper.expect("a wrapper"));
    world.wait(SECOND);
    assert_eq!(world.log(), ["1 Server eof", "1 close"]);
    assert!(world.forgot(wire.stdout));
}

#[test]
fn what_was_written_last_comes_before_the_end() {
    let (mut world, host, _, server, wire) = connected(false);
    world.ask(host, server, wire, &call(1));
    world.write(server, wire.stdout, 1, "half a line");
    world.event(CaptureEvent::Refused {
        stream: wire.stdin,
        writer: host,
    });
    world.exit(server);
    world.wait(SECOND);
    let expected = [
        "1 Client tools/call 1",
        "1 Client refused",
        "1 Server Unterminated 11",
        "1 Server eof",
        "1 close",
    ];
    assert_eq!(world.log(), expected);
}

#[test]
fn a_child_that_outlives_the_server_does_not_keep_it() {
    let (mut world, _, _, server, wire) = connected(false);
    world.spawn(server);
    world.exit(server);
    world.wait(SECOND);
    assert_eq!(world.log(), [""; 0], "the child may hold the streams");
    world.eof(wire.stdout);
    world.wait(SECOND);
    assert_eq!(world.log(), ["1 Server eof", "1 close"]);
}

#[test]
fn what_fails_right_after_the_end_is_still_told() {
    let (mut world, host, _, server, wire) = connected(false);
    world.exit(server);
    world.eof(wire.stdout);
    world.event(CaptureEvent::Refused {
        stream: wire.stdin,
        writer: host,
    });
    world.wait(SECOND);
    assert_eq!(world.log(), ["1 Server eof", "1 Client refused", "1 close"]);
}

#[test]
fn a_refused_write_ends_a_direction() {
    let (mut world, host, _, _, wire) = connected(false);
    world.eof(wire.stdout);
    world.wait(SECOND);
    assert_eq!(world.log(), ["1 Server eof"]);
    world.event(CaptureEvent::Refused {
        stream: wire.stdin,
        writer: host,
    });
    world.wait(SECOND);
    assert_eq!(world.log()[1..], ["1 Client refused", "1 close"]);
}

#[test]
fn ids_that_nobody_answers_cost_nothing() {
    let mut world = World::new();
    let host = world.spawn(1);
    let wire = world.wire();
    for round in 0..100 {
        let lines: String = (0..100).map(|id| call(round * 100 + id) + "\n").collect();
        world.write(host, wire.stdin, 20, lines);
        world.wait(MILLISECOND);
        world.outputs.clear();
    }
    let connection = world
        .session
        .connections
        .values()
        .next()
        .expect("a connection");
    assert_eq!(connection.asked.len(), 64);
    assert_eq!(world.session.streams[&wire.stdin].delivery.waiting(), 1024);
}

#[test]
fn a_connection_that_ends_before_it_opens_is_shown_all_the_same() {
    let mut world = World::new();
    let host = world.spawn(1);
    let wire = world.wire();
    world.write(host, wire.stdin, 20, format!("{INIT}\n"));
    world.exit(host);
    world.wait(300 * MILLISECOND);
    let expected = [
        "1 open 10 ? by 1",
        "1 Client initialize 0",
        "1 Client eof",
        "1 close",
    ];
    assert_eq!(world.log(), expected);
}

#[test]
fn the_end_of_the_capture_shows_what_was_held() {
    let mut world = World::new();
    let host = world.spawn(1);
    let server = world.spawn(host);
    let wire = world.wire();
    world.write(host, wire.stdin, 20, format!("{INIT}\n{{\"cut"));
    world.write(server, wire.stdout, 1, format!("{}\n", result(0)));
    world.read(host, wire.stdout, 21);
    world.finish();
    assert_eq!(
        world.log(),
        [
            "1 open 10 11 by 2",
            "1 Client initialize 0",
            "1 Server result 0"
        ]
    );
}

#[test]
fn the_end_of_the_capture_concludes_from_deaths() {
    let (mut world, host, _, server, _) = connected(false);
    world.exit(server);
    world.exit(host);
    world.finish();
    assert_eq!(world.log(), ["1 Client eof", "1 Server eof", "1 close"]);
}

#[test]
fn watch_tells_only_of_processes_that_matter() {
    let mut world = World::with(Settings {
        processes: Visibility::Connected,
        ..Settings::default()
    });
    let launcher = world.spawn(1);
    let host = world.spawn(launcher);
    let wrapper = world.spawn(host);
    let server = world.spawn(wrapper);
    let stranger = world.spawn(launcher);
    let wire = world.wire();
    world.exit(stranger);
    assert!(world.outputs.is_empty());
    world.ask(host, server, wire, INIT);
    world.exit(server);
    world.wait(SECOND);
    let pids: Vec<(bool, Pid)> = world
        .observed()
        .filter_map(|observed| match observed.event {
            Event::ProcessSeen { pid, .. } => Some((true, pid)),
            Event::ProcessExit { pid, .. } => Some((false, pid)),
            _ => None,
        })
        .collect();
    let seen = [launcher, host, wrapper, server].map(|pid| (true, pid));
    assert_eq!(pids[..4], seen);
    assert_eq!(pids[4..], [(false, server)]);
}

#[test]
fn days_of_short_lives_leave_nothing_behind() {
    let mut world = World::new();
    let shell = world.spawn(1);
    for _ in 0..3000 {
        let child = world.spawn(shell);
        let pipe = world.pipe();
        world.write(child, pipe, 1, "a line\n");
        world.read(shell, pipe, 5);
        world.exit(child);
        world.wait(SECOND);
        world.outputs.clear();
    }
    assert_eq!(world.session.streams.len(), 0);
    assert!(world.session.streams_of.len() <= 1);
    assert!(
        world.session.processes.len() < 1100,
        "{}",
        world.session.processes.len()
    );
    assert_eq!(world.session.held, 0);
}
