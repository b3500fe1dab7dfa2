//! The screens as a user sees them, from recorded traffic of real hosts.

mod keys;
mod safety;
mod screens;

use std::path::Path;

use bytes::Bytes;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::message::{Arrival, Effect, Message};
use super::model::{LogPlace, Model, Source};
use super::update::update;
use super::view::{Theme, view};
use crate::pipeline::{Output, Pipeline};
use crate::record::{Backend, Header, Reader, Record, SCHEMA};
use crate::{session, verdict};

const THEME: Theme = Theme {
    colors: true,
    unicode: true,
    light: false,
};

/// So much memory that nothing leaves it.
const ROOMY: usize = 1 << 30;

/// A view that a test looks at.
struct Eye {
    model: Model,
    /// What was asked for outside.
    effects: Vec<Effect>,
}

impl Eye {
    fn new(header: Header, live: bool, memory: usize) -> Self {
        let source = Source {
            header,
            title: "trace.jsonl".into(),
            live,
        };
        Self {
            model: Model::new(source, memory),
            effects: Vec::new(),
        }
    }

    /// What `replay --tui` shows of a trace.
    fn on(trace: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/traces")
            .join(trace);
        let log = std::fs::read(path).expect("a trace");
        Self::on_log(&log, ROOMY)
    }

    fn on_log(log: &[u8], memory: usize) -> Self {
        let (header, arrivals) = replayed(log);
        let mut eye = Self::new(header, false, memory);
        eye.tell(Message::Arrived(arrivals));
        eye.tell(Message::Ended(None));
        eye
    }

    fn tell(&mut self, message: Message) -> &mut Self {
        self.effects.extend(update(&mut self.model, message));
        self
    }

    /// Presses keys: characters, and names in angle brackets.
    fn press(&mut self, keys: &str) -> &mut Self {
        let mut rest = keys;
        while let Some(first) = rest.chars().next() {
            let named = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'));
            let (key, ctrl) = match named {
                Some((name, after)) => {
                    rest = after;
                    match name {
                        "enter" => (KeyCode::Enter, false),
                        "esc" => (KeyCode::Esc, false),
                        "tab" => (KeyCode::Tab, false),
                        "back" => (KeyCode::Backspace, false),
                        "down" => (KeyCode::Down, false),
                        "C-c" => (KeyCode::Char('c'), true),
                        "C-u" => (KeyCode::Char('u'), true),
                        "C-z" => (KeyCode::Char('z'), true),
                        _ => panic!("no key {name}"),
                    }
                }
                None => {
                    rest = &rest[first.len_utf8()..];
                    (KeyCode::Char(first), false)
                }
            };
            let modifiers = if ctrl {
                KeyModifiers::CONTROL
            } else {
                KeyModifiers::NONE
            };
            self.tell(Message::Key(KeyEvent::new(key, modifiers)));
        }
        self
    }

    fn buffer(&mut self, columns: u16, lines: u16) -> Buffer {
        self.buffer_in(&THEME, columns, lines)
    }

    fn buffer_in(&mut self, theme: &Theme, columns: u16, lines: u16) -> Buffer {
        self.tell(Message::Resize(columns, lines));
        self.tell(Message::Idle);
        let mut terminal = Terminal::new(TestBackend::new(columns, lines)).expect("a terminal");
        terminal
            .draw(|canvas| view(&self.model, theme, canvas))
            .expect("drawn");
        terminal.backend().buffer().clone()
    }

    /// The screen as text; the row that is looked at has a bar at its right.
    fn see(&mut self, columns: u16, lines: u16) -> String {
        let buffer = self.buffer(columns, lines);
        let mut text = String::new();
        for y in 0..lines {
            let mut line = String::new();
            let mut x = 0;
            while x < columns {
                let symbol = buffer[(x, y)].symbol();
                line.push_str(symbol);
                x += u16::try_from(super::text::width(symbol).max(1)).expect("narrow");
            }
            let chosen = buffer[(columns - 1, y)]
                .modifier
                .contains(ratatui::style::Modifier::REVERSED);
            text += line.trim_end();
            text += if chosen && y > 1 { "▐\n" } else { "\n" };
        }
        text
    }
}

/// What the pipeline makes of a log.
fn replayed(log: &[u8]) -> (Header, Vec<Arrival>) {
    let mut reader = Reader::new();
    let (mut header, mut offset, mut end) = (None, 0, crate::capture::Timestamp::ZERO);
    let mut pipeline = Pipeline::new(session::Settings::default(), verdict::Settings::default());
    let mut arrivals = Vec::new();
    for line in log.split_inclusive(|byte| *byte == b'\n') {
        let place = LogPlace {
            part: 1,
            offset,
            bytes: line.len() as u64,
        };
        offset += place.bytes;
        match reader.handle_line(line.trim_ascii_end()).expect("a log") {
            Some(Record::Header(first)) => header = Some(*first),
            Some(record) => {
                end = end.max(record.t());
                match record.into_observed() {
                    Some(observed) => pipeline.handle_observed(observed),
                    None => pipeline.handle_timeout(end),
                }
            }
            None => {}
        }
        arrivals.extend(drain(&mut pipeline, Some(place)));
    }
    pipeline.finish(end);
    arrivals.extend(drain(&mut pipeline, None));
    (header.expect("a header"), arrivals)
}

fn drain(pipeline: &mut Pipeline, place: Option<LogPlace>) -> Vec<Arrival> {
    let outputs = std::iter::from_fn(|| pipeline.poll_output());
    let arrival = |output| {
        let place = place.filter(|_| matches!(output, Output::Observed(_)));
        Arrival { output, place }
    };
    outputs.map(arrival).collect()
}

/// What the pipeline makes of a log, without the places.
pub(super) fn outputs_of(log: &[u8]) -> impl Iterator<Item = Output> {
    let (_, arrivals) = replayed(log);
    arrivals.into_iter().map(|arrival| arrival.output)
}

pub(super) fn header() -> Header {
    Header {
        t: crate::capture::Timestamp::ZERO,
        schema: SCHEMA.into(),
        observer: String::new(),
        started: String::new(),
        backend: Backend::Ebpf,
        hooks: Vec::new(),
        platform: None,
        kernel: None,
        payload: Default::default(),
        scope: Some(crate::record::Scope::Watch),
        settings: None,
        part: None,
    }
}

/// A log of one connection: the lines' records, without times and numbers that do not matter.
pub(super) fn log(records: &[&str]) -> Vec<u8> {
    let mut log = String::from(
        r#"{"type":"header","t":0,"schema":"observer/1"}
{"type":"connection","t":0,"conn":1,"event":"open","client":{"pid":1,"exe":"/usr/bin/host"},"server":{"pid":2,"exe":"/usr/bin/server"},"transport":"pipe"}
"#,
    );
    for record in records {
        log += record;
        log.push('\n');
    }
    log.into_bytes()
}

/// A message's record.
pub(super) fn message(t: f64, from: &str, json: &str) -> String {
    let bytes = json.len() + 1;
    format!(
        r#"{{"type":"message","t":{t},"conn":1,"from":"{from}","bytes":{bytes},"json":{json}}}"#
    )
}

fn frame(json: String) -> crate::jsonrpc::Frame {
    crate::jsonrpc::Frame::parse(Bytes::from(json)).expect("a frame")
}
