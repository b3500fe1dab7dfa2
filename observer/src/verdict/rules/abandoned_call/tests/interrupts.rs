//! Esc, Ctrl-C, SIGINT, a closed window: when they mean a call.

use crate::verdict::Settings;
use crate::verdict::script::{hear, judged};

#[test]
fn an_interrupt_without_a_cancellation() {
    for kind in ["key-esc", "key-ctrl-c", "sigint"] {
        let script =
            format!("0 hello 2025-06-18\n1 call 1 t\n1 call 2 u\n3 {kind} 10\n9 s= 2\n60 end");
        assert_eq!(
            judged(&script),
            "2 abandoned, 1 abandoned | \
             abandoned-call 1 probable warning, abandoned-call 2 probable warning",
            "{kind}"
        );
    }
}

#[test]
fn interrupts_that_abandon_nothing() {
    for (what, script) in [
        (
            "cancelled in time",
            "1 call 1 t\n3 key-esc 10\n4.9 cancel 1\n9 end",
        ),
        (
            "answered in time",
            "1 call 1 t\n3 key-esc 10\n4.9 s= 1\n9 end",
        ),
        ("nothing in flight", "3 key-esc 10\n4 call 1 t\n9 s= 1"),
        (
            "a process of no kin",
            "1 call 1 t\n2 fork 99 1 /usr/bin/vi\n3 key-esc 99\n9 s= 1",
        ),
        ("the shell", "1 call 1 t\n3 key-ctrl-c 1\n9 s= 1"),
        (
            "SIGTERM, which a host may ignore",
            "1 call 1 t\n3 sigterm 10\n15 s= 1",
        ),
        (
            "a tool of the host",
            "1 call 1 t\n2 fork 99 10 /bin/rg\n3 sigint 99 10\n9 s= 1",
        ),
        ("a handshake", "1 c 1 server/discover\n3 key-esc 10\n9 end"),
        (
            "a subscription",
            "1 c 1 subscriptions/listen\n3 key-esc 10\n9 end",
        ),
    ] {
        let verdict = judged(&format!("0 hello 2025-06-18\n{script}"));
        assert!(!verdict.contains('|'), "{what}: {verdict}");
    }
}

#[test]
fn the_front_end_of_a_daemon_is_interrupted() {
    let script = "0 hello 2025-06-18\n0 fork 5 1 /opt/a/codex\n0 fork 10 5 /opt/b/codex\n\
                  1 call 1 t\n3 key-esc 5\n9 end";
    assert_eq!(
        judged(script),
        "1 abandoned | abandoned-call 1 probable warning"
    );
    let window = script.replace("3 key-esc 5", "2 fork 6 1 /opt/a/codex\n3 key-esc 6");
    assert_eq!(
        judged(&window),
        "1 pending | abandoned-call 1 possible info",
        "another window"
    );
    let closed = script.replace("key-esc", "exit");
    assert_eq!(
        judged(&closed),
        "1 pending | abandoned-call 1 possible info"
    );
}

#[test]
fn it_is_told_that_the_server_never_read_the_request() {
    let heard = hear(
        "1 call 1 t\n1 read c 5\n3 key-esc 10\n9 end",
        Settings::default(),
    );
    let kinds: Vec<_> = heard.findings[0]
        .evidence
        .iter()
        .map(|it| it.kind)
        .collect();
    assert_eq!(kinds, ["unread-request", "key-esc"]);
}

#[test]
fn esc_answers_what_the_server_asks() {
    let script = "0 hello 2025-06-18\n1 call 1 t\n2 s 7 elicitation/create\n30 key-esc 10\n\
                  30.1 c= 7\n90 s= 1";
    assert_eq!(judged(script), "7 answered, 1 answered");
    let other = script
        .replace("2 s 7", "2 @2 s 7")
        .replace("30.1 c=", "30.1 @2 c=");
    assert_eq!(
        judged(&other),
        "7 answered, 1 answered",
        "a question of another server"
    );
}

#[test]
fn limits_stand_still_while_the_server_asks() {
    let script = "0 hello 2025-06-18\n1 call 1 t\n2 s 7 sampling/createMessage\n3 sigint 10\n\
                  600 c= 7\n601.5 s= 1";
    assert_eq!(judged(script), "7 answered, 1 answered");
    let over = script.replace("601.5", "604");
    assert_eq!(
        judged(&over),
        "7 answered, 1 abandoned | abandoned-call 1 probable warning"
    );
    let retry = "0 hello 2025-06-18\n1 call 1 t\n1.5 s 7 elicitation/create\n600 c= 7\n\
                 600.8 call 2 t\n602 s= 1\n602 s= 2";
    assert_eq!(judged(retry), "7 answered, 1 answered, 2 answered");
}

#[test]
fn a_host_that_wants_esc_twice() {
    let script = "0 hello 2025-11-25 opencode 1.18.33\n1 call 1 t\n3 key-esc 10\n9 s= 1";
    assert_eq!(judged(script), "1 answered");
    let twice = script.replace("9 s=", "4 key-esc 10\n9 s=");
    assert_eq!(
        judged(&twice),
        "1 answered | abandoned-call 1 possible info",
        "it is known to cancel: the user may have meant something else"
    );
}

#[test]
fn esc_in_another_program_is_not_meant_for_the_host() {
    let esc = |before: &str, pid: u32| {
        let script = "0 hello 2025-06-18\n1 call 1 t\n";
        judged(&format!("{before}{script}3 key-esc {pid}\n9 s= 1"))
    };
    let outside = |exe: &str| format!("0 fork 5 1 {exe}\n0 fork 10 5 /opt/agent\n");
    for editor in ["/usr/bin/vim", "/usr/bin/less"] {
        let below = format!("0 fork 10 1 /opt/agent\n0.5 fork 30 10 {editor}\n");
        assert_eq!(esc(&below, 30), "1 answered", "{editor} in the host");
        assert_eq!(
            esc(&outside(editor), 5),
            "1 answered",
            "the host in {editor}"
        );
    }
    for terminal in ["/usr/bin/zellij", "/usr/bin/ssh", "/usr/bin/kitty"] {
        assert_eq!(esc(&outside(terminal), 5), "1 answered", "{terminal}");
    }
    // It may be the host's.
    let possible = "1 answered | abandoned-call 1 possible info";
    assert_eq!(esc(&outside("/usr/bin/node"), 5), possible);
    let below = "0 fork 10 1 /opt/agent\n0.5 fork 30 10 /opt/agent-view\n";
    assert_eq!(esc(below, 30), possible);
    let own = "0 fork 10 1 /opt/agent\n0.5 fork 30 10 /opt/agent\n";
    assert_eq!(
        esc(own, 30),
        "1 abandoned | abandoned-call 1 probable warning"
    );
    let two = "0 fork 10 1 /opt/agent\n0 fork 11 1 /opt/agent\n";
    assert_eq!(esc(two, 11), "1 answered", "two windows, each its own host");
}

#[test]
fn esc_that_is_held_down_answers_one_question() {
    let script = "0 hello 2025-06-18\n1 call 1 t\n2 s 7 elicitation/create\n30 key-esc 10\n\
                  30.1 c= 7\n30.3 key-esc 10\n90 s= 1";
    assert_eq!(judged(script), "7 answered, 1 answered");
    let again = script.replace("30.3", "40");
    assert_eq!(
        judged(&again),
        "7 answered, 1 abandoned | abandoned-call 1 probable warning"
    );
}

#[test]
fn a_host_with_background_calls_is_only_suspected() {
    let script = "0 hello 2025-11-25 claude-code 2.1.332\n1 call 1 t\n3 key-esc 10\n9 s= 1";
    assert_eq!(
        judged(script),
        "1 answered | abandoned-call 1 possible info"
    );
}

#[test]
fn a_host_that_leaves_does_not_abandon() {
    for (end, after) in [("exit 10", 4.0), ("eof c", 4.0), ("sigterm 20 10", 4.0)] {
        let script = format!(
            "0 hello 2025-06-18\n1 call 1 t\n3 key-esc 10\n{after} {end}\n9 exit 20\n10 end"
        );
        let verdict = judged(&script);
        assert_eq!(
            verdict, "1 torn-down | torn-down-pending 1 confirmed info",
            "{end}"
        );
    }
    let slow = "0 hello 2025-06-18\n1 call 1 t\n3 sigint 10\n6 exit 10\n7 end";
    assert_eq!(
        judged(slow),
        "1 torn-down | torn-down-pending 1 confirmed info"
    );
}
