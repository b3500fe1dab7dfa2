//! Any observed event, any conclusion.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use crate::capture::GapReason;
use crate::capture::{Fate, InterruptKind, Loss, Pid, Timestamp};
use crate::jsonrpc::{Frame, Id};
use crate::record::Word;
use crate::session::{
    ConnId, ConnectionChange, Event, Noise, NoiseKind, Observed, Party, Side, Transport,
};
use crate::verdict::{self, Confidence, Culprit, Outcome, Severity};

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

pub(super) fn any_observed() -> impl Strategy<Value = Observed> {
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

pub(super) fn any_derived() -> impl Strategy<Value = verdict::Output> {
    prop_oneof![
        any_call().prop_map(verdict::Output::Call),
        any_finding().prop_map(verdict::Output::Finding),
        any_summary().prop_map(verdict::Output::Summary),
    ]
}
