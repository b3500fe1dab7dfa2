//! What the observed programs say must not reach the terminal as it is, must not fill the memory,
//! and must not be hidden where it is lost.

use ratatui::buffer::Cell;

use super::{Eye, frame, header, log, message, replayed};
use crate::capture::{Loss, Timestamp};
use crate::pipeline::Output;
use crate::session::{Event, Observed};
use crate::tui::message::{Arrival, Effect, Message};
use crate::tui::model::LogPlace;

#[test]
fn nothing_that_a_terminal_would_obey_is_drawn() {
    let evil = r"\u001b]0;owned\u0007\u009b31m\u202egnirts\u200b\t";
    let records = [
        message(
            1.0,
            "client",
            &format!(
                r#"{{"jsonrpc":"2.0","id":"{evil}","method":"{evil}","params":{{"name":"{evil}","arguments":{{"{evil}":"{evil}"}}}}}}"#
            ),
        ),
        format!(
            r#"{{"type":"noise","t":1.5,"conn":1,"from":"server","bytes":30,"kind":"text","text":"{}"}}"#,
            r"\u001b[2Jgone"
        ),
        message(
            2.0,
            "client",
            &format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":"{evil}","reason":"{evil}"}}}}"#
            ),
        ),
        format!(
            r#"{{"type":"process","t":2.5,"pid":9,"event":"seen","exe":"/{evil}","argv":["{evil}"]}}"#
        ),
    ];
    let records: Vec<&str> = records.iter().map(String::as_str).collect();
    let mut eye = Eye::on_log(&log(&records), super::ROOMY);
    for keys in [
        "",
        "<enter>",
        "q1",
        "<enter>",
        "q3",
        "<enter>",
        "q4",
        "<enter>",
        "q4jj<enter>",
        "q5",
        "2mc",
    ] {
        eye.press(keys);
        for symbol in eye.buffer(100, 30).content.iter().map(Cell::symbol) {
            let bad = |char: char| {
                char.is_control()
                    || matches!(char, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            };
            assert!(!symbol.contains(bad), "{symbol:?} after {keys}");
        }
    }
}

#[test]
fn wide_and_right_to_left_text_is_cut_between_characters() {
    let name = "你好世界你好世界你好世界你好世界שלום עולם";
    let json =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}"}}}}"#);
    let mut eye = Eye::on_log(&log(&[&message(1.0, "client", &json)]), super::ROOMY);
    for columns in 20..100 {
        for line in eye.see(columns, 24).lines() {
            let line = line.trim_end_matches('▐');
            assert!(
                crate::tui::text::width(line) <= usize::from(columns),
                "{line}"
            );
        }
    }
}

#[test]
fn loss_is_told_in_the_header_of_every_screen() {
    let gap = r#"{"type":"gap","t":1.0,"conn":1,"from":"server","offset":100,"bytes":4096,"reason":"ring-full"}"#;
    let mut eye = Eye::on_log(&log(&[gap]), super::ROOMY);
    for keys in ["", "1", "3", "4", "5", "?"] {
        for columns in [60, 80, 120] {
            let screen = eye.press(keys).see(columns, 24);
            assert!(
                screen
                    .lines()
                    .next()
                    .is_some_and(|line| line.contains("1 gap")),
                "{screen}"
            );
        }
    }
    let loss = Loss {
        seen: 9_000,
        submitted: 5_000,
        ring_full: 4_000,
        ..Loss::default()
    };
    let output = Output::Observed(Observed {
        at: Timestamp::ZERO,
        event: Event::Loss(loss),
    });
    eye.tell(Message::Arrived(vec![Arrival {
        output,
        place: None,
    }]));
    assert!(eye.see(80, 24).contains("LOST 4.0 kB, 1 gap"));
}

#[test]
fn a_verdict_that_a_gap_covers_says_unknown() {
    let records = [
        message(1.0, "client", r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}"#),
        r#"{"type":"gap","t":2.0,"conn":1,"from":"server","offset":0,"bytes":4096,"reason":"ring-full"}"#.into(),
    ];
    let mut eye = Eye::on_log(&log(&[&records[0], &records[1]]), super::ROOMY);
    let screen = eye.see(80, 24);
    assert!(screen.contains("? unknown"), "{screen}");
    assert!(screen.contains("nobody can say how it ended"), "{screen}");
}

#[test]
fn old_texts_leave_memory_and_are_read_back_from_the_log() {
    let text = "x".repeat(1 << 20);
    let records: Vec<_> = (0..20)
        .map(|id| message(f64::from(id), "client", &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{text}"}}}}"#)))
        .collect();
    let records: Vec<&str> = records.iter().map(String::as_str).collect();
    let log = log(&records);
    let mut eye = Eye::on_log(&log, 4 << 20);
    let held: usize = eye
        .model
        .ledger
        .frames
        .iter()
        .filter_map(|(_, frame)| frame.text())
        .map(str::len)
        .sum();
    assert!(held <= 5 << 20, "{held}");
    eye.press("g<enter>");
    let Some(Effect::Fetch(
        number,
        LogPlace {
            part: 1,
            offset,
            bytes,
        },
    )) = eye.effects.pop()
    else {
        panic!("{:?}", eye.effects);
    };
    let line =
        &log[usize::try_from(offset).expect("small")..][..usize::try_from(bytes).expect("small")];
    let record = crate::record::parse_line(line.trim_ascii_end())
        .expect("a record")
        .expect("known");
    let event = record.into_observed().expect("observed").event;
    let shown = |eye: &Eye, word: &str| {
        eye.model
            .pages
            .last()
            .is_some_and(|(_, reading)| reading.lines.iter().any(|line| line.contains(word)))
    };
    assert!(shown(&eye, "being read back from the log"));
    eye.tell(Message::Fetched(number, Ok(event)));
    assert!(shown(&eye, "\"jsonrpc\"") && !shown(&eye, "being read back"));
    eye.press("q");
    assert!(
        eye.model
            .ledger
            .frames
            .get(number)
            .is_some_and(|frame| frame.text().is_none())
    );
}

#[test]
fn memory_is_bounded_whatever_comes() {
    let (head, _) = replayed(&log(&[]));
    let mut eye = Eye::new(head, true, 1 << 20);
    for id in 0..20_000_u32 {
        let json = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"x"}}}}"#
        );
        let event = Event::Message {
            conn: crate::session::ConnId(1),
            from: crate::session::Side::Client,
            offset: None,
            bytes: json.len() as u64,
            frame: frame(json),
        };
        let output = Output::Observed(Observed {
            at: Timestamp::from_nanos(id.into()),
            event,
        });
        eye.tell(Message::Arrived(vec![Arrival {
            output,
            place: None,
        }]));
    }
    let ledger = &eye.model.ledger;
    assert!(
        ledger.frames.len() + ledger.calls.len() < 8_000,
        "{}",
        ledger.frames.len()
    );
    assert!(ledger.totals.forgotten.1 > 10_000);
    assert_eq!(ledger.totals.messages, 20_000);
    assert!(eye.see(80, 24).contains("19999"), "the newest is there");
}

#[test]
fn what_a_command_prints_is_shown_without_its_colours() {
    let mut eye = Eye::new(header(), true, super::ROOMY);
    eye.tell(Message::Printed(
        b"\x1b[31mred\x1b[0m plain\nhalf \x07".to_vec(),
    ));
    for size in [(80, 24), (120, 40)] {
        let screen = eye.see(size.0, size.1);
        assert!(
            screen.contains("red plain") && screen.contains(r"half \u{7}"),
            "{screen}"
        );
    }
}

#[test]
fn silence_is_no_success() {
    let screen = Eye::on_log(&log(&[]), super::ROOMY).see(80, 24);
    assert!(screen.contains("no MCP message was seen"), "{screen}");
}

#[test]
fn what_the_view_left_out_is_told() {
    let mut eye = Eye::new(header(), true, super::ROOMY);
    eye.tell(Message::Skipped(12));
    assert!(eye.see(80, 24).contains("12 not shown"));
}
