//! What sequences of keys lead to.

use ratatui::crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use super::{Eye, log, message, replayed};
use crate::capture::Timestamp;
use crate::jsonrpc::Id;
use crate::pipeline::{Output, Pipeline};
use crate::session;
use crate::session::ConnId;
use crate::tui::message::{Arrival, Effect, Message, SavedEvent};
use crate::tui::model::{Column, Screen, Subject};
use crate::verdict::{self, Confidence, Culprit, Finding, Outcome, Severity};

const RETRY: &str = "made/codex-0.163-retry.jsonl";

fn ids(eye: &Eye) -> Vec<String> {
    let rows = eye.model.calls.rows().iter();
    rows.filter_map(|row| Some(eye.model.ledger.calls.get(*row)?.id.to_string()))
        .collect()
}

fn current(eye: &Eye) -> Option<String> {
    eye.model
        .current_call()
        .map(|(_, call)| call.id.to_string())
}

#[test]
fn a_stranger_sees_the_abandoned_call_first() {
    let mut eye = Eye::on(RETRY);
    assert_eq!(current(&eye).as_deref(), Some("2"));
    let screen = eye.see(80, 24);
    assert!(screen.contains("✗ 2 calls abandoned"), "{screen}");
    assert!(
        screen.contains("The host stopped waiting after 3.15 s and never told the server"),
        "{screen}"
    );
    assert!(screen.contains("The same call was sent again"), "{screen}");
}

#[test]
fn where_nothing_went_wrong_the_call_that_was_cut_short_is_looked_at() {
    let mut eye = Eye::on("hosts/py-sdk2-sigint.jsonl");
    assert_eq!(current(&eye).as_deref(), Some("4"));
    let screen = eye.see(80, 24);
    assert!(screen.contains("no call was abandoned"), "{screen}");
    assert!(
        screen.contains("The host cancelled it after 1.53 s"),
        "{screen}"
    );
}

#[test]
fn findings_are_gone_through_in_a_circle() {
    let mut eye = Eye::on(RETRY);
    let mut seen = vec![current(&eye)];
    for _ in 0..3 {
        seen.push(current(eye.press("n")));
    }
    let seen: Vec<_> = seen.iter().flatten().map(String::as_str).collect();
    assert_eq!(seen, ["2", "3", "4", "2"]);
    assert_eq!(current(eye.press("N")).as_deref(), Some("4"));
}

#[test]
fn rows_are_gone_through_with_vi_keys_and_arrows() {
    let mut eye = Eye::on(RETRY);
    for (keys, id) in [
        ("g", "0"),
        ("j", "1"),
        ("<down>", "2"),
        ("k", "1"),
        ("G", "4"),
        ("j", "4"),
    ] {
        assert_eq!(current(eye.press(keys)).as_deref(), Some(id), "{keys}");
    }
}

#[test]
fn screens_are_turned() {
    let mut eye = Eye::on(RETRY);
    for (keys, screen) in [
        ("1", Screen::Connections),
        ("<tab><tab>", Screen::Findings),
        ("5", Screen::Timeline),
        ("<tab>", Screen::Connections),
    ] {
        eye.press(keys);
        assert_eq!(eye.model.screen, screen, "{keys}");
    }
}

#[test]
fn pages_open_and_close_one_over_the_other() {
    let mut eye = Eye::on(RETRY);
    eye.press("<enter>?");
    let subjects: Vec<_> = eye
        .model
        .pages
        .iter()
        .map(|(subject, _)| *subject)
        .collect();
    assert_eq!(subjects, [Subject::Call(2), Subject::Help]);
    eye.press("q<esc>");
    assert!(eye.model.pages.is_empty() && eye.effects.is_empty());
    eye.press("q");
    assert_eq!(eye.effects, [Effect::Quit]);
}

#[test]
fn a_filter_chooses_and_escape_drops_it() {
    let mut eye = Eye::on(RETRY);
    eye.press("/outcome:abandoned<enter>");
    assert_eq!(ids(&eye), ["2", "3"]);
    eye.press("/<C-u>-method:tools/call<enter>");
    assert_eq!(ids(&eye), ["0", "1"]);
    eye.press("/<C-u>rule:torn<enter>");
    assert_eq!(ids(&eye), ["4"]);
    eye.press("/<C-u>text:done<enter>");
    assert_eq!(ids(&eye), ["2", "3"]);
    eye.press("/<C-u>took>5.01s<enter>");
    assert_eq!(ids(&eye), ["2"]);
    eye.press("<esc>");
    assert_eq!(ids(&eye).len(), 5);
    eye.press("/colour:red<enter>");
    assert!(
        eye.see(80, 24).contains("no field"),
        "an error is told, and the prompt stays open"
    );
    eye.press("<esc>");
    assert_eq!(ids(&eye).len(), 5);
}

#[test]
fn a_filter_keeps_up_with_what_becomes_of_calls() {
    let trace = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/traces")
        .join(RETRY);
    let (header, arrivals) = replayed(&std::fs::read(trace).expect("a trace"));
    let mut eye = Eye::new(header, true, super::ROOMY);
    eye.press("/outcome:abandoned<enter>");
    for arrival in arrivals {
        eye.tell(Message::Arrived(vec![arrival]));
        eye.see(80, 24);
    }
    assert_eq!(ids(&eye), ["2", "3"]);
    assert_eq!(current(&eye).as_deref(), Some("3"));
}

#[test]
fn nobody_is_accused_of_what_only_looks_like_it() {
    let request = message(
        1.0,
        "client",
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}}"#,
    );
    let (header, mut arrivals) = replayed(&log(&[&request]));
    arrivals.retain(|arrival| matches!(arrival.output, Output::Observed(_)));
    let mut eye = Eye::new(header, true, super::ROOMY);
    eye.tell(Message::Arrived(arrivals));
    let mut find = |confidence| {
        let finding = Finding {
            at: Timestamp::from_nanos(2_000_000_000),
            number: 1,
            rule: "abandoned-call",
            severity: Severity::Info,
            confidence,
            side: Culprit::Host,
            conn: Some(ConnId(1)),
            id: Some(Id::Number("7".into())),
            method: Some("tools/call".into()),
            name: Some("x".into()),
            message: "it looks like it".into(),
            evidence: Vec::new(),
            spec: None,
            supersedes: None,
        };
        let output = Output::Derived(verdict::Output::Finding(finding));
        let place = None;
        eye.tell(Message::Arrived(vec![Arrival { output, place }]));
        eye.see(80, 24)
    };
    let seen = find(Confidence::Possible);
    assert!(
        seen.contains("? 1 call perhaps abandoned") && seen.contains("◌ running"),
        "{seen}"
    );
    let seen = find(Confidence::Probable);
    assert!(seen.contains("✗ 1 call very likely abandoned: "), "{seen}");
    let seen = find(Confidence::Confirmed);
    assert!(
        seen.contains("✗ 1 call abandoned: the host gave up"),
        "{seen}"
    );
}

#[test]
fn calls_are_sorted_by_each_column() {
    let mut eye = Eye::on(RETRY);
    eye.press("s").see(80, 24);
    assert_eq!(
        (eye.model.sort.0, ids(&eye)[4].as_str()),
        (Column::Took, "2")
    );
    eye.press("S").see(80, 24);
    assert_eq!(ids(&eye)[0], "2");
    eye.press("sss").see(80, 24);
    assert_eq!(
        (eye.model.sort.0, ids(&eye)[0].as_str()),
        (Column::Size, "1")
    );
    eye.press("s").see(80, 24);
    assert_eq!(
        (eye.model.sort, ids(&eye)[0].as_str()),
        ((Column::Time, false), "0")
    );
}

#[test]
fn nothing_is_lost_while_paused() {
    let trace = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/traces")
        .join(RETRY);
    let (header, mut arrivals) = replayed(&std::fs::read(trace).expect("a trace"));
    let later = arrivals.split_off(6);
    let mut eye = Eye::new(header, true, super::ROOMY);
    eye.tell(Message::Arrived(arrivals)).press("p");
    let before = ids(&eye);
    eye.tell(Message::Arrived(later)).tell(Message::Idle);
    assert_eq!(ids(&eye), before);
    let seen = eye.see(80, 24);
    assert!(seen.contains("PAUSED, 8 more"), "{seen}");
    eye.press("p");
    assert_eq!(ids(&eye).len(), 5);
}

#[test]
fn a_running_call_grows_old_and_nothing_else_is_drawn_anew() {
    let request = message(
        1.0,
        "client",
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}}"#,
    );
    let answer = message(4.0, "server", r#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
    let (header, arrivals) = replayed(&log(&[&request, &answer]));
    let (before, after): (Vec<_>, Vec<_>) = arrivals.into_iter().partition(|arrival| {
        arrival
            .output
            .at()
            .is_some_and(|at| at < Timestamp::from_nanos(4_000_000_000))
    });
    let mut eye = Eye::new(header, true, super::ROOMY);
    eye.tell(Message::Arrived(before));
    eye.tell(Message::Tick(Timestamp::from_nanos(3_500_000_000)));
    let seen = eye.see(80, 24);
    assert!(
        seen.contains("◌ running") && seen.contains("2.50 s"),
        "{seen}"
    );
    eye.tell(Message::Arrived(after))
        .tell(Message::Tick(Timestamp::from_nanos(9_000_000_000)));
    eye.tell(Message::Tick(Timestamp::from_nanos(11_000_000_000)));
    eye.model.stale = false;
    eye.tell(Message::Tick(Timestamp::from_nanos(11_100_000_000)))
        .tell(Message::Idle);
    assert!(!eye.model.stale, "nothing has changed");
}

#[test]
fn json_is_folded_and_searched() {
    let mut eye = Eye::on(RETRY);
    eye.press("<enter>/arguments<enter>");
    let line = |eye: &Eye| {
        let (_, reading) = eye.model.pages.last().expect("a page");
        reading.lines[reading.cursor].text()
    };
    assert!(line(&eye).contains("\"arguments\""), "{}", line(&eye));
    let open = eye.model.pages[0].1.lines.len();
    eye.press("/\"_meta\"<enter> ");
    assert!(line(&eye).contains("{…}"), "{}", line(&eye));
    assert!(eye.model.pages[0].1.lines.len() < open);
    eye.press(" /no such thing<enter>");
    assert_eq!(
        eye.model.note.as_deref(),
        Some("no \"no such thing\" in what is shown here")
    );
}

#[test]
fn a_search_goes_beyond_the_beginning_of_a_message() {
    let items: Vec<String> = (0..30_000).map(|item| item.to_string()).collect();
    let json = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"arguments":[{}]}}}}"#,
        items.join(",")
    );
    let mut eye = Eye::on_log(&log(&[&message(1.0, "client", &json)]), super::ROOMY);
    eye.press("<enter>/4321<enter>");
    let (_, reading) = eye.model.pages.last().expect("a page");
    assert_eq!(reading.lines[reading.cursor].text().trim(), "4321,");
    eye.press("/29876<enter>");
    let note = eye.model.note.clone().expect("a note");
    assert!(note.contains("beyond the"), "{note}");
    eye.press("/nowhere<enter>");
    let note = eye.model.note.clone().expect("a note");
    assert!(note.starts_with("no \"nowhere\""), "{note}");
}

#[test]
fn a_related_call_is_opened_from_the_page() {
    let mut eye = Eye::on(RETRY);
    eye.press("<enter>/#3<enter><enter>");
    assert_eq!(
        eye.model.pages.last().map(|(subject, _)| *subject),
        Some(Subject::Call(3))
    );
}

#[test]
fn a_message_is_copied_and_two_are_compared() {
    let mut eye = Eye::on(RETRY);
    eye.press("y");
    assert!(
        matches!(&eye.effects[..], [Effect::Copy(text)] if text.starts_with("{\"jsonrpc\"") && text.contains("\"id\":2"))
    );
    eye.press("c");
    assert_eq!(
        eye.model.note.as_deref(),
        Some("mark a message with m first")
    );
    let seen = eye.press("mjc").see(80, 24);
    assert!(
        seen.contains("-   \"id\": 2") && seen.contains("+   \"id\": 3"),
        "{seen}"
    );
}

#[test]
fn what_is_no_message_is_not_compared() {
    let mut eye = Eye::on(RETRY);
    eye.press("4gm");
    assert_eq!(eye.model.note.as_deref(), Some("there is no message here"));
    eye.press("jmkc");
    assert_eq!(eye.model.note.as_deref(), Some("there is no message here"));
    assert!(eye.model.pages.is_empty());
}

#[test]
fn what_is_filtered_is_saved_and_judged_alike() {
    let mut eye = Eye::on(RETRY);
    eye.press("/id:2<enter>w<C-u>out.jsonl<enter>");
    let Some(Effect::Save(path, saved)) = eye.effects.pop() else {
        panic!("{:?}", eye.effects)
    };
    assert_eq!(path.to_str(), Some("out.jsonl"));
    assert!(saved.complete);
    let mut pipeline = Pipeline::new(session::Settings::default(), verdict::Settings::default());
    for event in saved.events {
        match event {
            SavedEvent::Here(observed) => pipeline.handle_observed(*observed),
            SavedEvent::InLog(..) => panic!("it is in memory"),
        }
    }
    pipeline.finish(saved.end);
    let outcomes =
        std::iter::from_fn(|| pipeline.poll_output()).filter_map(|output| match output {
            Output::Derived(verdict::Output::Call(call)) => {
                Some((call.id.to_string(), call.outcome))
            }
            _ => None,
        });
    let mut outcomes: Vec<_> = outcomes.collect();
    outcomes.sort();
    // The retry is what the verdict rests on, and would be another call without its own retry.
    let expected = [
        ("0", Outcome::Answered),
        ("2", Outcome::Abandoned),
        ("3", Outcome::Abandoned),
        ("4", Outcome::TornDown),
    ];
    assert_eq!(outcomes, expected.map(|(id, outcome)| (id.into(), outcome)));
}

#[test]
fn the_mouse_points_opens_and_turns() {
    let mut eye = Eye::on(RETRY);
    let mouse = |kind, column, row| {
        Message::Mouse(MouseEvent {
            kind,
            column,
            row,
            modifiers: KeyModifiers::NONE,
        })
    };
    let click = MouseEventKind::Down(MouseButton::Left);
    eye.tell(mouse(click, 10, 4));
    assert_eq!(current(&eye).as_deref(), Some("0"));
    eye.tell(mouse(MouseEventKind::ScrollDown, 10, 4));
    assert_eq!(current(&eye).as_deref(), Some("3"));
    eye.tell(mouse(click, 10, 7)).tell(mouse(click, 10, 7));
    assert_eq!(
        eye.model.pages.last().map(|(subject, _)| *subject),
        Some(Subject::Call(3))
    );
    eye.tell(mouse(click, 3, 1));
    assert_eq!(
        (eye.model.screen, eye.model.pages.len()),
        (Screen::Connections, 0)
    );
}

#[test]
fn the_timeline_is_zoomed_around_what_is_looked_at() {
    let mut eye = Eye::on(RETRY);
    eye.press("5jj++");
    let (start, end) = eye.model.window.expect("a part");
    let sent = eye.model.current_call().expect("a call").1.sent;
    assert!(start <= sent && sent < end);
    assert!(end.since(start) < std::time::Duration::from_millis(2_400));
    let before = eye.model.window;
    eye.press("l");
    assert!(eye.model.window > before);
    eye.press("0");
    assert_eq!(eye.model.window, None);
}
