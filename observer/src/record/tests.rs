//! What is written is read back, and the text of a message is never touched.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::capture::{Fate, GapReason, InterruptKind, Loss, Pid};
use crate::jsonrpc::{Frame, Id};
use crate::session::{
    ConnId, ConnectionChange, Event, Noise, NoiseKind, Observed, Party, Side, Transport,
};
use crate::verdict::{self, Confidence, Culprit, Outcome, Severity};

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
            "EOF while parsing a string",
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
        (b"\xff\xfe", "expected value"),
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
    let committed = include_str!("../../../docs/audit-log.schema.json");
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

/// A time in whole microseconds, as the log keeps it.
fn any_time() -> impl Strategy<Value = Timestamp> {
    (0..1u64 << 50).prop_map(|micros| Timestamp::from_nanos(micros * 1_000))
}

fn any_word<T: Word + std::fmt::Debug>() -> impl Strategy<Value = T> {
    select(T::WORDS).prop_map(|word| T::from_word(word).expect("a word"))
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~]{0,12}", any::<String>()]
}

fn any_pid() -> impl Strategy<Value = Pid> {
    any::<u32>().prop_map(Pid)
}

fn any_conn() -> impl Strategy<Value = ConnId> {
    (1..=u32::MAX).prop_map(ConnId)
}

fn any_loss() -> impl Strategy<Value = Loss> {
    any::<[u64; 6]>().prop_map(
        |[
            seen,
            submitted,
            ring_full,
            unreadable,
            filtered,
            events_lost,
        ]| {
            Loss {
                seen,
                submitted,
                ring_full,
                unreadable,
                filtered,
                events_lost,
            }
        },
    )
}

fn any_frame() -> impl Strategy<Value = Frame> {
    let blank = "[ \t]{0,2}";
    (blank, any::<i64>(), any_text(), any_text(), blank).prop_map(|(a, id, method, text, b)| {
        let [method, text] = [method, text].map(|text| serde_json::Value::from(text).to_string());
        let line = format!(
            r#"{a}{{"jsonrpc":"2.0",{b}"id":{id},"method":{method},"params":{{"x":{text}}}}}{b}"#
        );
        Frame::parse(Bytes::from(line)).expect("a frame")
    })
}

fn any_change() -> impl Strategy<Value = ConnectionChange> {
    let party = || {
        option::of((any_pid(), option::of(any_text())).prop_map(|(pid, exe)| Party { pid, exe }))
    };
    let stream = || option::of(any_text());
    let open = (
        party(),
        party(),
        any_word::<Transport>(),
        stream(),
        stream(),
    )
        .prop_map(
            |(client, server, transport, to_server, to_client)| ConnectionChange::Open {
                client,
                server,
                transport,
                streams: [to_server, to_client],
            },
        );
    prop_oneof![open, Just(ConnectionChange::Close)]
}

fn any_process() -> impl Strategy<Value = Event> {
    let fate = prop_oneof![
        any::<i32>().prop_map(Fate::Code),
        any::<i32>().prop_map(Fate::Signal)
    ];
    prop_oneof![
        (
            any_pid(),
            option::of(any_pid()),
            option::of(any_text()),
            vec(any_text(), 0..3),
            any::<Option<u64>>()
        )
            .prop_map(|(pid, ppid, exe, argv, start)| {
                Event::ProcessSeen {
                    pid,
                    ppid,
                    exe,
                    argv,
                    start,
                }
            }),
        (any_pid(), option::of(any_text()), vec(any_text(), 0..3))
            .prop_map(|(pid, exe, argv)| Event::ProcessExec { pid, exe, argv }),
        (any_pid(), option::of(fate)).prop_map(|(pid, fate)| Event::ProcessExit { pid, fate }),
    ]
}

fn any_of_a_stream() -> impl Strategy<Value = Event> {
    let place = || (any_conn(), any_word::<Side>());
    let noise = (
        place(),
        any::<Option<u64>>(),
        any::<u64>(),
        any_word::<NoiseKind>(),
        any::<Vec<u8>>(),
    )
        .prop_map(|((conn, from), offset, bytes, kind, text)| {
            Event::Noise(Noise {
                conn,
                from,
                offset,
                bytes,
                kind,
                text: text.into(),
            })
        });
    let gap = (
        place(),
        any::<u64>(),
        any::<Option<u64>>(),
        any_word::<GapReason>(),
    )
        .prop_map(|((conn, from), offset, bytes, reason)| Event::Gap {
            conn,
            from,
            offset,
            bytes,
            reason,
        });
    prop_oneof![
        (any_conn(), any_change()).prop_map(|(conn, change)| Event::Connection { conn, change }),
        (place(), any::<Option<u64>>(), any::<u64>(), any_frame()).prop_map(
            |((conn, from), offset, bytes, frame)| {
                Event::Message {
                    conn,
                    from,
                    offset,
                    bytes,
                    frame,
                }
            }
        ),
        noise,
        gap,
        place().prop_map(|(conn, from)| Event::Eof { conn, from }),
        place().prop_map(|(conn, from)| Event::Refused { conn, from }),
        (place(), any::<u64>()).prop_map(|((conn, from), offset)| Event::Delivered {
            conn,
            from,
            offset
        }),
    ]
}

fn any_observed() -> impl Strategy<Value = Observed> {
    let event = prop_oneof![
        any_process(),
        any_of_a_stream(),
        (
            any_pid(),
            any_word::<InterruptKind>(),
            option::of(any_pid())
        )
            .prop_map(|(pid, kind, sender)| Event::Interrupt { pid, kind, sender }),
        (any_pid(), any::<u64>(), any::<Option<SocketAddr>>()).prop_map(|(pid, bytes, peer)| {
            Event::NetSend {
                pid,
                bytes,
                peer: peer.map(unscoped),
            }
        }),
        any_time().prop_map(|nanos| Event::Suspended {
            nanos: nanos.as_nanos()
        }),
        any_loss().prop_map(Event::Loss),
    ];
    (any_time(), event).prop_map(|(at, event)| Observed { at, event })
}

/// The text of an address has no IPv6 flow label.
fn unscoped(peer: SocketAddr) -> SocketAddr {
    SocketAddr::new(peer.ip(), peer.port())
}

fn any_id() -> impl Strategy<Value = Id> {
    prop_oneof![
        any_text().prop_map(|text| Id::String(text.into())),
        any::<i64>().prop_map(|number| Id::Number(number.to_string().into())),
        Just(Id::Number("10000000000000000000000.50".into())),
    ]
}

fn any_call() -> impl Strategy<Value = verdict::CallRecord> {
    let what = (
        any_conn(),
        any_word::<Side>(),
        any_id(),
        any_text(),
        option::of(any_text()),
    );
    let when = (
        any_time(),
        any_time(),
        option::of(any_time()),
        any_word::<Outcome>(),
    );
    let cancel = option::of((any_time(), option::of(any_text())));
    let how_much = any::<(u64, Option<u64>, u64, Option<u32>)>();
    (what, when, how_much, cancel).prop_map(
        |((conn, from, id, method, name), (at, sent, ended, outcome), how_much, cancel)| {
            let (request_bytes, response_bytes, progress, wasted) = how_much;
            verdict::CallRecord {
                at,
                conn,
                from,
                id,
                method,
                name,
                sent,
                ended,
                outcome,
                wasted: wasted.map(|micros| Duration::from_micros(micros.into())),
                request_bytes,
                response_bytes,
                progress,
                cancel: cancel.map(|(at, reason)| verdict::Cancellation { at, reason }),
            }
        },
    )
}

fn any_finding() -> impl Strategy<Value = verdict::Finding> {
    let about = (
        option::of(any_conn()),
        option::of(any_id()),
        option::of(any_text()),
    );
    let grade = (
        any_word::<Severity>(),
        any_word::<Confidence>(),
        any_word::<Culprit>(),
    );
    let words = (any_text(), option::of(any_text()), option::of(any_text()));
    let evidence = vec((any_time(), any_text()), 0..3);
    (
        any_time(),
        any::<(u32, Option<u32>)>(),
        about,
        grade,
        words,
        evidence,
    )
        .prop_map(
            |(
                at,
                (number, supersedes),
                (conn, id, method),
                grade,
                (message, name, spec),
                evidence,
            )| {
                let (severity, confidence, side) = grade;
                verdict::Finding {
                    at,
                    number,
                    rule: "abandoned-call",
                    severity,
                    confidence,
                    side,
                    conn,
                    id,
                    method,
                    name,
                    message,
                    evidence: evidence
                        .into_iter()
                        .map(|(at, detail)| verdict::Evidence {
                            kind: "retry",
                            at,
                            detail,
                        })
                        .collect(),
                    spec,
                    supersedes,
                }
            },
        )
}

fn any_summary() -> impl Strategy<Value = verdict::Summary> {
    let findings = btree_map(
        (
            select(&["abandoned-call", "stdout-noise"][..]),
            any_word::<Severity>(),
        ),
        any::<u64>(),
        0..4,
    );
    let calls = btree_map(any_word::<Outcome>(), any::<u64>(), 0..4);
    (
        any_time(),
        calls,
        findings,
        any::<(u64, u64, u64, bool)>(),
        option::of(any_loss()),
    )
        .prop_map(
            |(at, calls, findings, (messages, bytes, gaps, complete), loss)| verdict::Summary {
                at,
                calls,
                findings,
                messages,
                bytes,
                gaps,
                complete,
                loss,
            },
        )
}

fn any_derived() -> impl Strategy<Value = verdict::Output> {
    prop_oneof![
        any_call().prop_map(verdict::Output::Call),
        any_finding().prop_map(verdict::Output::Finding),
        any_summary().prop_map(verdict::Output::Summary),
    ]
}
