//! What is a frame, and what of it.

use proptest::prelude::*;

use super::*;

fn parse(line: &'static str) -> Result<Frame, Fault> {
    Frame::parse(Bytes::from_static(line.as_bytes()))
}

fn kind(line: &'static str) -> Kind {
    parse(line).expect("a frame").messages()[0].kind.clone()
}

fn number(text: &str) -> Id {
    Id::Number(text.into())
}

#[test]
fn the_four_kinds() {
    let method = "tools/call".into();
    assert_eq!(
        kind(r#"{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"x"}}"#),
        Kind::Request {
            id: number("0"),
            method
        }
    );
    assert_eq!(
        kind(r#"{"method":"notifications/initialized","jsonrpc":"2.0"}"#),
        Kind::Notification {
            method: "notifications/initialized".into()
        }
    );
    assert_eq!(
        kind(r#"{"jsonrpc":"2.0","id":"","result":{}}"#),
        Kind::Response {
            id: Some(Id::String("".into())),
            outcome: Outcome::Result
        }
    );
    assert_eq!(
        kind(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#),
        Kind::Response {
            id: Some(number("1")),
            outcome: Outcome::Error { code: -32601 }
        }
    );
}

#[test]
fn members_in_any_order_and_the_last_of_two() {
    let frame = parse(r#"{"method":"a","params":{"n":[1,2]},"jsonrpc":"2.0","id":2,"id":3}"#)
        .expect("a frame");
    let message = &frame.messages()[0];
    assert_eq!(message.id(), Some(&number("3")));
    assert_eq!(message.method(), Some("a"));
    assert_eq!(frame.params(message), Some(r#"{"n":[1,2]}"#));
    assert_eq!(frame.result(message), None);
    assert!(!frame.is_batch());
}

#[test]
fn null_is_not_absence() {
    let method = || "m".into();
    assert_eq!(
        kind(r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#),
        Kind::Request {
            id: Id::Null,
            method: method()
        }
    );
    assert_eq!(
        kind(r#"{"jsonrpc":"2.0","method":"m"}"#),
        Kind::Notification { method: method() }
    );
    let code = Outcome::Error { code: -32700 };
    assert_eq!(
        kind(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700}}"#),
        Kind::Response {
            id: Some(Id::Null),
            outcome: code
        }
    );
    assert_eq!(
        kind(r#"{"jsonrpc":"2.0","error":{"code":-32700}}"#),
        Kind::Response {
            id: None,
            outcome: code
        }
    );
    assert_eq!(
        kind(r#"{"jsonrpc":"2.0","id":1,"result":null,"error":null}"#),
        Kind::Response {
            id: Some(number("1")),
            outcome: Outcome::Result
        }
    );
}

#[test]
fn batches_keep_their_good_elements() {
    let frame = parse(
        r#" [1, {"jsonrpc":"2.0","method":"a"}, {"level":"info"}, {"jsonrpc":"2.0","id":1,"result":2}] "#,
    )
    .expect("a frame");
    assert!(frame.is_batch());
    assert_eq!(frame.messages().len(), 2);
    assert_eq!(frame.result(&frame.messages()[1]), Some("2"));
    assert_eq!(parse("[]"), Err(Fault::InvalidJson));
    assert_eq!(parse(r#"[{"level":"info"}]"#), Err(Fault::InvalidJson));
    assert_eq!(
        parse(r#"[{"jsonrpc":"2.0","method":"a"}"#),
        Err(Fault::InvalidJson)
    );
}

#[test]
fn terminators_and_marks_are_no_part_of_the_text() {
    let frame = parse("\u{feff}{\"jsonrpc\":\"2.0\",\"method\":\"a\"}\r").expect("a frame");
    assert_eq!(frame.text(), r#"{"jsonrpc":"2.0","method":"a"}"#);
}

#[test]
fn hostile_json_is_only_data() {
    let deep = "[".repeat(10_000) + &"]".repeat(10_000);
    let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"\ud800","params":{deep}}}"#);
    let frame = Frame::parse(line.into()).expect("a frame");
    assert_eq!(frame.messages()[0].method(), Some("\u{fffd}"));
    assert_eq!(frame.params(&frame.messages()[0]), Some(deep.as_str()));
    let huge = "9".repeat(5000) + "e999999";
    let line = format!(r#"{{"jsonrpc":"2.0","id":{huge},"error":{{"code":{huge}}}}}"#);
    let frame = Frame::parse(line.into()).expect("a frame");
    assert_eq!(
        frame.messages()[0].kind,
        Kind::Response {
            id: Some(number(&huge)),
            outcome: Outcome::Error { code: 0 }
        }
    );
}

proptest! {
    #[test]
    fn any_bytes_are_data(line in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Frame::parse(line.into());
    }

    #[test]
    fn a_frame_is_valid_json_with_its_parts(id in any::<i64>(), name in any::<String>()) {
        let value = serde_json::json!({
            "jsonrpc": "2.0", "id": id, "method": name, "params": {"name": name},
        });
        let frame = Frame::parse(value.to_string().into()).expect("a frame");
        let message = &frame.messages()[0];
        prop_assert_eq!(message.id(), Some(&number(&id.to_string())));
        prop_assert_eq!(message.method(), Some(name.as_str()));
        let params = frame.params(message).expect("params");
        let text = serde_json::from_str::<serde_json::Value>(params).expect("valid JSON");
        prop_assert_eq!(text["name"].as_str(), Some(name.as_str()));
    }
}
