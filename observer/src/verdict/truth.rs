//! Conversations made by a generator that knows the truth, and what the judge must say of them.

use std::collections::BTreeMap;
use std::fmt::Write;

use proptest::prelude::*;
use serde_json::Value;

use super::script::{Heard, events, hear, hear_events};
use super::{Confidence, Finding, Outcome, READ, Settings};
use crate::jsonrpc::Frame;
use crate::session::{Event, Observed};

/// How a made-up call ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Answered,
    Failed,
    Cancelled,
    CancelledAndAnswered,
    Open,
    /// Given up, and sent again six seconds or more later.
    Retried {
        answered: bool,
    },
    /// Answered with a task that is polled to its end.
    Task,
    /// In the middle the server asks back, for a long time.
    AsksBack,
}

/// A made-up call. Times are in milliseconds.
#[derive(Clone, Debug)]
struct Made {
    sent: u32,
    lasts: u32,
    progress: u8,
    by_server: bool,
    fate: Fate,
    /// How much earlier than it should the record of the answer comes.
    early: u32,
}

/// A made-up conversation.
#[derive(Clone, Debug)]
struct Conversation {
    revision: &'static str,
    calls: Vec<Made>,
    torn_down: bool,
    interrupt: bool,
}

fn any_made() -> impl Strategy<Value = Made> {
    let fate = prop_oneof![
        4 => Just(Fate::Answered),
        1 => Just(Fate::Failed),
        2 => Just(Fate::Cancelled),
        1 => Just(Fate::CancelledAndAnswered),
        1 => Just(Fate::Open),
        2 => any::<bool>().prop_map(|answered| Fate::Retried { answered }),
        1 => Just(Fate::Task),
        1 => Just(Fate::AsksBack),
    ];
    (
        0_u32..60_000,
        1_u32..40_000,
        0_u8..3,
        prop::bool::weighted(0.2),
        fate,
        0_u32..200,
    )
        .prop_map(|(sent, lasts, progress, by_server, fate, early)| {
            let of_client = matches!(fate, Fate::Retried { .. } | Fate::Task | Fate::AsksBack);
            Made {
                sent,
                lasts,
                progress,
                by_server: by_server && !of_client,
                fate,
                early,
            }
        })
}

fn any_conversation() -> impl Strategy<Value = Conversation> {
    let revisions =
        prop::sample::select(vec!["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]);
    (
        revisions,
        prop::collection::vec(any_made(), 1..20),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(revision, calls, torn_down, interrupt)| Conversation {
            revision,
            calls,
            torn_down,
            interrupt,
        })
}

/// When all of it is over.
const END: u32 = 400_000;

/// The script's lines with their times, and the truth about each call by its id.
fn written(conversation: &Conversation) -> (Vec<(u32, String)>, BTreeMap<String, Outcome>) {
    let mut lines = vec![(0, format!("hello {}", conversation.revision))];
    let mut truth = BTreeMap::new();
    for (number, made) in (1_u32..).zip(&conversation.calls) {
        made.write(number * 10, &mut lines, &mut truth);
    }
    let open = |outcome: &mut Outcome| {
        if *outcome == Outcome::Pending {
            *outcome = Outcome::TornDown;
        }
    };
    if conversation.torn_down {
        lines.push((END, "eof c".into()));
        lines.push((END, "exit 20".into()));
        truth.values_mut().for_each(open);
    }
    if conversation.interrupt {
        // After the last call is over, but for those that nobody ends.
        let nothing_open = truth.values().all(|outcome| *outcome != Outcome::Pending);
        if nothing_open && !conversation.torn_down {
            lines.push((END, "key-esc 10".into()));
        }
    }
    lines.push((END + 10_000, "end".into()));
    lines.sort_by_key(|(at, _)| *at);
    (lines, truth)
}

impl Made {
    fn write(
        &self,
        id: u32,
        lines: &mut Vec<(u32, String)>,
        truth: &mut BTreeMap<String, Outcome>,
    ) {
        let sent = self.sent + 1000;
        let end = sent + self.lasts;
        let (ask, reply) = if self.by_server {
            ("s", "c")
        } else {
            ("c", "s")
        };
        let request = match (self.by_server, self.fate) {
            (true, _) => format!("s {id} sampling/createMessage {{\"n\":{id}}}"),
            (_, Fate::Task) => {
                format!("c {id} tools/call {{\"name\":\"t{id}\",\"task\":{{}}}}")
            }
            _ => format!("call {id} t {{\"n\":{id}}}"),
        };
        lines.push((sent, request));
        let before = matches!(self.fate, Fate::Answered | Fate::Open) && !self.by_server;
        for step in (1..=u32::from(self.progress)).filter(|_| before) {
            lines.push((sent + self.lasts * step / 4, format!("progress {id}")));
        }
        let answer = format!("{reply}= {id}");
        let outcome = match self.fate {
            Fate::Answered => {
                // The record may be early, even before the request's.
                lines.push((end - self.early.min(self.lasts + self.early) / 2, answer));
                Outcome::Answered
            }
            Fate::Failed if !self.by_server => {
                lines.push((end, format!("s! {id} -32603")));
                Outcome::Failed
            }
            Fate::Failed => {
                lines.push((end, answer));
                Outcome::Answered
            }
            Fate::Cancelled | Fate::CancelledAndAnswered => {
                let verb = if ask == "s" { "scancel" } else { "cancel" };
                lines.push((end, format!("{verb} {id} timed out")));
                if self.fate == Fate::CancelledAndAnswered {
                    lines.push((end + self.lasts, answer));
                }
                Outcome::Cancelled
            }
            Fate::Open => Outcome::Pending,
            Fate::Retried { answered } => {
                let again = id + 1;
                let retry = sent + 6_000 + self.lasts;
                lines.push((retry, format!("call {again} t {{\"n\":{id}}}")));
                lines.push((retry + 100, format!("s= {again}")));
                truth.insert(again.to_string(), Outcome::Answered);
                if answered {
                    lines.push((retry + 1_000, answer));
                }
                Outcome::Abandoned
            }
            Fate::Task => {
                let task = format!("\"taskId\":\"task-{id}\"");
                lines.push((
                    end,
                    format!("{answer} {{\"task\":{{{task},\"status\":\"working\"}}}}"),
                ));
                for poll in 1..5 {
                    let at = end + poll * 30_000;
                    let status = if poll == 4 { "completed" } else { "working" };
                    let (poll, told) = (id + poll, format!("{{{task},\"status\":\"{status}\"}}"));
                    lines.push((at, format!("c {poll} tasks/get {{{task}}}")));
                    lines.push((at + 10, format!("s= {poll} {told}")));
                    truth.insert(poll.to_string(), Outcome::Answered);
                }
                Outcome::Answered
            }
            Fate::AsksBack => {
                let asked = format!("9{id}");
                lines.push((sent + 10, format!("s {asked} elicitation/create")));
                lines.push((sent + 90_000, format!("c= {asked}")));
                truth.insert(asked, Outcome::Answered);
                lines.push((sent + 91_000, answer));
                Outcome::Answered
            }
        };
        truth.insert(id.to_string(), outcome);
    }
}

fn script(lines: &[(u32, String)]) -> String {
    let mut script = String::new();
    for (at, line) in lines {
        let _ = writeln!(script, "{}.{:03} {line}", at / 1000, at % 1000);
    }
    script
}

fn outcomes(heard: &Heard) -> BTreeMap<String, String> {
    let calls = heard.calls.iter().filter_map(|call| call.split_once(' '));
    calls
        .map(|(id, outcome)| (id.to_owned(), outcome.to_owned()))
        .collect()
}

fn word(outcome: Outcome) -> String {
    format!("{outcome:?}")
        .to_lowercase()
        .replace("torndown", "torn-down")
}

/// The ids that `abandoned-call` is said of, whether it stands or not.
fn accused(heard: &Heard) -> Vec<String> {
    heard.findings.iter().filter_map(accusation).collect()
}

/// The ids that it is still said of in the end: a gap that is noticed late withdraws.
fn convicted(heard: &Heard) -> Vec<String> {
    let sure = heard
        .standing()
        .filter(|finding| finding.confidence > Confidence::Possible);
    sure.filter_map(accusation).collect()
}

fn accusation(finding: &Finding) -> Option<String> {
    let id = finding
        .id
        .as_ref()
        .filter(|_| finding.rule == "abandoned-call")?;
    Some(id.to_string())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn each_call_gets_its_true_outcome(conversation in any_conversation()) {
        // A request of the server that is never answered holds up the limits: leave it out.
        let mut conversation = conversation;
        conversation.calls.retain(|made| !(made.by_server && made.fate == Fate::Open));
        let holds = |made: &Made| made.by_server || made.fate == Fate::AsksBack;
        if conversation.calls.iter().any(holds) {
            conversation.calls.retain(|made| !matches!(made.fate, Fate::Retried { .. }));
        }
        let (lines, truth) = written(&conversation);
        let heard = hear(&script(&lines), Settings::default());
        let right: BTreeMap<String, String> =
            truth.iter().map(|(id, outcome)| (id.clone(), word(*outcome))).collect();
        prop_assert_eq!(outcomes(&heard), right);
        for id in accused(&heard) {
            prop_assert_eq!(truth.get(&id), Some(&Outcome::Abandoned), "call {}", id);
        }
        prop_assert!(heard.summary.complete);
    }

    #[test]
    fn a_gap_never_makes_an_abandoned_call(
        conversation in any_conversation(),
        at in 1_000_u32..80_000,
        lasts in 0_u32..20_000,
        of_client in any::<bool>(),
    ) {
        let (mut lines, truth) = written(&conversation);
        let (side, verbs) = if of_client {
            ("c", ["call", "c", "c=", "cancel"])
        } else {
            ("s", ["s", "s=", "s!", "progress"])
        };
        let sent: BTreeMap<String, u32> = lines.iter().rev().filter_map(|(at, line)| {
            let (verb, rest) = line.split_once(' ')?;
            matches!(verb, "call" | "c" | "s").then(|| (rest.split(' ').next().unwrap_or("").to_owned(), *at))
        }).collect();
        lines.retain(|(time, line)| {
            let verb = line.split(' ').next().unwrap_or_default();
            !(verbs.contains(&verb) && (at..=at + lasts).contains(time))
        });
        // It is noticed when the side is heard again.
        lines.push((at + lasts, format!("gap {side}")));
        lines.sort_by_key(|(at, _)| *at);
        let heard = hear(&script(&lines), Settings::default());
        for id in convicted(&heard) {
            let abandoned = truth.get(&id) == Some(&Outcome::Abandoned);
            prop_assert!(abandoned, "call {} was not given up", id);
            let (from, retried) = (sent[&id], sent[&id] + 6_000);
            prop_assert!(
                at + lasts < from || at >= retried,
                "the gap may hide the end of {}", id
            );
        }
        prop_assert!(!heard.summary.complete);
    }
}

/// A message as a redacted log has it: of the strings under `params` and `result` only those in
/// [`READ`] are kept.
fn redacted(observed: Observed) -> Observed {
    let Event::Message {
        conn,
        from,
        offset,
        bytes,
        frame,
    } = observed.event
    else {
        return observed;
    };
    let mut json: Value = serde_json::from_str(frame.text()).expect("JSON");
    for part in ["params", "result"] {
        if let Some(value) = json.get_mut(part) {
            redact(value, &mut vec![part.to_owned()]);
        }
    }
    let frame = Frame::parse(json.to_string().into()).expect("a message");
    let event = Event::Message {
        conn,
        from,
        offset,
        bytes,
        frame,
    };
    Observed {
        at: observed.at,
        event,
    }
}

fn redact(value: &mut Value, path: &mut Vec<String>) {
    match value {
        Value::String(text)
            if !READ.contains(&&*path.iter().map(String::as_str).collect::<Vec<_>>()) =>
        {
            *value = serde_json::json!({"sha256": format!("{text:?}"), "bytes": text.len()});
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redact(item, path)),
        Value::Object(members) => {
            for (name, member) in members {
                path.push(name.clone());
                redact(member, path);
                path.pop();
            }
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_redacted_log_gets_the_same_verdicts(conversation in any_conversation()) {
        let (mut lines, _) = written(&conversation);
        lines.push((END, "@2 c 5 tools/call {\"name\":\"t\",\"arguments\":{\"secret\":\"s\"}}".into()));
        lines.push((END + 7_000, "@2 c 6 tools/call {\"name\":\"t\",\"arguments\":{\"secret\":\"s\"}}".into()));
        lines.sort_by_key(|(at, _)| *at);
        let script = script(&lines);
        let full = hear(&script, Settings::default());
        let events = events(&script).into_iter().map(redacted);
        let without = hear_events(events, Settings::default());
        prop_assert_eq!(&full.calls, &without.calls);
        prop_assert_eq!(&full.findings, &without.findings);
        prop_assert!(accused(&full).contains(&"5".to_owned()));
    }
}

/// Anything at all, in any order.
fn any_line() -> impl Strategy<Value = String> {
    let id = prop::sample::select(vec!["0", "1", "2", "\"1\"", "\"\"", "null"]);
    let side = prop::sample::select(vec!["c", "s"]);
    prop_oneof![
        4 => (id.clone(), 0..3_u8).prop_map(|(id, n)| format!("call {id} t {{\"n\":{n}}}")),
        2 => (id.clone(), prop::sample::select(vec!["tools/call", "ping", "initialize",
            "server/discover", "subscriptions/listen", "tasks/result", "elicitation/create"]), side.clone())
            .prop_map(|(id, method, side)| format!("{side} {id} {method}")),
        4 => (id.clone(), side.clone()).prop_map(|(id, side)| format!("{side}= {id}")),
        1 => id.clone().prop_map(|id| format!("s! {id} -1")),
        2 => (id.clone(), prop::sample::select(vec!["cancel", "scancel"]))
            .prop_map(|(id, verb)| format!("{verb} {id}")),
        1 => id.prop_map(|id| format!("progress {id}")),
        1 => prop::sample::select(vec!["hello 2025-06-18", "hello 2025-11-25 codex-mcp-client 0.1",
            "key-esc 10", "sigint 10", "sigterm 20 10", "exit 20 1", "exit 10", "eof c", "eof s",
            "close", "gap c", "gap s", "gap s mid-stream", "noise s text x", "noise c invalid-json {",
            "refused", "read c 10", "@2 hello 2025-06-18", "@2 call 1 t", "@2 s= 1"])
            .prop_map(str::to_owned),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_interleaving_gives_each_request_one_outcome(
        lines in prop::collection::vec((0_u32..3_000, any_line()), 0..80),
    ) {
        let mut at = 0;
        let mut script = Vec::new();
        for (pause, line) in lines {
            at += pause;
            script.push((at, line));
        }
        let requests = script.iter().filter(|(_, line)| {
            let verb = line.trim_start_matches("@2 ").split(' ').next().unwrap_or_default();
            matches!(verb, "call" | "c" | "s")
        }).filter(|(_, line)| !line.contains("initialize")).count();
        let heard = hear(&self::script(&script), Settings::default());
        prop_assert_eq!(heard.calls.len(), requests);
        let counted: u64 = heard.summary.calls.values().sum();
        prop_assert!(counted >= requests as u64);
        let mut superseded = std::collections::BTreeSet::new();
        for (number, finding) in (1..).zip(&heard.findings) {
            prop_assert_eq!(finding.number, number);
            if let Some(earlier) = finding.supersedes {
                prop_assert!(earlier < number);
                prop_assert!(superseded.insert(earlier), "{} is superseded twice", earlier);
            }
        }
        let standing = heard.standing().count() as u64;
        prop_assert_eq!(heard.summary.findings.values().sum::<u64>(), standing);
    }
}
