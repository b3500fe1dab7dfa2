//! Which streams become which connection.

use super::world::{INIT, MILLISECOND, SECOND, World, call, result};
use crate::capture::{CaptureEvent, End, Pid, StreamKind};
use crate::session::Event;

#[test]
fn a_host_and_a_server_over_pipes() {
    let mut world = World::new();
    let host = world.spawn(1);
    let server = world.spawn(host);
    let wire = world.wire();
    world.ask(host, server, wire, INIT);
    world.write(server, wire.stderr, 2, "starting\n");
    world.read(host, wire.stderr, 22);
    world.answer(server, host, wire, &result(0));
    world.ask(host, server, wire, &call(1));
    world.answer(server, host, wire, &result(1));
    assert_eq!(
        world.log(),
        [
            "1 open 10 11 by 1",
            "1 Client initialize 0",
            "1 open 10 11 by 2",
            "1 Server result 0",
            "1 Client tools/call 1",
            "1 Server result 1",
        ]
    );
}

#[test]
fn an_answer_that_is_recorded_before_anything_else_waits() {
    let mut world = World::new();
    let host = world.spawn(1);
    let server = world.spawn(host);
    let wire = world.wire();
    world.answer(server, host, wire, &result(0));
    assert_eq!(world.log(), [""; 0]);
    world.ask(host, server, wire, INIT);
    assert_eq!(
        world.log(),
        [
            "1 open 10 11 by 2",
            "1 Client initialize 0",
            "1 Server result 0"
        ]
    );
    let times: Vec<_> = (world.observed())
        .filter(|observed| matches!(observed.event, Event::Message { .. }))
        .map(|observed| observed.at)
        .collect();
    assert!(times[1] < times[0], "each keeps its own time");
}

#[test]
fn one_socket_pair_for_both_directions() {
    let mut world = World::new();
    let host = world.spawn(1);
    let server = world.spawn(host);
    let mut wire = world.wire();
    wire.stdin = world.stream(StreamKind::Socket);
    wire.stdout = world.stream(StreamKind::Socket);
    world.write(host, wire.stdin, 9, format!("{INIT}\n"));
    world.read(server, wire.stdin, 5);
    world.write(server, wire.stdout, 5, format!("{}\n", result(0)));
    world.read(host, wire.stdout, 9);
    assert_eq!(
        world.log(),
        [
            "1 open 10 11 by 1",
            "1 Client initialize 0",
            "1 open 10 11 by 2",
            "1 Server result 0"
        ]
    );
}

#[test]
fn wrappers_hold_the_descriptors_and_are_nobody() {
    let mut world = World::new();
    let host = world.spawn(1);
    let shell = world.spawn(host);
    let npx = world.spawn(shell);
    let server = world.spawn(npx);
    let wire = world.wire();
    for wrapper in [shell, npx, server] {
        world.holds(wrapper, wire.stdin, End::Reader, 0);
        world.holds(wrapper, wire.stdout, End::Writer, 1);
        world.holds(wrapper, wire.stderr, End::Writer, 2);
    }
    world.holds(host, wire.stdin, End::Writer, 20);
    world.holds(host, wire.stdout, End::Reader, 21);
    world.holds(host, wire.stderr, End::Reader, 22);
    world.write(server, wire.stderr, 2, format!("{}\n", result(1)));
    world.ask(host, server, wire, &call(1));
    world.answer(server, host, wire, &result(1));
    assert_eq!(
        world.log(),
        [
            "1 open 10 13 by 1",
            "1 Client gap 0+? MidStream",
            "1 Client tools/call 1",
            "1 open 10 13 by 2",
            "1 Server gap 0+? MidStream",
            "1 Server result 1",
        ]
    );
}

#[test]
fn a_proxy_is_server_of_one_connection_and_host_of_another() {
    let mut world = World::new();
    let host = world.spawn(1);
    let proxy = world.spawn(host);
    let server = world.spawn(proxy);
    let (outer, inner) = (world.wire(), world.wire());
    world.ask(host, proxy, outer, INIT);
    world.ask(proxy, server, inner, INIT);
    world.answer(server, proxy, inner, &result(0));
    world.answer(proxy, host, outer, &result(0));
    assert_eq!(
        world.log(),
        [
            "1 open 10 11 by 1",
            "1 Client initialize 0",
            "2 open 11 12 by 1",
            "2 Client initialize 0",
            "2 open 11 12 by 2",
            "2 Server result 0",
            "1 open 10 11 by 2",
            "1 Server result 0",
        ]
    );
}

#[test]
fn equal_ids_between_many_hosts_and_servers_do_not_mix() {
    let mut world = World::new();
    let hosts = [world.spawn(1), world.spawn(1)];
    let mut all = Vec::new();
    for host in hosts {
        for _ in 0..2 {
            let server = world.spawn(host);
            all.push((host, server, world.wire()));
        }
    }
    for &(host, _, wire) in &all {
        world.write(host, wire.stdin, 20, format!("{INIT}\n"));
    }
    for &(_, server, wire) in all.iter().rev() {
        world.write(server, wire.stdout, 1, format!("{}\n", result(0)));
    }
    for &(host, server, wire) in &all {
        world.read(server, wire.stdin, 0);
        world.read(host, wire.stdout, 21);
    }
    world.wait(2 * SECOND);
    let opened: Vec<String> = world
        .log()
        .into_iter()
        .filter(|line| line.ends_with("by 2"))
        .collect();
    let expected: Vec<String> = all
        .iter()
        .enumerate()
        .map(|(index, (host, server, _))| format!("{} open {host} {server} by 2", index + 1))
        .collect();
    assert_eq!(opened, expected);
}

#[test]
fn a_server_that_never_reads_still_shows_the_request() {
    let mut world = World::new();
    let host = world.spawn(1);
    let wire = world.wire();
    world.write(host, wire.stdin, 20, format!("{INIT}\n"));
    let sent = world.now;
    world.wait(999 * MILLISECOND);
    assert_eq!(world.log(), [""; 0]);
    world.wait(2 * MILLISECOND);
    assert_eq!(world.log(), ["1 open 10 ? by 1", "1 Client initialize 0"]);
    assert_eq!(
        world.observed().last().map(|observed| observed.at),
        Some(sent)
    );
}

#[test]
fn a_host_that_never_reads_its_answer_still_shows_it() {
    let mut world = World::new();
    let host = world.spawn(1);
    let server = world.spawn(host);
    let wire = world.wire();
    world.ask(host, server, wire, INIT);
    world.write(server, wire.stdout, 5, format!("{}\n", result(0)));
    assert_eq!(world.log().len(), 2);
    world.wait(SECOND);
    assert_eq!(world.log()[2..], ["1 open 10 11 by 2", "1 Server result 0"]);
}

#[test]
fn a_filter_behind_the_server_is_seen_through() {
    let mut world = World::new();
    let host = world.spawn(1);
    let shell = world.spawn(host);
    let server = world.spawn(shell);
    let tee = world.spawn(shell);
    let wire = world.wire();
    let between = world.pipe();
    world.ask(host, server, wire, INIT);
    world.write(server, between, 1, format!("{}\n", result(0)));
    world.read(tee, between, 0);
    world.write(tee, wire.stdout, 1, format!("{}\n", result(0)));
    world.read(host, wire.stdout, 21);
    world.wait(2 * SECOND);
    assert_eq!(
        world.log()[2..],
        ["1 open 10 12 by 2", "1 Server result 0"],
        "what the host reads is the answer, not the copy on its way"
    );
    world.answer(tee, host, wire, &result(1));
    assert_eq!(
        world.log().last().map(String::as_str),
        Some("1 Server result 1")
    );
}

#[test]
fn answers_of_a_stranger_are_not_taken() {
    let mut world = World::new();
    let host = world.spawn(1);
    let server = world.spawn(host);
    let other = world.spawn(host);
    let (wire, elsewhere) = (world.wire(), world.wire());
    world.ask(host, server, wire, INIT);
    world.answer(other, host, elsewhere, &result(0));
    world.wait(2 * SECOND);
    assert_eq!(world.log(), ["1 open 10 11 by 1", "1 Client initialize 0"]);
}

#[test]
fn a_host_may_write_and_read_in_two_processes() {
    let mut world = World::new();
    let writer = world.spawn(1);
    let reader = world.spawn(writer);
    let server = world.spawn(writer);
    let wire = world.wire();
    world.ask(writer, server, wire, INIT);
    world.answer(server, reader, wire, &result(0));
    world.wait(SECOND);
    assert_eq!(world.log()[2..], ["1 open 10 12 by 2", "1 Server result 0"]);
}

#[test]
fn stderr_is_never_the_answer_even_if_it_repeats_it() {
    let mut world = World::new();
    let host = world.spawn(1);
    let server = world.spawn(host);
    let wire = world.wire();
    world.ask(host, server, wire, INIT);
    world.write(server, wire.stderr, 2, format!("{}\n", result(0)));
    world.read(host, wire.stderr, 22);
    world.wait(2 * SECOND);
    assert_eq!(world.log().len(), 2);
    world.answer(server, host, wire, &result(0));
    assert_eq!(world.log()[2..], ["1 open 10 11 by 2", "1 Server result 0"]);
}

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
            "1 Client initialize 0",
            "1 Server Text 16"
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
    assert_eq!(
        world.log(),
        [
            "1 open 10 11 by 1",
            "1 Server gap 0+? MidStream",
            "1 Server gap 0+14 MidStream",
            "1 Server notifications/progress",
            "1 open 10 11 by 2",
            "1 Client gap 0+? MidStream",
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
fn a_process_that_talks_to_itself_needs_answers_to_be_paired() {
    let mut world = World::new();
    let host = world.spawn(1);
    let wire = world.wire();
    world.write(host, wire.stdin, 20, format!("{INIT}\n"));
    world.read(host, wire.stdin, 21);
    let log = world.pipe();
    world.write(host, log, 1, "text\n");
    world.read(host, log, 22);
    world.write(host, wire.stdout, 23, format!("{}\n", result(0)));
    world.read(host, wire.stdout, 24);
    assert_eq!(
        world.log(),
        [
            "1 open 10 10 by 1",
            "1 Client initialize 0",
            "1 open 10 10 by 2",
            "1 Server result 0"
        ]
    );
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
    assert!(world.gave_up(wire.stdout));
    world.write(server, wire.stderr, 2, "log\n".repeat(20_000));
    assert!(world.gave_up(wire.stderr));
    world.exit(server);
    world.wait(SECOND);
    assert!(world.forgot(wire.stdout) && world.forgot(wire.stderr));
    assert_eq!(world.log(), [""; 0]);
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
