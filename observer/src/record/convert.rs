//! Between what was observed or concluded and the records of it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;

use super::observed::ActivityKind;
use super::{
    Activity, Call, Cancel, Clock, Connection, ConnectionEvent, Delivered, Eof, Evidence, Finding,
    Gap, Interrupt, LossRecord, Message, NoiseRecord, Process, ProcessEvent, Record, Refused, Span,
    Streams, Summary, escape, unescape,
};
use crate::session::{ConnectionChange, Event, Noise, Observed, Transport};
use crate::verdict;

impl From<&Observed> for Record {
    fn from(observed: &Observed) -> Self {
        let t = observed.at;
        match &observed.event {
            Event::ProcessSeen {
                pid,
                ppid,
                exe,
                argv,
                start,
            } => Self::Process(Process {
                t,
                pid: *pid,
                ppid: *ppid,
                exe: exe.clone(),
                argv: argv.clone(),
                start: *start,
                event: ProcessEvent::Seen,
                status: None,
            }),
            Event::ProcessExec { pid, exe, argv } => Self::Process(Process {
                t,
                pid: *pid,
                ppid: None,
                exe: exe.clone(),
                argv: argv.clone(),
                start: None,
                event: ProcessEvent::Exec,
                status: None,
            }),
            Event::ProcessExit { pid, fate } => Self::Process(Process {
                t,
                pid: *pid,
                ppid: None,
                exe: None,
                argv: Vec::new(),
                start: None,
                event: ProcessEvent::Exit,
                status: *fate,
            }),
            Event::Connection { conn, change } => {
                let closed = Connection {
                    t,
                    conn: *conn,
                    event: ConnectionEvent::Close,
                    client: None,
                    server: None,
                    transport: None,
                    streams: None,
                };
                Self::Connection(match change {
                    ConnectionChange::Close => closed,
                    ConnectionChange::Open {
                        client,
                        server,
                        transport,
                        streams,
                    } => Connection {
                        event: ConnectionEvent::Open,
                        client: client.clone(),
                        server: server.clone(),
                        transport: Some(*transport),
                        streams: write_streams(streams),
                        ..closed
                    },
                })
            }
            Event::Message {
                conn,
                from,
                offset,
                bytes,
                frame,
            } => Self::Message(Message {
                t,
                conn: *conn,
                from: *from,
                bytes: *bytes,
                offset: *offset,
                json: frame.clone(),
            }),
            Event::Noise(noise) => Self::Noise(NoiseRecord {
                t,
                conn: noise.conn,
                from: noise.from,
                bytes: noise.bytes,
                kind: noise.kind,
                offset: noise.offset,
                text: escape(&noise.text),
            }),
            Event::Gap {
                conn,
                from,
                offset,
                bytes,
                reason,
            } => Self::Gap(Gap {
                t,
                conn: *conn,
                from: *from,
                offset: *offset,
                bytes: *bytes,
                reason: *reason,
            }),
            Event::Eof { conn, from } => Self::Eof(Eof {
                t,
                conn: *conn,
                from: *from,
            }),
            Event::Delivered { conn, from, offset } => Self::Delivered(Delivered {
                t,
                conn: *conn,
                from: *from,
                offset: *offset,
            }),
            Event::Refused { conn, from } => Self::Refused(Refused {
                t,
                conn: *conn,
                from: *from,
            }),
            Event::Interrupt { pid, kind, sender } => Self::Interrupt(Interrupt {
                t,
                pid: *pid,
                kind: *kind,
                sender: *sender,
            }),
            Event::NetSend { pid, bytes, peer } => Self::Activity(Activity {
                t,
                pid: *pid,
                kind: ActivityKind::NetSend,
                bytes: *bytes,
                peer: *peer,
            }),
            Event::Suspended { nanos } => Self::Clock(Clock {
                t,
                suspended: Span(std::time::Duration::from_nanos(*nanos)),
            }),
            Event::Loss(loss) => Self::Loss(LossRecord { t, loss: *loss }),
        }
    }
}

impl Record {
    /// What was observed, for a replay; `None` for the header and for what is derived.
    pub fn into_observed(self) -> Option<Observed> {
        let at = self.t();
        let event = match self {
            Self::Header(_)
            | Self::Call(_)
            | Self::Finding(_)
            | Self::Summary(_)
            | Self::Chain(_) => return None,
            Self::Process(process) => process.into_event(),
            Self::Connection(connection) => connection.into_event(),
            Self::Message(message) => Event::Message {
                conn: message.conn,
                from: message.from,
                offset: message.offset,
                bytes: message.bytes,
                frame: message.json,
            },
            Self::Noise(noise) => Event::Noise(Noise {
                conn: noise.conn,
                from: noise.from,
                offset: noise.offset,
                bytes: noise.bytes,
                kind: noise.kind,
                text: Bytes::from(unescape(&noise.text)),
            }),
            Self::Gap(Gap {
                conn,
                from,
                offset,
                bytes,
                reason,
                ..
            }) => Event::Gap {
                conn,
                from,
                offset,
                bytes,
                reason,
            },
            Self::Eof(Eof { conn, from, .. }) => Event::Eof { conn, from },
            Self::Delivered(Delivered {
                conn, from, offset, ..
            }) => Event::Delivered { conn, from, offset },
            Self::Refused(Refused { conn, from, .. }) => Event::Refused { conn, from },
            Self::Interrupt(Interrupt {
                pid, kind, sender, ..
            }) => Event::Interrupt { pid, kind, sender },
            Self::Activity(Activity {
                pid,
                kind: ActivityKind::NetSend,
                bytes,
                peer,
                ..
            }) => Event::NetSend { pid, bytes, peer },
            Self::Clock(Clock {
                suspended: Span(span),
                ..
            }) => Event::Suspended {
                nanos: u64::try_from(span.as_nanos()).unwrap_or(u64::MAX),
            },
            Self::Loss(LossRecord { loss, .. }) => Event::Loss(loss),
        };
        Some(Observed { at, event })
    }
}

impl Process {
    fn into_event(self) -> Event {
        let Self {
            pid,
            ppid,
            exe,
            argv,
            start,
            event,
            status,
            ..
        } = self;
        match event {
            ProcessEvent::Seen => Event::ProcessSeen {
                pid,
                ppid,
                exe,
                argv,
                start,
            },
            ProcessEvent::Exec => Event::ProcessExec { pid, exe, argv },
            ProcessEvent::Exit => Event::ProcessExit { pid, fate: status },
        }
    }
}

impl Connection {
    fn into_event(self) -> Event {
        let Self {
            conn,
            event,
            client,
            server,
            transport,
            streams,
            ..
        } = self;
        let change = match event {
            ConnectionEvent::Close => ConnectionChange::Close,
            ConnectionEvent::Open => {
                let Streams {
                    client: to_server,
                    server: to_client,
                } = streams.unwrap_or_default();
                ConnectionChange::Open {
                    client,
                    server,
                    transport: transport.unwrap_or(Transport::Pipe),
                    streams: [to_server, to_client],
                }
            }
        };
        Event::Connection { conn, change }
    }
}

fn write_streams([to_server, to_client]: &[Option<String>; 2]) -> Option<Streams> {
    (to_server.is_some() || to_client.is_some()).then(|| Streams {
        client: to_server.clone(),
        server: to_client.clone(),
    })
}

impl From<&verdict::Output> for Record {
    fn from(output: &verdict::Output) -> Self {
        match output {
            verdict::Output::Call(call) => Self::Call(call.into()),
            verdict::Output::Finding(finding) => Self::Finding(finding.into()),
            verdict::Output::Summary(summary) => Self::Summary(summary.into()),
        }
    }
}

impl From<&verdict::CallRecord> for Call {
    fn from(call: &verdict::CallRecord) -> Self {
        Self {
            t: call.at,
            conn: call.conn,
            from: call.from,
            id: call.id.clone(),
            method: call.method.clone(),
            name: call.name.clone(),
            sent: call.sent,
            ended: call.ended,
            outcome: call.outcome,
            duration: call.ended.map(|ended| Span(ended.since(call.sent))),
            wasted: call.wasted.map(Span),
            request_bytes: call.request_bytes,
            response_bytes: call.response_bytes,
            progress: call.progress,
            cancel: call.cancel.as_ref().map(|cancel| Cancel {
                t: cancel.at,
                reason: cancel.reason.clone(),
            }),
        }
    }
}

impl From<&verdict::Finding> for Finding {
    fn from(finding: &verdict::Finding) -> Self {
        Self {
            t: finding.at,
            finding: finding.number,
            rule: Cow::Borrowed(finding.rule),
            severity: finding.severity,
            confidence: finding.confidence,
            side: finding.side,
            conn: finding.conn,
            id: finding.id.clone(),
            method: finding.method.clone(),
            name: finding.name.clone(),
            message: finding.message.clone(),
            evidence: finding
                .evidence
                .iter()
                .map(|evidence| Evidence {
                    kind: Cow::Borrowed(evidence.kind),
                    t: evidence.at,
                    detail: evidence.detail.clone(),
                })
                .collect(),
            spec: finding.spec.clone(),
            supersedes: finding.supersedes,
        }
    }
}

impl From<&verdict::Summary> for Summary {
    fn from(summary: &verdict::Summary) -> Self {
        let mut findings = BTreeMap::<_, BTreeMap<_, _>>::new();
        for (&(rule, severity), &count) in &summary.findings {
            findings
                .entry(Cow::Borrowed(rule))
                .or_default()
                .insert(severity, count);
        }
        Self {
            t: summary.at,
            calls: summary.calls.clone(),
            findings,
            messages: summary.messages,
            bytes: summary.bytes,
            gaps: summary.gaps,
            complete: summary.complete,
            loss: summary.loss,
            chain: None,
        }
    }
}
