//! Which streams are MCP at all, and from where on.

use super::world::{INIT, SECOND, World, call, result};
use crate::capture::{CaptureEvent, End, Pid, StreamKind};

#[test]
fn a_banner_on_stdout_is_noise_of_the_connection() {
    let mut world = World::new();
    let host = world.spawn(1);
    let server = world.spawn(host);
    let wire = world.wire();
    world.write(server, wire.stdout, 1, "Server v1 ready\n");
    world.read(host, wire.stdout, 21);
    world.ask(host, server, wire, INIT);
    assert_eq!(
        world.log(),
        [
            "1 open 10 11 by 2",
            "1 Server Text 16",
            "1 Client initialize 0"
        ],
    );
}

#[test]
fn attached_in_the_middle_the_server_speaks_first() {
    let mut world = World::new();
    let host = world.spawn(1);
    let server = world.spawn(host);
    let wire = world.wire();
    world.holds(server, wire.stdin, End::Reader, 0);
    world.holds(server, wire.stdout, End::Writer, 1);
    world.holds(host, wire.stdin, End::Writer, 20);
    world.holds(host, wire.stdout, End::Reader, 21);
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#;
    world.write(
        server,
        wire.stdout,
        1,
        format!("f a message\"}}\n{progress}\n"),
    );
    world.wait(SECOND);
    assert_eq!(
        world.log(),
        [
            "1 open 10 11 by 2",
            "1 Client gap 0+? MidStream",
            "1 Server gap 0+? MidStream",
            "1 Server gap 0+14 MidStream",
            "1 Server notifications/progress",
        ]
    );
    world.ask(host, server, wire, &call(7));
    assert_eq!(
        world.log().last().map(String::as_str),
        Some("1 Client tools/call 7")
    );
}

#[test]
fn a_new_server_process_is_a_new_connection() {
    let mut world = World::new();
    let host = world.spawn(1);
    for number in 1..=2 {
        let server = world.spawn(host);
        let wire = world.wire();
        world.ask(host, server, wire, INIT);
        world.answer(server, host, wire, &result(0));
        let last = world.log().last().cloned();
        assert_eq!(last, Some(format!("{number} Server result 0")));
    }
}

#[test]
fn a_pid_used_again_is_not_the_old_party() {
    let mut world = World::new();
    let host = world.spawn(1);
    let server = world.spawn(host);
    let wire = world.wire();
    world.ask(host, server, wire, INIT);
    world.exit(server);
    let elsewhere = world.pipe();
    world.write(server, elsewhere, 1, format!("{}\n", result(0)));
    world.read(host, elsewhere, 30);
    assert_eq!(world.log().len(), 2, "the pid is another process now");
}

#[test]
fn other_protocols_are_given_up() {
    let mut world = World::new();
    let editor = world.spawn(1);
    let server = world.spawn(editor);
    let wire = world.wire();
    world.write(
        editor,
        wire.stdin,
        20,
        "Content-Length: 2\r\n\r\n{}Content-Length: 2\r\n",
    );
    assert!(world.gave_up(wire.stdin));
    for index in 0..65 {
        let line = format!(r#"{{"jsonrpc":"2.0","id":{index},"method":"session/prompt"}}"#);
        world.write(server, wire.stdout, 1, line + "\n");
    }
    assert!(!world.gave_up(wire.stdout), "a partner may still come");
    world.wait(SECOND);
    world.write(server, wire.stdout, 1, format!("{}\n", result(1)));
    assert!(world.gave_up(wire.stdout));
    world.write(server, wire.stderr, 2, "log\n".repeat(20_000));
    assert!(world.gave_up(wire.stderr));
    world.exit(server);
    world.wait(SECOND);
    assert!(world.forgot(wire.stdout) && world.forgot(wire.stderr));
    assert_eq!(world.log(), [""; 0]);
}

#[test]
fn a_relay_knows_its_directions() {
    let mut world = World::new();
    let host = world.spawn(1);
    let relay = world.spawn(host);
    let server = world.spawn(relay);
    let mut wire = world.wire();
    (wire.stdin, wire.stdout) = (
        world.stream(StreamKind::Relay),
        world.stream(StreamKind::Relay),
    );
    (wire.stdin.object, wire.stdout.object) = (0, 1);
    world.write(server, wire.stdout, 1, "Welcome\n");
    world.write(host, wire.stdin, 1, format!("{}\n", call(1)));
    assert_eq!(
        world.log(),
        [
            "1 open 10 12 by 2",
            "1 Server Text 8",
            "1 Client tools/call 1"
        ]
    );
}

#[test]
fn a_burst_before_the_reader_shows_itself_is_kept() {
    let mut world = World::new();
    let host = world.spawn(1);
    let server = world.spawn(host);
    let wire = world.wire();
    world.ask(host, server, wire, &call(1));
    let progress = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n";
    world.write(
        server,
        wire.stdout,
        7,
        progress.repeat(1000) + &result(1) + "\n",
    );
    world.read(host, wire.stdout, 7);
    assert_eq!(world.log().len(), 2 + 1 + 1000 + 1);
}

#[test]
fn an_unknown_reader_makes_no_panic() {
    let mut world = World::new();
    let stream = world.pipe();
    world.event(CaptureEvent::Read {
        stream,
        end: u64::MAX,
        reader: Pid(0),
        fd: None,
    });
    world.event(CaptureEvent::Eof { stream });
    world.finish();
}
