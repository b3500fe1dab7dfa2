//! Chrome's Trace Event Format as JSON, which ui.perfetto.dev opens.
//!
//! Hosts and servers are processes, and calls slices in both: in the host as long as it waited, in
//! the server as long as it worked. Calls overlap, so that they are asynchronous slices; what has
//! no length is an instant. Times count from each log's own beginning.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::build::Open;
use super::model::{Call, Log, heading};
use crate::capture::{Pid, Timestamp};
use crate::pipeline::Output;
use crate::record::Word;
use crate::session::{ConnId, Event, Side};
use crate::verdict;
use crate::wording::{observed, size};

/// A name is cut to this many characters.
const NAME: usize = 80;

/// What has been written so far of a trace.
#[derive(Debug, Default)]
pub(super) struct Trace {
    /// The processes of this log, and the numbers that they have in the trace: pids come again in
    /// another log.
    processes: BTreeMap<Process, u32>,
    last_process: u32,
    last_slice: u64,
    begun: bool,
}

/// Who does something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Process {
    Pid(Pid),
    /// One of which no pid is known.
    Side(ConnId, bool),
}

#[derive(Serialize)]
struct Entry<'a> {
    name: &'a str,
    cat: &'static str,
    ph: &'static str,
    /// Microseconds.
    ts: u64,
    pid: u32,
    tid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    /// Of an instant: how far its line reaches.
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<&'static str>,
    #[serde(skip_serializing_if = "Value::is_null")]
    args: Value,
}

impl Trace {
    #[expect(clippy::unused_self, reason = "the twin of the other stream's")]
    pub(super) fn begin(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
    }

    pub(super) fn handle_output(&mut self, open: &Open, output: &Output, out: &mut Vec<u8>) {
        match output {
            Output::Derived(verdict::Output::Call(call)) => {
                self.call(open, &Call::new(call), out);
            }
            Output::Observed(event) => self.event(open, event.at, &event.event, out),
            _ => {}
        }
    }

    /// Names the processes of a log, and marks its findings.
    pub(super) fn end_log(&mut self, log: &Log, out: &mut Vec<u8>) {
        let called = |process: &Process| {
            log.connections.iter().find_map(|(conn, connection)| {
                let sides = [
                    (Side::Client, &connection.sides.host),
                    (Side::Server, &connection.sides.server),
                ];
                let found = sides.into_iter().find(|(side, known)| match process {
                    Process::Pid(pid) => known.pid == Some(pid.0),
                    Process::Side(own, is_host) => {
                        own == conn && *is_host == (*side == Side::Client)
                    }
                });
                found.map(|(side, known)| (side, known.title()))
            })
        };
        for finding in log.findings.values() {
            let Some(conn) = finding.conn else { continue };
            let side = match finding.side {
                verdict::Culprit::Server => Side::Server,
                verdict::Culprit::Host | verdict::Culprit::Observer => Side::Client,
            };
            let known = log.connections.get(&conn).map(|connection| match side {
                Side::Client => &connection.sides.host,
                Side::Server => &connection.sides.server,
            });
            let process = process_of(conn, side, known.and_then(|known| known.pid));
            let args = json!({ "message": finding.message, "finding": finding.number });
            self.instant("finding", &heading(finding), process, finding.at, args, out);
        }
        for (process, number) in std::mem::take(&mut self.processes) {
            let (side, title) = match called(&process) {
                Some((side, title)) => (side.word(), title),
                None => match process {
                    Process::Pid(pid) => ("", format!("pid {pid}")),
                    Process::Side(conn, _) => ("", format!("connection {conn}")),
                },
            };
            let kind = match side {
                "client" => "host ",
                "server" => "server ",
                _ => "",
            };
            let name = format!("{kind}{title}");
            self.name(number, "process_name", json!({ "name": name }), out);
            self.name(number, "process_labels", json!({ "labels": log.name }), out);
            self.name(
                number,
                "process_sort_index",
                json!({ "sort_index": number }),
                out,
            );
        }
    }

    pub(super) fn finish(out: &mut Vec<u8>) {
        out.extend_from_slice(b"\n]}\n");
    }

    fn call(&mut self, open: &Open, call: &Call, out: &mut Vec<u8>) {
        let title = call.title();
        let args = json!({
            "outcome": call.outcome.word(),
            "connection": call.conn,
            "id": call.id,
            "request_bytes": call.request_bytes,
            "response_bytes": call.response_bytes,
            "progress": call.progress,
            "cancel_reason": call.reason,
        });
        let asker = process(open, call.conn, call.from);
        let worker = process(open, call.conn, call.from.peer());
        self.slice(
            "call",
            &title,
            asker,
            [call.sent, call.waited],
            args.clone(),
            out,
        );
        self.slice("work", &title, worker, [call.sent, call.until], args, out);
        if let Some(at) = call.cancelled {
            let title = format!("cancel {title}");
            self.instant(
                "cancel",
                &title,
                asker,
                at,
                json!({ "reason": call.reason }),
                out,
            );
        }
    }

    fn event(&mut self, open: &Open, at: Timestamp, event: &Event, out: &mut Vec<u8>) {
        match event {
            Event::Interrupt { pid, kind, sender } => {
                let args = json!({ "pid": pid, "sender": sender });
                self.instant("interrupt", kind.word(), Process::Pid(*pid), at, args, out);
            }
            Event::Gap {
                conn,
                from,
                bytes,
                reason,
                ..
            } => {
                let args = json!({ "bytes": bytes, "reason": reason.word() });
                let name = format!("gap of {}", bytes.map_or("bytes".into(), size));
                self.instant("gap", &name, process(open, *conn, *from), at, args, out);
            }
            Event::ProcessExit { pid, .. } if self.processes.contains_key(&Process::Pid(*pid)) => {
                self.instant("exit", "exit", Process::Pid(*pid), at, Value::Null, out);
            }
            _ => {}
        }
    }

    fn slice(
        &mut self,
        cat: &'static str,
        name: &str,
        process: Process,
        [from, until]: [Timestamp; 2],
        args: Value,
        out: &mut Vec<u8>,
    ) {
        self.last_slice += 1;
        let id = format!("{:#x}", self.last_slice);
        let pid = self.number(process);
        let mut entry = Entry {
            name,
            cat,
            ph: "b",
            ts: micros(from),
            pid,
            tid: pid,
            id: Some(&id),
            s: None,
            args,
        };
        self.write(&entry, out);
        (entry.ph, entry.ts, entry.args) = ("e", micros(until), Value::Null);
        self.write(&entry, out);
    }

    fn instant(
        &mut self,
        cat: &'static str,
        name: &str,
        process: Process,
        at: Timestamp,
        args: Value,
        out: &mut Vec<u8>,
    ) {
        let pid = self.number(process);
        let entry = Entry {
            name: &observed(name, NAME * 3),
            cat,
            ph: "i",
            ts: micros(at),
            pid,
            tid: pid,
            id: None,
            s: Some("p"),
            args,
        };
        self.write(&entry, out);
    }

    fn name(&mut self, pid: u32, what: &str, args: Value, out: &mut Vec<u8>) {
        let entry = Entry {
            name: what,
            cat: "__metadata",
            ph: "M",
            ts: 0,
            pid,
            tid: pid,
            id: None,
            s: None,
            args,
        };
        self.write(&entry, out);
    }

    fn number(&mut self, process: Process) -> u32 {
        *self.processes.entry(process).or_insert_with(|| {
            self.last_process += 1;
            self.last_process
        })
    }

    fn write(&mut self, entry: &Entry<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(if self.begun { b",\n" } else { b"\n" });
        self.begun = true;
        #[expect(
            clippy::expect_used,
            reason = "a Vec takes every write, and all keys are strings"
        )]
        serde_json::to_writer(out, entry).expect("an event serialises");
    }
}

fn process(open: &Open, conn: ConnId, side: Side) -> Process {
    let sides = open.parties.of(conn);
    let known = sides.map(|sides| match side {
        Side::Client => &sides.host,
        Side::Server => &sides.server,
    });
    process_of(conn, side, known.and_then(|known| known.pid))
}

fn process_of(conn: ConnId, side: Side, pid: Option<u32>) -> Process {
    match pid {
        Some(pid) => Process::Pid(Pid(pid)),
        None => Process::Side(conn, side == Side::Client),
    }
}

const fn micros(at: Timestamp) -> u64 {
    at.as_nanos() / 1_000
}
