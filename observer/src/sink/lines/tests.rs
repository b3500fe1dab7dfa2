//! The lines as a user reads them.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;

use super::palette::Palette;
use super::view::View;
use super::{Color, Detail, Lines};
use crate::capture::{Fate, GapReason, InterruptKind, Pid, Timestamp};
use crate::jsonrpc::{Frame, Id};
use crate::pipeline::Output;
use crate::session::{
    ConnId, ConnectionChange, Event, Noise, NoiseKind, Observed, Party, Side, Transport,
};
use crate::sink::Outlet;
use crate::verdict::{
    self, CallRecord, Confidence, Culprit, Evidence, Finding, Outcome, Severity, Summary,
};

/// What all of it looks like where the live view showed it before.
fn passed_over(outputs: &[Output]) -> String {
    let mut view = View::new(Detail::Normal, Palette::PLAIN);
    outputs.iter().for_each(|output| view.pass_over(output));
    let mut out = Vec::new();
    view.conclude(&mut out);
    String::from_utf8(out).expect("UTF-8")
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_nanos(millis * 1_000_000)
}

fn event(millis: u64, event: Event) -> Output {
    Output::Observed(Observed {
        at: at(millis),
        event,
    })
}

fn seen(pid: u32, argv: &[&str]) -> Output {
    let argv = argv.iter().map(ToString::to_string).collect();
    event(
        0,
        Event::ProcessSeen {
            pid: Pid(pid),
            ppid: None,
            exe: None,
            argv,
            start: None,
        },
    )
}

fn open(millis: u64) -> Output {
    let party = |pid| {
        Some(Party {
            pid: Pid(pid),
            exe: None,
        })
    };
    let change = ConnectionChange::Open {
        client: party(10),
        server: party(11),
        transport: Transport::Pipe,
        streams: [Some("pipe:[5]".into()), None],
    };
    event(
        millis,
        Event::Connection {
            conn: ConnId(1),
            change,
        },
    )
}

fn message(millis: u64, from: Side, text: &str) -> Output {
    let frame = Frame::parse(Bytes::copy_from_slice(text.as_bytes())).expect("a frame");
    let bytes = text.len() as u64 + 1;
    event(
        millis,
        Event::Message {
            conn: ConnId(1),
            from,
            offset: None,
            bytes,
            frame,
        },
    )
}

fn call(millis: u64, outcome: Outcome, method: &str) -> Output {
    Output::Derived(verdict::Output::Call(CallRecord {
        at: at(millis),
        conn: ConnId(1),
        from: Side::Client,
        id: Id::Number("2".into()),
        method: method.into(),
        name: Some("slow".into()),
        sent: at(200),
        ended: Some(at(millis)),
        outcome,
        wasted: Some(Duration::from_secs(3)),
        request_bytes: 80,
        response_bytes: Some(1_234),
        progress: 0,
        cancel: None,
    }))
}

fn finding(number: u32, supersedes: Option<u32>) -> Output {
    Output::Derived(verdict::Output::Finding(Finding {
        at: at(9_000),
        number,
        rule: "abandoned-call",
        severity: if supersedes.is_some() {
            Severity::Error
        } else {
            Severity::Warning
        },
        confidence: Confidence::Probable,
        side: Culprit::Host,
        conn: Some(ConnId(1)),
        id: Some(Id::Number("2".into())),
        method: None,
        name: None,
        message: "The host left \x1b[2Jslow.".into(),
        evidence: vec![Evidence {
            kind: "key-esc",
            at: at(2_000),
            detail: "Esc in codex".into(),
        }],
        spec: Some("MCP 2025-06-18".into()),
        supersedes,
    }))
}

fn summary() -> Output {
    Output::Derived(verdict::Output::Summary(Summary {
        at: at(15_680),
        calls: BTreeMap::from([(Outcome::Answered, 2), (Outcome::Abandoned, 1)]),
        findings: BTreeMap::from([
            (("abandoned-call", Severity::Error), 1),
            (("stdout-noise", Severity::Warning), 2),
        ]),
        messages: 45,
        bytes: 12_345,
        gaps: 1,
        complete: false,
        loss: None,
    }))
}

fn lines(detail: Detail, outputs: &[Output]) -> String {
    let mut view = View::new(detail, Palette::PLAIN);
    let mut out = Vec::new();
    outputs
        .iter()
        .for_each(|output| view.render(output, &mut out));
    String::from_utf8(out).expect("text")
}

fn a_run() -> Vec<Output> {
    vec![
        seen(10, &["codex", "exec"]),
        seen(11, &["/usr/bin/python3", "lab/slow_server.py"]),
        open(1),
        open(1),
        message(
            10,
            Side::Client,
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"clientInfo":{"name":"codex","version":"0.163.0"}}}"#,
        ),
        message(
            11,
            Side::Server,
            r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","serverInfo":{"name":"lab"}}}"#,
        ),
        call(12, Outcome::Answered, "initialize"),
        message(
            200,
            Side::Client,
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow"}}"#,
        ),
        event(
            300,
            Event::Noise(Noise {
                conn: ConnId(1),
                from: Side::Server,
                offset: None,
                bytes: 9,
                kind: NoiseKind::Text,
                text: Bytes::from_static(b"hi \x1b[31m\n"),
            }),
        ),
        event(
            400,
            Event::Gap {
                conn: ConnId(1),
                from: Side::Server,
                offset: 77,
                bytes: Some(4_096),
                reason: GapReason::RingFull,
            },
        ),
        event(
            2_000,
            Event::Interrupt {
                pid: Pid(10),
                kind: InterruptKind::KeyEsc,
                sender: None,
            },
        ),
        finding(1, None),
        finding(2, Some(1)),
        call(12_000, Outcome::Abandoned, "tools/call"),
        event(
            15_000,
            Event::ProcessExit {
                pid: Pid(11),
                fate: Some(Fate::Signal(15)),
            },
        ),
        event(
            15_001,
            Event::ProcessExit {
                pid: Pid(99),
                fate: None,
            },
        ),
        summary(),
    ]
}

#[test]
fn a_run_reads_well() {
    assert_eq!(
        lines(Detail::Normal, &a_run()),
        r"
    0.001    1  open          codex[10] -> python3 slow_server.py[11] (pipe)
    0.011    1  ready         MCP 2025-06-18: codex 0.163.0 -> lab
    0.200    1  request       -> tools/call slow #2, 72 B
    0.300    1  noise         9 B of text from the server: hi \u{1b}[31m
    0.400    1  gap           4.1 kB from the server unseen at byte 77: ring-full
    2.000       interrupt     codex[10] got the key Esc
    9.000    1  warning       abandoned-call #2 (probable)
                              The host left \u{1b}[2Jslow.
    9.000    1  error         abandoned-call #2 (probable), in place of finding 1
                              The host left \u{1b}[2Jslow.
   12.000    1  abandoned     tools/call slow #2 after 11.8 s, 1.2 kB; the server worked on for 3.00 s
   15.000       exit          python3 slow_server.py[11] by SIGTERM

Summary of 15.7 s
  calls     3: 2 answered, 1 abandoned
  traffic   45 messages, 12.3 kB
  evidence  incomplete, 1 gap
  findings  1 error, 2 warnings
           2  error    abandoned-call #2 (probable)
                       The host left \u{1b}[2Jslow.
"
        .strip_prefix('\n')
        .expect("it begins with a newline")
    );
}

#[test]
fn a_connection_keeps_its_name_when_its_processes_are_gone() {
    let mut run = a_run();
    let close = Event::Connection {
        conn: ConnId(1),
        change: ConnectionChange::Close,
    };
    run.insert(run.len() - 1, event(16_000, close));
    let text = lines(Detail::Normal, &run);
    let row = "   16.000    1  close         codex[10] -> python3 slow_server.py[11]\n";
    assert!(text.contains(row), "{text}");
}

#[test]
fn a_server_that_prints_does_not_flood_the_terminal() {
    let noise = |kind, text: &'static [u8]| {
        Event::Noise(Noise {
            conn: ConnId(1),
            from: Side::Server,
            offset: None,
            bytes: 3,
            kind,
            text: Bytes::from_static(text),
        })
    };
    let mut flood = vec![event(1, noise(NoiseKind::InvalidUtf8, b"\xff\x1b\n"))];
    flood.extend((0..1_000).map(|_| event(2, noise(NoiseKind::Text, b"hi\n"))));
    let normal = lines(Detail::Normal, &flood);
    assert_eq!(normal.lines().count(), 21, "{normal}");
    assert!(
        normal.contains(r"invalid-utf8 from the server: \xff\u{1b}\n"),
        "{normal}"
    );
    assert!(normal.ends_with("not shown; -v shows it\n"), "{normal}");
    assert_eq!(lines(Detail::Verbose, &flood).lines().count(), 1_001);
}

#[test]
fn quiet_is_findings_and_the_summary() {
    let quiet = lines(Detail::Quiet, &a_run());
    let before_summary: Vec<_> = quiet.split("\n\n").next().expect("lines").lines().collect();
    assert_eq!(before_summary.len(), 4, "{quiet}");
    assert!(
        before_summary
            .iter()
            .step_by(2)
            .all(|line| line.contains("abandoned-call")),
        "{quiet}"
    );
    assert!(quiet.contains("\nSummary of 15.7 s\n"), "{quiet}");
}

#[test]
fn what_was_shown_elsewhere_ends_as_the_lines_do() {
    let end = |text: &str| text.find("\nSummary").map(|at| text[at..].to_owned());
    let passed = passed_over(&a_run());
    assert_eq!(
        Some(&passed),
        end(&lines(Detail::Normal, &a_run())).as_ref()
    );
    // Without its end there is nothing to conclude.
    assert_eq!(passed_over(&[finding(1, None)]), "");
}

#[test]
fn verbose_shows_messages_and_evidence() {
    let verbose = lines(Detail::Verbose, &a_run());
    for line in [
        "    0.011    1  response      <- #0, 95 B  {\"jsonrpc\":\"2.0\",\"id\":0,",
        "    0.012    1  answered      initialize slow #2",
        "    2.000       key-esc       Esc in codex\n",
        "                spec          MCP 2025-06-18\n",
        "   15.001       exit          pid 99\n",
        "(pipe) pipe:[5]\n",
    ] {
        assert!(verbose.contains(line), "{line:?} is not in\n{verbose}");
    }
}

#[test]
fn nothing_that_a_terminal_obeys_gets_through() {
    let evil = "\x1b]0;x\x07\u{202e}\u{9b}2J";
    let json = serde_json::Value::from(evil);
    let hostile = vec![
        seen(10, &[evil, evil]),
        seen(11, &["node", evil]),
        open(1),
        message(
            1,
            Side::Client,
            &format!(
                r#"{{"jsonrpc":"2.0","id":{json},"method":"initialize","params":{{"clientInfo":{{"name":{json}}}}}}}"#
            ),
        ),
        message(
            2,
            Side::Server,
            &format!(
                r#"{{"jsonrpc":"2.0","id":{json},"result":{{"protocolVersion":{json},"serverInfo":{{"name":{json}}}}}}}"#
            ),
        ),
        message(
            3,
            Side::Client,
            &format!(r#"{{"jsonrpc":"2.0","id":1,"method":{json},"params":{{"name":{json}}}}}"#),
        ),
        call(4, Outcome::Failed, evil),
    ];
    let text = lines(Detail::Verbose, &hostile);
    let obeyed = |char: char| char.is_control() && char != '\n' || char == '\u{202e}';
    assert!(!text.contains(obeyed), "{text:?}");
    assert_eq!(text.lines().count(), 8, "{text}");
}

#[test]
fn colour_adds_only_escapes() {
    let paint = |palette| {
        let mut view = View::new(Detail::Verbose, palette);
        let mut out = Vec::new();
        a_run()
            .iter()
            .for_each(|output| view.render(output, &mut out));
        String::from_utf8(out).expect("text")
    };
    let coloured = paint(Palette::ANSI);
    assert!(coloured.contains("\x1b[1m\x1b[31merror"), "{coloured:?}");
    let mut plain = String::new();
    for part in coloured.split('\x1b') {
        plain.push_str(
            part.split_once('m')
                .filter(|_| part.starts_with('['))
                .map_or(part, |p| p.1),
        );
    }
    assert_eq!(plain, paint(Palette::PLAIN));
}

#[test]
fn lines_reach_their_outlet_when_flushed() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let outlet = Outlet::create(file.path()).expect("an outlet");
    let mut lines = Lines::new(outlet, Detail::Normal, Color::Plain);
    lines.handle_output(&summary()).expect("taken");
    lines.flush().expect("written");
    let text = std::fs::read_to_string(file.path()).expect("text");
    assert!(text.contains("Summary"), "{text}");
}
