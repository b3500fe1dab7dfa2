//! A terse language for tests: a conversation, a line an event, and what the judge says of it.
//!
//! `SECONDS [@CONN] VERB ARGUMENTS`; ids are JSON. Every connection is open from the first line
//! that names it: host process 10 (under a shell, process 1), server process 20 for connection 1,
//! 21 for connection 2, and so on, all running one command.
//!
//! | verb | event |
//! |---|---|
//! | `hello REVISION [NAME VERSION]` | `initialize` and its answer, id 0 |
//! | `call ID TOOL [JSON]` | the client's `tools/call`, its id the progress token |
//! | `c ID METHOD [JSON]`, `s ID METHOD [JSON]` | any request of client or server |
//! | `c- METHOD [JSON]`, `s- METHOD [JSON]` | a notification |
//! | `c= ID [JSON]`, `s= ID [JSON]`, `s! ID CODE` | a result of client or server; an error |
//! | `cancel ID [REASON]`, `scancel ID` | a cancellation by client or server |
//! | `progress TOKEN` | progress |
//! | `raw c\|s JSON` | a line as it stands |
//! | `noise c\|s KIND TEXT`, `gap c\|s [REASON]`, `eof c\|s`, `refused`, `close` | the same |
//! | `read c\|s OFFSET` | that side's bytes were read up to there |
//! | `KIND PID [SENDER]` | an interrupt: `key-esc`, `sigint`, ... |
//! | `fork PID PARENT EXE`, `exit PID [CODE]`, `killed PID SIGNAL` | a process |
//! | `net PID BYTES [PORT]` | that process sent so much to the model, or to another peer |
//! | `end` | the log ends |

use std::time::Duration;

use bytes::Bytes;

use super::{Finding, Judge, Output, Settings, Summary};
use crate::capture::{Fate, GapReason, InterruptKind, Pid, Timestamp};
use crate::jsonrpc::Frame;
use crate::session::{
    ConnId, ConnectionChange, Event, Noise, NoiseKind, Observed, Party, Side, Transport,
};

/// The outcomes of all calls but the handshake, then the findings that stand:
/// `1 abandoned | abandoned-call 1 probable warning`.
pub(super) fn judged(script: &str) -> String {
    judged_with(script, Settings::default())
}

pub(super) fn judged_with(script: &str, settings: Settings) -> String {
    let heard = hear(script, settings);
    let calls = heard.calls.join(", ");
    let findings: Vec<String> = heard.standing().map(shown).collect();
    if findings.is_empty() {
        calls
    } else {
        format!("{calls} | {}", findings.join(", "))
    }
}

/// All that the judge said.
pub(super) struct Heard {
    pub(super) calls: Vec<String>,
    pub(super) findings: Vec<Finding>,
    pub(super) summary: Summary,
}

impl Heard {
    pub(super) fn standing(&self) -> impl Iterator<Item = &Finding> {
        let stands = |finding: &&Finding| {
            self.findings
                .iter()
                .all(|other| other.supersedes != Some(finding.number))
        };
        self.findings.iter().filter(stands)
    }
}

fn shown(finding: &Finding) -> String {
    let id = finding
        .id
        .as_ref()
        .map(|id| format!(" {id}"))
        .unwrap_or_default();
    let (confidence, severity) = (finding.confidence, finding.severity);
    format!("{}{id} {confidence:?} {severity:?}", finding.rule).to_lowercase()
}

pub(super) fn hear(script: &str, settings: Settings) -> Heard {
    hear_events(events(script), settings)
}

pub(super) fn hear_events(events: impl IntoIterator<Item = Observed>, settings: Settings) -> Heard {
    let mut judge = Judge::new(settings);
    let mut heard = Heard {
        calls: Vec::new(),
        findings: Vec::new(),
        summary: Summary::default(),
    };
    let mut at = Timestamp::ZERO;
    for observed in events {
        at = observed.at;
        judge.handle_event(&observed);
        drain(&mut judge, &mut heard);
    }
    judge.finish(at);
    drain(&mut judge, &mut heard);
    heard
}

fn drain(judge: &mut Judge, heard: &mut Heard) {
    while let Some(output) = judge.poll_output() {
        match output {
            Output::Call(call) => {
                if call.method != "initialize" {
                    let outcome = format!("{:?}", call.outcome).to_lowercase();
                    let outcome = outcome.replace("torndown", "torn-down");
                    heard.calls.push(format!("{} {outcome}", call.id));
                }
            }
            Output::Finding(finding) => heard.findings.push(finding),
            Output::Summary(summary) => heard.summary = summary,
        }
    }
}

pub(super) fn events(script: &str) -> Vec<Observed> {
    let mut world = World::default();
    for line in script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        world.line(line);
    }
    world.events
}

#[derive(Default)]
struct World {
    at: Timestamp,
    conn: u32,
    opened: Vec<u32>,
    offsets: std::collections::HashMap<(u32, Side), u64>,
    events: Vec<Observed>,
}

impl World {
    fn line(&mut self, line: &str) {
        let (time, rest) = line.split_once(' ').expect("a time and a verb");
        let seconds: f64 = time.parse().expect("a time in seconds");
        self.at = Timestamp::ZERO + Duration::from_secs_f64(seconds);
        let (conn, rest) = match rest.strip_prefix('@') {
            Some(rest) => {
                let (conn, rest) = rest.split_once(' ').expect("a verb");
                (conn.parse().expect("a connection"), rest)
            }
            None => (1, rest),
        };
        self.conn = conn;
        self.open();
        let (verb, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        self.verb(verb, rest);
    }

    fn verb(&mut self, verb: &str, rest: &str) {
        let (first, more) = rest.split_once(' ').unwrap_or((rest, ""));
        let (second, third) = more.split_once(' ').unwrap_or((more, ""));
        let pid = || Pid(first.parse().expect("a pid"));
        match verb {
            "hello" => self.hello(first, second, third),
            "call" => self.message(Side::Client, &call(first, second, third)),
            "c" => self.message(Side::Client, &request(first, second, third)),
            "s" => self.message(Side::Server, &request(first, second, third)),
            "c-" => self.message(Side::Client, &notification(first, more)),
            "s-" => self.message(Side::Server, &notification(first, more)),
            "c=" => self.message(Side::Client, &result(first, more)),
            "s=" => self.message(Side::Server, &result(first, more)),
            "s!" => self.message(Side::Server, &error(first, second)),
            "cancel" => self.message(Side::Client, &cancel(first, more)),
            "scancel" => self.message(Side::Server, &cancel(first, more)),
            "progress" => {
                let params = format!(r#"{{"progressToken":{first},"progress":1}}"#);
                self.message(
                    Side::Server,
                    &notification("notifications/progress", &params),
                );
            }
            "raw" => self.message(side(first), more),
            "noise" => self.noise(side(first), second, third),
            "gap" => self.gap(side(first), more),
            "eof" => self.push(Event::Eof {
                conn: ConnId(self.conn),
                from: side(first),
            }),
            "read" => {
                let (conn, from) = (ConnId(self.conn), side(first));
                let offset = second.parse().expect("an offset");
                self.push(Event::Delivered { conn, from, offset });
            }
            "refused" => {
                self.push(Event::Refused {
                    conn: ConnId(self.conn),
                    from: Side::Client,
                });
            }
            "close" => {
                let change = ConnectionChange::Close;
                self.push(Event::Connection {
                    conn: ConnId(self.conn),
                    change,
                });
            }
            "fork" => self.fork(pid(), Pid(second.parse().expect("a parent")), third),
            "exit" => {
                let code = second.parse().unwrap_or(0);
                self.push(Event::ProcessExit {
                    pid: pid(),
                    fate: Some(Fate::Code(code)),
                });
            }
            "killed" => {
                let signal = second.parse().expect("a signal");
                self.push(Event::ProcessExit {
                    pid: pid(),
                    fate: Some(Fate::Signal(signal)),
                });
            }
            "net" => {
                let port = third.parse().unwrap_or(443);
                let peer = Some(([192, 0, 2, 1], port).into());
                let bytes = second.parse().expect("bytes");
                self.push(Event::NetSend {
                    pid: pid(),
                    bytes,
                    peer,
                });
            }
            "end" => self.push(Event::Suspended { nanos: 0 }),
            other => {
                let sender = second.parse().ok().map(Pid);
                self.push(Event::Interrupt {
                    pid: pid(),
                    kind: interrupt(other),
                    sender,
                });
            }
        }
    }

    fn open(&mut self) {
        if self.opened.contains(&self.conn) {
            return;
        }
        if self.opened.is_empty() {
            self.fork(Pid(1), Pid(0), "/usr/bin/bash");
            self.fork(Pid(10), Pid(1), "/opt/host");
        }
        self.opened.push(self.conn);
        let server = Pid(19 + self.conn);
        self.fork(server, Pid(10), "/opt/server");
        let party = |pid| Some(Party { pid, exe: None });
        let change = ConnectionChange::Open {
            client: party(Pid(10)),
            server: party(server),
            transport: Transport::Pipe,
            streams: [None, None],
        };
        self.push(Event::Connection {
            conn: ConnId(self.conn),
            change,
        });
    }

    fn fork(&mut self, pid: Pid, ppid: Pid, exe: &str) {
        let exe = Some(exe.to_owned());
        let argv = exe.iter().cloned().collect();
        self.push(Event::ProcessSeen {
            pid,
            ppid: Some(ppid),
            exe,
            argv,
            start: None,
        });
    }

    fn hello(&mut self, revision: &str, name: &str, version: &str) {
        let name = if name.is_empty() { "some-host" } else { name };
        self.message(
            Side::Client,
            &request(
                "0",
                "initialize",
                &format!(
                    r#"{{"protocolVersion":"{revision}","clientInfo":{{"name":"{name}","version":"{version}"}}}}"#
                ),
            ),
        );
        let server = r#""serverInfo":{"name":"lab","version":"1"}"#;
        let answer = format!(r#"{{"protocolVersion":"{revision}",{server}}}"#);
        self.message(Side::Server, &result("0", &answer));
    }

    fn message(&mut self, from: Side, json: &str) {
        let frame = Frame::parse(Bytes::copy_from_slice(json.as_bytes())).expect("a message");
        let bytes = json.len() as u64 + 1;
        let offset = self.offsets.entry((self.conn, from)).or_default();
        let conn = ConnId(self.conn);
        let event = Event::Message {
            conn,
            from,
            offset: Some(*offset),
            bytes,
            frame,
        };
        *offset += bytes;
        self.push(event);
    }

    fn noise(&mut self, from: Side, kind: &str, text: &str) {
        let kind = match kind {
            "text" => NoiseKind::Text,
            "blank" => NoiseKind::Blank,
            "invalid-json" => NoiseKind::InvalidJson,
            "invalid-utf8" => NoiseKind::InvalidUtf8,
            "content-length" => NoiseKind::ContentLength,
            "oversized" => NoiseKind::Oversized,
            "unterminated" => NoiseKind::Unterminated,
            other => panic!("unknown noise {other}"),
        };
        let text = Bytes::copy_from_slice(text.as_bytes());
        let bytes = text.len() as u64 + 1;
        let conn = ConnId(self.conn);
        self.push(Event::Noise(Noise {
            conn,
            from,
            offset: None,
            bytes,
            kind,
            text,
        }));
    }

    fn gap(&mut self, from: Side, reason: &str) {
        let reason = match reason {
            "mid-stream" => GapReason::MidStream,
            "" | "ring-full" => GapReason::RingFull,
            other => panic!("unknown reason {other}"),
        };
        let conn = ConnId(self.conn);
        self.push(Event::Gap {
            conn,
            from,
            offset: 0,
            bytes: Some(1),
            reason,
        });
    }

    fn push(&mut self, event: Event) {
        self.events.push(Observed { at: self.at, event });
    }
}

fn side(word: &str) -> Side {
    match word {
        "c" => Side::Client,
        "s" => Side::Server,
        other => panic!("unknown side {other}"),
    }
}

fn interrupt(word: &str) -> InterruptKind {
    match word {
        "sigint" => InterruptKind::Sigint,
        "sigterm" => InterruptKind::Sigterm,
        "sigkill" => InterruptKind::Sigkill,
        "sighup" => InterruptKind::Sighup,
        "key-esc" => InterruptKind::KeyEsc,
        "key-ctrl-c" => InterruptKind::KeyCtrlC,
        other => panic!("unknown verb {other}"),
    }
}

fn call(id: &str, tool: &str, arguments: &str) -> String {
    let arguments = if arguments.is_empty() {
        "{}"
    } else {
        arguments
    };
    let meta = format!(r#"{{"progressToken":{id}}}"#);
    let params = format!(r#"{{"name":"{tool}","arguments":{arguments},"_meta":{meta}}}"#);
    request(id, "tools/call", &params)
}

fn request(id: &str, method: &str, params: &str) -> String {
    let params = if params.is_empty() { "{}" } else { params };
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

fn notification(method: &str, params: &str) -> String {
    let params = if params.is_empty() { "{}" } else { params };
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
}

fn result(id: &str, result: &str) -> String {
    let result = if result.is_empty() {
        r#"{"content":[]}"#
    } else {
        result
    };
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

fn error(id: &str, code: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"no"}}}}"#)
}

fn cancel(id: &str, reason: &str) -> String {
    let reason = if reason.is_empty() {
        String::new()
    } else {
        format!(r#","reason":"{reason}""#)
    };
    notification(
        "notifications/cancelled",
        &format!(r#"{{"requestId":{id}{reason}}}"#),
    )
}
