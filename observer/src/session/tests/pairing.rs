//! Which streams become which connection.

use super::world::{INIT, MILLISECOND, SECOND, World, call, result};
use crate::capture::{End, StreamKind};
use crate::session::Output;

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
            "1 Server result 0",
            "1 Client initialize 0"
        ]
    );
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
            "1 open 10 13 by 2",
            "1 Client gap 0+? MidStream",
            "1 Server gap 0+? MidStream",
            "1 Client tools/call 1",
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
fn a_server_that_speaks_before_anybody_read_waits_for_its_client() {
    let mut world = World::new();
    let host = world.spawn(1);
    let (one, other) = (world.spawn(host), world.spawn(host));
    let log = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}";
    let (first, second) = (world.wire(), world.wire());
    world.write(one, first.stdout, 5, format!("{log}\n"));
    world.write(other, second.stdout, 5, format!("{log}\n"));
    world.read(host, first.stdout, 21);
    world.read(host, second.stdout, 21);
    world.ask(host, one, first, INIT);
    world.ask(host, other, second, INIT);
    world.write(other, second.stdout, 5, format!("{}\n", result(0)));
    assert_eq!(
        world.log(),
        [
            "1 open 10 11 by 2",
            "1 Server notifications/message",
            "1 Client initialize 0",
            "2 open 10 12 by 2",
            "2 Server notifications/message",
            "2 Client initialize 0",
            "2 Server result 0",
        ]
    );
}

#[test]
fn a_client_that_speaks_long_after_the_server_joins_its_connection() {
    let mut world = World::new();
    let host = world.spawn(1);
    let (one, other) = (world.spawn(host), world.spawn(host));
    let log = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}";
    let (first, second) = (world.wire(), world.wire());
    world.answer(one, host, first, log);
    world.answer(other, host, second, log);
    world.wait(5 * SECOND);
    world.ask(host, other, second, &call(1));
    world.ask(host, one, first, &call(1));
    assert_eq!(
        world.log(),
        [
            "1 open 10 11 by 1",
            "1 Server notifications/message",
            "2 open 10 12 by 1",
            "2 Server notifications/message",
            "2 open 10 12 by 2",
            "2 Client tools/call 1",
            "1 open 10 11 by 2",
            "1 Client tools/call 1",
        ]
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
fn a_filter_before_the_server_is_no_connection_of_its_own() {
    for filters_both in [false, true] {
        let mut world = World::new();
        let host = world.spawn(1);
        let shell = world.spawn(host);
        let tee = world.spawn(shell);
        let server = world.spawn(shell);
        let log = world.spawn(shell);
        let wire = world.wire();
        let (before, behind) = (world.pipe(), world.pipe());
        world.ask(host, tee, wire, INIT);
        world.write(tee, before, 1, format!("{INIT}\n"));
        world.read(server, before, 0);
        if filters_both {
            world.write(server, behind, 1, format!("{}\n", result(0)));
            world.read(log, behind, 0);
            world.answer(log, host, wire, &result(0));
        } else {
            world.answer(server, host, wire, &result(0));
        }
        world.wait(2 * SECOND);
        assert_eq!(
            world.log(),
            [
                "1 open 10 12 by 1",
                "1 Client initialize 0",
                "1 open 10 12 by 2",
                "1 Server result 0",
            ]
        );
        assert!(world.gave_up(before));
    }
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
fn a_pipeline_of_a_shell_is_a_host_of_two_processes() {
    let mut world = World::new();
    let shell = world.spawn(1);
    let printf = world.spawn(shell);
    let server = world.spawn(shell);
    let jq = world.spawn(shell);
    let wire = world.wire();
    world.ask(printf, server, wire, INIT);
    world.answer(server, jq, wire, &result(0));
    world.wait(SECOND);
    assert_eq!(world.log()[2..], ["1 open 11 12 by 2", "1 Server result 0"]);
}

#[test]
fn what_the_server_says_to_others_is_not_its_answer() {
    let mut world = World::new();
    let host = world.spawn(1);
    let server = world.spawn(host);
    let collector = world.spawn(1);
    let (wire, log) = (world.wire(), world.pipe());
    world.ask(host, server, wire, INIT);
    let message = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n";
    world.write(server, log, 5, message);
    world.read(collector, log, 0);
    world.wait(2 * SECOND);
    world.answer(server, host, wire, &result(0));
    let log = world.log();
    let answered = log.iter().filter(|line| line.starts_with("1 Server"));
    assert_eq!(
        answered.collect::<Vec<_>>(),
        ["1 Server result 0"],
        "{log:?}"
    );
}

#[test]
fn an_answer_that_comes_late_is_paired_late() {
    let mut world = World::new();
    let writer = world.spawn(1);
    let reader = world.spawn(1);
    let server = world.spawn(writer);
    let wire = world.wire();
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    world.answer(server, reader, wire, ping);
    world.wait(5 * SECOND);
    world.ask(writer, server, wire, &call(3));
    assert_eq!(world.log().len(), 2);
    world.answer(server, reader, wire, &result(3));
    assert_eq!(
        world.log()[2..],
        ["1 open 10 12 by 2", "1 Server ping 1", "1 Server result 3"]
    );
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
            "1 open 10 10 by 2",
            "1 Client initialize 0",
            "1 Server result 0"
        ]
    );
}

#[test]
fn a_pipe_that_a_process_keeps_to_itself_is_no_connection() {
    let mut world = World::new();
    let host = world.spawn(1);
    let server = world.spawn(host);
    let (wire, scratch) = (world.wire(), world.pipe());
    world.ask(host, server, wire, INIT);
    world.answer(server, host, wire, &result(0));
    world.outputs.clear();
    world.write(host, scratch, 20, format!("{}\n", call(1)));
    world.read(host, scratch, 21);
    world.wait(2 * SECOND);
    assert_eq!(world.log().len(), 0);
    assert!(world.outputs.contains(&Output::GiveUp(scratch)));
    let held = world.pipe();
    world.write(host, held, 20, format!("{}\n", call(2)));
    world.finish();
    assert_eq!(world.log(), ["2 open 10 ? by 1", "2 Client tools/call 2"]);
}
