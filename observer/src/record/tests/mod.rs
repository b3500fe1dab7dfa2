//! What is written is read back, and the text of a message is never touched.

mod any;
mod chain;

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::capture::{Fate, GapReason, InterruptKind, Pid};
use crate::jsonrpc::Frame;
use crate::session::{ConnId, Event, NoiseKind, Observed, Side};
use crate::verdict::{Confidence, Outcome, Severity};
use any::{any_derived, any_observed};

fn line_of(record: &Record) -> String {
    let mut line = Vec::new();
    record.write_line(&mut line);
    String::from_utf8(line).expect("a line is UTF-8")
}

fn read(line: &str) -> Record {
    let line = line.strip_suffix('\n').expect("a line ends with a newline");
    assert!(!line.contains('\n'), "a record is one line");
    parse_line(line.as_bytes())
        .expect("a record")
        .expect("a known record")
}

fn message(text: &str) -> Observed {
    let frame = Frame::parse(Bytes::copy_from_slice(text.as_bytes())).expect("a frame");
    let bytes = text.len() as u64 + 1;
    let event = Event::Message {
        conn: ConnId(1),
        from: Side::Client,
        offset: Some(7),
        bytes,
        frame,
    };
    Observed {
        at: Timestamp::from_nanos(1_500_000_000),
        event,
    }
}

#[test]
fn a_line_is_as_the_contract_shows_it() {
    let line = line_of(&Record::from(&message(r#"{"jsonrpc":"2.0","method":"x"}"#)));
    assert_eq!(
        line,
        concat!(
            r#"{"type":"message","t":1.5,"conn":1,"from":"client","bytes":31,"offset":7,"#,
            r#""json":{"jsonrpc":"2.0","method":"x"}}"#,
            "\n"
        )
    );
    let exit = Observed {
        at: Timestamp::from_nanos(12_653_278_000),
        event: Event::ProcessExit {
            pid: Pid(7),
            fate: Some(Fate::Signal(9)),
        },
    };
    assert_eq!(
        line_of(&Record::from(&exit)),
        "{\"type\":\"process\",\"t\":12.653278,\"pid\":7,\"event\":\"exit\",\
         \"status\":{\"signal\":9}}\n"
    );
}

#[test]
fn the_text_of_a_message_is_never_touched() {
    let deep = format!(
        r#"{{"jsonrpc":"2.0","method":"m","params":{{"a":{}1{}}}}}"#,
        "[".repeat(10_000),
        "]".repeat(10_000)
    );
    for text in [
        " \t{ \"jsonrpc\" : \"2.0\",\"method\":\"m\" } \t ",
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":12345678901234567890123456789.10e+400,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","method":"\u006d","params":{"a":"\/\u00e9\ud83d\ude00","b":"é😀"}}"#,
        r#"[{"jsonrpc":"2.0","method":"m"} , {"jsonrpc":"2.0","method":"m"}]"#,
        "{\"jsonrpc\":\"2.0\",\r\"method\":\"m\",\"params\":{\"a\":\"\u{2028}\u{9b}\u{7f}\"}}",
        &deep,
    ] {
        let observed = message(text);
        let line = line_of(&Record::from(&observed));
        let verbatim = line.split_once("\"json\":").expect("it has `json`").1;
        assert_eq!(verbatim.strip_suffix("}\n"), Some(text));
        assert_eq!(read(&line).into_observed(), Some(observed));
    }
}

#[test]
fn fields_may_come_in_any_order_and_blanks_anywhere() {
    let line = br#" { "json" : {"jsonrpc":"2.0","method":"m"} ,"new":[{}], "bytes":40,
        "from":"server", "t":1, "type":"message"}"#;
    let Some(Record::Message(message)) = parse_line(line).expect("a record") else {
        panic!("a message");
    };
    assert_eq!(
        message.json.text().trim(),
        r#"{"jsonrpc":"2.0","method":"m"}"#
    );
    assert_eq!(
        (message.conn, message.t),
        (ConnId(1), Timestamp::from_nanos(1_000_000_000))
    );
}

const HEADER: &[u8] = br#"{"type":"header","t":0,"schema":"observer/1","payload":"full"}"#;

#[test]
fn what_is_unknown_is_passed_over() {
    let mut reader = Reader::new();
    reader.handle_line(HEADER).expect("a header");
    let deep = format!(
        "{{\"type\":\"later\",\"t\":1,\"x\":{}{}}}",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    assert_eq!(
        reader.handle_line(deep.as_bytes()).expect("passed over"),
        None
    );
    assert_eq!(reader.handle_line(b"").expect("passed over"), None);
    let eof = br#"{"type":"eof","t":1,"from":"client","later":{"a":[]}}"#;
    assert!(matches!(reader.handle_line(eof), Ok(Some(Record::Eof(_)))));
}

#[test]
fn a_word_of_a_later_version_is_no_damage() {
    let read = |line: &str| parse_line(line.as_bytes()).expect("no damage");
    for line in [
        r#"{"type":"interrupt","t":1,"pid":7,"kind":"sigusr3"}"#,
        r#"{"type":"activity","t":1,"pid":7,"kind":"disk","bytes":1}"#,
        r#"{"type":"process","t":1,"pid":7,"event":"paused"}"#,
        r#"{"type":"connection","t":1,"event":"moved"}"#,
        r#"{"type":"summary","t":1,"calls":{"postponed":1},"findings":{},"messages":0,"bytes":0,"gaps":0,"complete":true}"#,
    ] {
        assert_eq!(read(line), None, "{line}");
    }
    // What went by unseen did so for whatever reason, and in whatever form.
    let gap = r#"{"type":"gap","t":1,"from":"client","offset":0,"bytes":9,"reason":"cosmic-ray"}"#;
    assert!(matches!(read(gap), Some(Record::Gap(gap)) if gap.reason == GapReason::Unreadable));
    let noise = r#"{"type":"noise","t":1,"from":"client","bytes":9,"kind":"morse"}"#;
    assert!(
        matches!(read(noise), Some(Record::Noise(noise)) if noise.kind == NoiseKind::Oversized)
    );
    let open = r#"{"type":"connection","t":1,"event":"open","transport":"carrier-pigeon"}"#;
    assert!(matches!(read(open), Some(Record::Connection(open)) if open.transport.is_none()));
    let header = r#"{"type":"header","t":0,"schema":"observer/1.7","backend":"dtrace","payload":"hashed","scope":{"kind":"moon"}}"#;
    let Some(Record::Header(header)) = read(header) else {
        panic!("a header");
    };
    assert_eq!(
        (header.backend, header.payload, header.scope),
        (Backend::Replay, Payload::Redacted, None)
    );
}

#[test]
fn what_is_no_log_is_refused() {
    let first = |line: &[u8]| {
        Reader::new()
            .handle_line(line)
            .expect_err("refused")
            .to_string()
    };
    assert_eq!(
        first(br#"{"type":"header","t":"tomorrow","schema":"observer/2.1"}"#),
        "it has the schema \"observer/2.1\", and this observer knows \"observer/1\""
    );
    for line in [
        &br#"{"type":"header","t":0,"schema":"strace/1"}"#[..],
        br#"{"type":"eof","t":0,"from":"client"}"#,
        b"",
        b"\x7fELF",
        b"{}",
        br#"{"type":"header""#,
    ] {
        assert!(
            first(line).starts_with("it is no audit log: "),
            "{}",
            first(line)
        );
    }
    assert!(matches!(Reader::new().finish(), Err(ReadError::Empty)));
}

#[test]
fn damage_is_named_by_its_line() {
    for (line, reason) in [
        (
            &br#"{"type":"eof","t":-1,"from":"client"}"#[..],
            "-1 is no time in seconds",
        ),
        (
            br#"{"type":"eof","t":1,"from":"cli"#,
            "it ends in the middle",
        ),
        (br#"{"type":"eof","t":1}"#, "missing field `from`"),
        (
            br#"{"type":"eof","t":1,"from":"nobody"}"#,
            "unknown variant `nobody`",
        ),
        (
            br#"{"type":"message","t":1,"from":"client","bytes":3,"json":{}}"#,
            "`json` is no",
        ),
        (b"\xff\xfe", "it is no JSON from column 1 on"),
        (HEADER, "begins another log"),
    ] {
        let mut reader = Reader::new();
        reader.handle_line(HEADER).expect("a header");
        let error = reader.handle_line(line).expect_err("damaged").to_string();
        assert!(
            error.starts_with("line 2 ") && error.contains(reason),
            "{error}"
        );
    }
}

#[test]
fn a_line_that_was_not_finished_is_cut_not_damaged() {
    let line = br#"{"type":"eof","t":1,"from":"client"}"#;
    for end in 1..line.len() {
        let mut reader = Reader::new();
        reader.handle_line(HEADER).expect("a header");
        let tail = reader.handle_tail(&line[..end]).expect("no error");
        assert!(matches!(tail, Tail::Cut { line: 2 }), "{end}: {tail:?}");
    }
    let mut reader = Reader::new();
    reader.handle_line(HEADER).expect("a header");
    assert!(matches!(
        reader.handle_tail(line),
        Ok(Tail::Record(Some(Record::Eof(_))))
    ));
}

#[test]
fn every_word_is_read_back() {
    fn check<T: Word + PartialEq + std::fmt::Debug>() {
        for &word in T::WORDS {
            assert_eq!(T::from_word(word).map(Word::word), Some(word));
        }
        assert_eq!(T::from_word("").map(Word::word), None);
    }
    check::<NoiseKind>();
    check::<GapReason>();
    check::<InterruptKind>();
    check::<Outcome>();
    check::<Severity>();
    check::<Confidence>();
}

#[test]
fn the_committed_schema_is_that_of_the_types() {
    let committed = include_str!("../../../../docs/audit-log.schema.json");
    assert!(
        committed == format!("{:#}\n", schema()),
        "docs/audit-log.schema.json is out of date: run `cargo xtask schema`"
    );
}

proptest! {
    #[test]
    fn an_observed_event_survives_the_log(observed in any_observed()) {
        let line = line_of(&Record::from(&observed));
        prop_assert_eq!(&line[..9], "{\"type\":\"");
        prop_assert_eq!(read(&line).into_observed(), Some(observed));
    }

    #[test]
    fn a_derived_record_survives_the_log(output in any_derived()) {
        let record = Record::from(&output);
        prop_assert_eq!(read(&line_of(&record)), record);
    }

    #[test]
    fn no_line_makes_the_reader_panic(line: Vec<u8>, junk in "[ -~]{0,40}") {
        let _ = parse_line(&line);
        let _ = parse_line(format!("{{\"type\":\"message\",\"t\":1,{junk}}}").as_bytes());
    }
}

/// The writer puts `json` last; who else writes may not, or have such a member elsewhere.
#[test]
fn a_message_is_read_wherever_its_json_stands() {
    let json = r#"{"jsonrpc":"2.0","method":"m","params":{"a":1,"json":{}}}"#;
    for line in [
        format!(r#"{{"type":"message","t":1,"conn":2,"from":"client","bytes":9,"json":{json}}}"#),
        format!(r#"{{"type":"message","json":{json},"t":1,"conn":2,"from":"client","bytes":9}}"#),
        format!(r#"{{"type":"message","t":1,"conn":2,"json":{json},"from":"client","bytes":9}}"#),
        format!(
            r#"{{"type":"message","x":{{"y":1,"json":{{}}}},"t":1,"conn":2,"from":"client","bytes":9, "json": {json} }}"#
        ),
    ] {
        let Ok(Some(Record::Message(message))) = parse_line(line.as_bytes()) else {
            panic!("{line}");
        };
        assert_eq!((message.conn, message.bytes), (ConnId(2), 9));
        assert_eq!(message.json.text().trim(), json);
    }
    for line in [
        format!(
            r#"{{"type":"message","t":1,"from":"client","bytes":9,"json":{json},"json":{json}}}"#
        ),
        format!(r#"{{"type":"message","t":1,"from":"client","bytes":9,"json":{json}"#),
        format!(r#"{{"type":"message","t":1,"from":"client","json":{json}}}"#),
        r#"{"type":"message","t":1,"from":"client","bytes":9,"json":{}}"#.to_owned(),
    ] {
        assert!(parse_line(line.as_bytes()).is_err(), "{line}");
    }
}
