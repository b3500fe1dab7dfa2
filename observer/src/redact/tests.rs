//! What is hidden, what is kept to the byte, and that no verdict changes.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::capture::Timestamp;
use crate::session::{ConnId, Side};
use crate::verdict::Settings;
use crate::verdict::script::{Heard, events, hear_events};
use crate::verdict::truth::{END, any_conversation, script, written};

fn redactor(payload: Payload) -> Redactor {
    let plan = Plan {
        payload,
        ..Plan::default()
    };
    Redactor::new(plan, Key::new([7; 32]))
}

fn redacted(redactor: &Redactor, text: &str) -> String {
    let frame = Frame::parse(Bytes::copy_from_slice(text.as_bytes())).expect("a frame");
    match redactor.frame(&frame) {
        Some(frame) => frame.text().to_owned(),
        None => text.to_owned(),
    }
}

fn mark(text: &str) -> String {
    redactor(Payload::Full).mark_value(&Value::from(text).to_string())
}

const GITHUB: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

#[test]
fn what_no_verdict_needs_is_replaced_and_the_rest_kept_to_the_byte() {
    let text = concat!(
        r#" {"jsonrpc" : "2.0","id":"a b","method":"tools/call", "params":{"name":"t\u0065ll","#,
        r#""arguments":{"z":1.50,"text":"hi","a":[true, "hi",{"k":"\u0068i"}]} , "#,
        r#""_meta":{"progressToken":"p","other":"x"}}} "#
    );
    let expected = concat!(
        r#" {"jsonrpc" : "2.0","id":"a b","method":"tools/call", "params":{"name":"t\u0065ll","#,
        r#""arguments":{"z":1.50,"text":HI,"a":[true, HI,{"k":HI}]} , "#,
        r#""_meta":{"progressToken":"p","other":X}}} "#
    );
    let expected = expected.replace("HI", &mark("hi")).replace('X', &mark("x"));
    assert_eq!(redacted(&redactor(Payload::Redacted), text), expected);
    assert!(mark("hi").ends_with(r#"","bytes":2}"#));
    assert_eq!(redacted(&redactor(Payload::Full), text), text);
}

#[test]
fn who_speaks_stays_known_with_its_version() {
    let text = r#"{"jsonrpc":"2.0","id":0,"result":{"serverInfo":{"name":"files","version":"1.2.3","title":"mine"}}}"#;
    let text = redacted(&redactor(Payload::Redacted), text);
    assert!(
        text.contains(r#""name":"files","version":"1.2.3","title":{"#),
        "{text}"
    );
    let text = redacted(&redactor(Payload::None), &text);
    assert!(
        text.contains(r#""name":"files","version":"1.2.3""#),
        "{text}"
    );
}

#[test]
fn an_error_and_what_else_a_message_has_are_payload() {
    let text = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"m","data":["d"]},"x":"y"}"#;
    let expected = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":M,"data":[D]},"x":Y}"#;
    let expected = expected
        .replace('M', &mark("m"))
        .replace('D', &mark("d"))
        .replace('Y', &mark("y"));
    assert_eq!(redacted(&redactor(Payload::Redacted), text), expected);
}

#[test]
fn without_payload_only_what_is_read_is_left() {
    let none = redactor(Payload::None);
    let text = concat!(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":"#,
        r#"{"a":"secret"},"_meta":{"progressToken":7,"x":{"y":1}},"task":{"ttl":9}}}"#
    );
    let left: Value = serde_json::from_str(&redacted(&none, text)).expect("JSON");
    let params = &left["params"];
    assert_eq!(params["name"], "t");
    assert_eq!(params["_meta"].to_string(), r#"{"progressToken":7}"#);
    assert_eq!(params["arguments"]["bytes"], 14);
    assert!(params["task"].is_object());
    let text = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"x"}],"task":{"taskId":"t","ttl":5,"status":"working","note":"n"}}}"#;
    assert_eq!(
        redacted(&none, text),
        r#"{"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"t","ttl":5,"status":"working"}}}"#
    );
    let text = r#"[{"jsonrpc":"2.0","id":1,"result":"x"},{"jsonrpc":"2.0","method":"n"}]"#;
    let left = redacted(&none, text);
    assert!(left.contains("sha256") && Frame::parse(Bytes::from(left)).is_ok());
}

#[test]
fn secrets_are_hidden_in_full_as_well_unless_they_are_to_be_shown() {
    let full = redactor(Payload::Full);
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"password":"p","pin":1234,"body":"a\nuse TOKEN now"}}}"#
        .replace("TOKEN", GITHUB);
    let left = redacted(&full, &text);
    assert!(
        left.contains(&mark("p")) && !left.contains("1234"),
        "{left}"
    );
    assert!(
        !left.contains(GITHUB) && left.contains(r"a\nuse [hidden "),
        "{left}"
    );
    let show = Redactor::new(
        Plan {
            show_secrets: true,
            names: vec!["API-body".into(), "Bo_dy".into()],
            ..Plan::default()
        },
        Key::new([0; 32]),
    );
    let left = redacted(&show, &text);
    assert!(
        left.contains(r#""password":"p","pin":1234,"body":{"sha256""#),
        "{left}"
    );
}

#[test]
fn a_description_of_a_password_is_none() {
    let text = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"login","inputSchema":{"type":"object","properties":{"password":{"type":"string"}}}}]}}"#;
    assert_eq!(redacted(&redactor(Payload::Full), text), text);
}

#[test]
fn texts_that_look_like_secrets() {
    let full = redactor(Payload::Full);
    let pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----";
    let jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9";
    for (text, left) in [
        (format!("x {GITHUB}."), "x [hidden]."),
        (format!("a {pem} b"), "a [hidden] b"),
        ("a -----BEGIN PRIVATE KEY-----\nMII".into(), "a [hidden]"),
        (format!("({jwt})"), "([hidden])"),
        (
            "Authorization: Bearer abcdefgh12345678".into(),
            "Authorization: Bearer [hidden]",
        ),
        (
            "authorization: basic dXNlcjpwYXNz".into(),
            "authorization: basic [hidden]",
        ),
        (
            "postgres://me:hunter2@db/x".into(),
            "postgres://me:[hidden]@db/x",
        ),
        (
            "OPENAI_API_KEY=abcdefg\nx".into(),
            "OPENAI_API_KEY=[hidden]\nx",
        ),
        (
            "https://x/?a=1&access_token=abcdefg&b".into(),
            "https://x/?a=1&access_token=[hidden]&b",
        ),
        (
            r#"{"user": "me", "password": "hun\"ter2", "n": 1}"#.into(),
            r#"{"user": "me", "password": "[hidden]", "n": 1}"#,
        ),
        ("{'api_key':'abcdefg'}".into(), "{'api_key':'[hidden]'}"),
        (
            "a: 1\n  password: hunter3\nb: 2".into(),
            "a: 1\n  password: [hidden]\nb: 2",
        ),
        ("sk-proj-abcdefghij0123456789".into(), "[hidden]"),
        ("AKIAIOSFODNN7EXAMPLE1".into(), "[hidden]"),
        (format!("ü{GITHUB}ü"), "ü[hidden]ü"),
    ] {
        let cleaned = full
            .clean(&text)
            .unwrap_or_else(|| panic!("{text} is kept"));
        let mut plain = String::new();
        let mut parts = cleaned.split("[hidden ");
        plain.push_str(parts.next().expect("one part at least"));
        for part in parts {
            plain.push_str("[hidden]");
            plain.push_str(&part[17..]);
        }
        assert_eq!(plain, left);
    }
    for text in [
        "",
        "bearer of bad news",
        "task-force-of-many-words-1",
        "sk-some-long-words-in-kebab-case",
        "token = parser.next_token()",
        "http://host:80/x@y",
        "a=b",
        "-----BEGIN CERTIFICATE-----",
        "xghp_0123456789abcdefghijABCDEFGHIJ012345",
        "eyJ1",
        "MAX_TOKENS=100000",
        "time 12:30",
    ] {
        assert_eq!(full.clean(text), None, "{text}");
    }
}

#[test]
fn command_lines_keep_the_program() {
    let line = |payload, argv: &[&str]| {
        let mut argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
        redactor(payload).argv(&mut argv);
        let shown = argv.iter().map(|arg| match arg.split_once("[hidden ") {
            Some((before, after)) => format!("{before}*{}", &after[17..]),
            None => arg.clone(),
        });
        shown.collect::<Vec<_>>().join(" ")
    };
    let server = &[
        "node",
        "-r",
        "x",
        "srv.js",
        "--token",
        "abc",
        "--api-key=k",
        "A_SECRET=s",
        "hi",
    ];
    assert_eq!(
        line(Payload::Full, server),
        "node -r x srv.js --token * --api-key=* A_SECRET=* hi"
    );
    assert_eq!(
        line(
            Payload::Redacted,
            &[
                "claude",
                "-p",
                "a prompt",
                "--model=m",
                "--verbose",
                "-ppass"
            ]
        ),
        "claude -p * --model=* --verbose -p*"
    );
    assert_eq!(
        line(
            Payload::Redacted,
            &["/usr/bin/python3", "-u", "/x/s.py", "arg"]
        ),
        "/usr/bin/python3 -u /x/s.py *"
    );
    assert_eq!(line(Payload::Redacted, &["sh", "-c", "echo hi"]), "sh -c *");
}

#[test]
fn noise_keeps_its_shape() {
    let mask = |text: &str| {
        let text = redactor(Payload::Redacted)
            .noise(text.as_bytes())
            .expect("masked");
        String::from_utf8(text).expect("UTF-8")
    };
    assert_eq!(
        mask("Listening on port 3000: ok"),
        "xxxxxxxxx xx xxxx 1111: xx"
    );
    assert_eq!(
        mask(r#""jsonrpc": "2.0", "id": -10.5e3, "x\u00e4\n": null}"#),
        r#""jsonrpc": "2.0", "id": -11.1e1, "x\u0078\n": null}"#
    );
    assert_eq!(mask("grün"), "xxxxx");
}

#[test]
fn marks_stand_where_a_redacted_log_is_redacted_again() {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":"x"}}}"#;
    for payload in [Payload::Redacted, Payload::None] {
        let mut again = Redactor::new(
            Plan {
                payload,
                ..Plan::default()
            },
            Key::new([9; 32]),
        );
        let once = redacted(&redactor(payload), text);
        again.note_source(payload);
        assert_eq!(redacted(&again, &once), once);
    }
    // A host may write the like.
    let mut first = redactor(Payload::Redacted);
    let once = redacted(&first, text);
    assert_ne!(redacted(&first, &once), once);
    first.note_source(Payload::Full);
    assert_ne!(redacted(&first, &once), once);
}

#[test]
fn depth_costs_no_stack() {
    for payload in [Payload::Full, Payload::Redacted, Payload::None] {
        let depth = 20_000;
        let deep = format!("{}\"x\"{}", "[".repeat(depth), "]".repeat(depth));
        let text = format!(r#"{{"jsonrpc":"2.0","method":"x","params":{{"a":{deep}}}}}"#);
        assert!(!redacted(&redactor(Payload::Redacted), &text).contains("\"x\"]"));
        redacted(&redactor(payload), &text);
    }
}

fn verdicts(heard: &Heard) -> (Vec<String>, Vec<String>) {
    let findings = heard.findings.iter().map(|finding| {
        let evidence: Vec<_> = finding
            .evidence
            .iter()
            .map(|one| (one.kind, one.at))
            .collect();
        format!(
            "{} {:?} {:?} {:?} {:?} {:?} {evidence:?}",
            finding.rule,
            finding.severity,
            finding.confidence,
            finding.id,
            finding.at,
            finding.supersedes
        )
    });
    (heard.calls.clone(), findings.collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_redacted_log_gets_the_same_verdicts(conversation in any_conversation(), payload in prop::sample::select(vec![
        Payload::Full, Payload::Redacted, Payload::None,
    ])) {
        let (mut lines, _) = written(&conversation);
        let call = |id: u32| format!("@2 c {id} tools/call {{\"name\":\"t\",\"arguments\":{{\"secret\":\"s\"}}}}");
        lines.push((END, call(5)));
        lines.push((END + 7_000, call(6)));
        lines.sort_by_key(|(at, _)| *at);
        let script = script(&lines);
        let full = hear_events(events(&script), Settings::default());
        let redactor = redactor(payload);
        let events = events(&script).into_iter().map(|event| redactor.redact(event));
        let without = hear_events(events, Settings::default());
        prop_assert_eq!(verdicts(&full), verdicts(&without));
        prop_assert!(full.findings.iter().any(|finding| finding.rule == "abandoned-call"));
    }

    #[test]
    fn any_text_is_taken(text in "[ -~äß\\n\"\\\\]{0,60}", noise: Vec<u8>) {
        let full = redactor(Payload::Full);
        full.clean(&text);
        let redacted = redactor(Payload::Redacted);
        let masked = redacted.noise(&noise).expect("masked");
        prop_assert_eq!(masked.len(), noise.len());
        let params = Value::from(text.as_str()).to_string();
        let line = format!(r#"{{"jsonrpc":"2.0","method":"m","params":{{"a":{params}}}}}"#);
        for payload in [Payload::Full, Payload::Redacted, Payload::None] {
            let frame = Frame::parse(Bytes::from(line.clone())).expect("a frame");
            let event = Event::Message { conn: ConnId(1), from: Side::Client, offset: None, bytes: 1, frame };
            let at = Timestamp::ZERO;
            let Event::Message { frame, .. } = redactor(payload).redact(Observed { at, event }).event else {
                panic!("a message stays one");
            };
            prop_assert_eq!(frame.messages()[0].method(), Some("m"));
        }
    }
}
