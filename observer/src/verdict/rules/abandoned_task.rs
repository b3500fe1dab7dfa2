//! `abandoned-task`: a task that nobody polls, reads or cancels any more.

use std::collections::HashMap;
use std::time::Duration;

use super::Rule;
use crate::capture::Timestamp;
use crate::session::{ConnId, Side};
use crate::verdict::about::About;
use crate::verdict::call::{Call, Seq, shown, spoken};
use crate::verdict::connection::Connection;
use crate::verdict::desk::{Desk, Draft};
use crate::verdict::judge::State;
use crate::verdict::occurrence::Occurrence;
use crate::verdict::reading::{Asked, TaskNote};
use crate::verdict::{Confidence, Culprit, Severity};

pub(super) const ABOUT: About = About {
    name: "abandoned-task",
    side: "host",
    severity: Severity::Warning,
    grading: Some("info once the host asks for the task again"),
    meaning: "A task that nobody polls, reads or cancels any more.",
    evidence: &[
        "`task`: the answer that created it.",
        "`last-poll`: the host's last request about it, at least three poll intervals and 60 s ago.",
        "`host-active`: the host has sent something else since then.",
    ],
    exceptions: &[
        "A task that is over, was cancelled with `tasks/cancel`, or has outlived its `ttl`.",
        "A `tasks/result` that waits, and a `subscriptions/listen` for the task.",
        "A host that is silent altogether, has ended, or has closed the connection.",
        "A poll that may have gone by unseen.",
    ],
    clauses: [
        "",
        "",
        "",
        "basic/utilities/tasks: requestors poll with tasks/get until a terminal status, or cancel \
         with tasks/cancel",
        "extension io.modelcontextprotocol/tasks: clients poll with tasks/get, or cancel with \
         tasks/cancel",
    ],
};

/// How many tasks are watched at once.
const WATCHED: usize = 10_000;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct AbandonedTask {
    tasks: HashMap<(ConnId, Box<str>), Task>,
    keys: HashMap<u64, (ConnId, Box<str>)>,
    next_key: u64,
}

#[derive(Debug)]
struct Task {
    call: Call,
    created: Timestamp,
    ttl: Option<Duration>,
    patience: Duration,
    touched: Timestamp,
    /// Requests that wait for it, or listen for news of it.
    waiting: Vec<Seq>,
    said: Option<Option<u32>>,
}

impl Rule for AbandonedTask {
    fn see(&mut self, seen: &Occurrence<'_>, state: &State, desk: &mut Desk) {
        match seen {
            Occurrence::Answered {
                call,
                answer,
                task: Some(note),
                ..
            } if call.from == Side::Client => {
                if note.created {
                    self.begin(call, note, answer.at, state, desk);
                } else {
                    self.heard(call.conn, note);
                }
            }
            Occurrence::Sent { conn, call, asked } if call.from == Side::Client => {
                self.asked(conn, call, asked, desk);
            }
            Occurrence::Ended { past } => self.stopped_waiting(&past.call, desk.now),
            Occurrence::Notified {
                conn,
                from: Side::Server,
                method,
                params,
            } => {
                if method.starts_with("notifications/tasks")
                    && let Some(note) = params.and_then(TaskNote::fields)
                {
                    self.heard(conn.id, &note);
                }
            }
            Occurrence::Gone { conn } => self.tasks.retain(|(of, _), _| *of != conn.id),
            _ => {}
        }
    }

    fn due(&mut self, key: u64, state: &State, desk: &mut Desk) {
        let Some(of) = self.keys.remove(&key) else {
            return;
        };
        let Some(task) = self.tasks.get_mut(&of) else {
            return;
        };
        let Some(conn) = state
            .conns
            .get(&of.0)
            .filter(|conn| may_be_judged(conn, task))
        else {
            self.tasks.remove(&of);
            return;
        };
        if task.ttl.is_some_and(|ttl| desk.now >= task.created + ttl) {
            self.tasks.remove(&of);
            return;
        }
        let idle = desk.now.since(task.touched);
        let active = conn.spoke(Side::Client).filter(|at| *at > task.touched);
        if task.waiting.is_empty()
            && idle >= task.patience
            && let Some(active) = active
        {
            task.said = Some(desk.report(draft(&of.1, task, active, idle)));
            return;
        }
        let again = if idle >= task.patience {
            desk.now
        } else {
            task.touched
        };
        let again = again + task.patience;
        self.wake(of, again, desk);
    }
}

impl AbandonedTask {
    fn begin(
        &mut self,
        call: &Call,
        note: &TaskNote,
        at: Timestamp,
        state: &State,
        desk: &mut Desk,
    ) {
        if note.is_terminal() || self.tasks.len() >= WATCHED {
            return;
        }
        let patience = note
            .poll
            .unwrap_or_default()
            .saturating_mul(3)
            .max(state.settings.task);
        let task = Task {
            call: call.clone(),
            created: at,
            ttl: note.ttl,
            patience,
            touched: at,
            waiting: Vec::new(),
            said: None,
        };
        let of = (call.conn, note.id.clone());
        self.tasks.insert(of.clone(), task);
        self.wake(of, at + patience, desk);
    }

    fn wake(&mut self, of: (ConnId, Box<str>), at: Timestamp, desk: &mut Desk) {
        self.next_key += 1;
        self.keys.insert(self.next_key, of);
        desk.wake(at, self.next_key);
    }

    /// The server tells of a task.
    fn heard(&mut self, conn: ConnId, note: &TaskNote) {
        if note.is_terminal() {
            self.tasks.remove(&(conn, note.id.clone()));
        }
    }

    /// The host asks for a task.
    fn asked(&mut self, conn: &Connection, call: &Call, asked: &Asked, desk: &mut Desk) {
        match call.method.as_ref() {
            "tasks/cancel" => {
                if let Some(id) = &asked.task {
                    self.tasks.remove(&(conn.id, id.clone()));
                }
            }
            "tasks/list" => {
                let mine = self.tasks.iter_mut().filter(|((of, _), _)| *of == conn.id);
                mine.for_each(|(_, task)| task.touched = desk.now);
            }
            "subscriptions/listen" => {
                for id in &asked.listens {
                    self.touch((conn.id, id.clone()), Some(call.seq), desk);
                }
            }
            "tasks/result" => {
                if let Some(id) = &asked.task {
                    self.touch((conn.id, id.clone()), Some(call.seq), desk);
                }
            }
            "tasks/get" | "tasks/update" => {
                if let Some(id) = &asked.task {
                    self.touch((conn.id, id.clone()), None, desk);
                }
            }
            _ => {}
        }
    }

    fn touch(&mut self, of: (ConnId, Box<str>), waiting: Option<Seq>, desk: &mut Desk) {
        let Some(task) = self.tasks.get_mut(&of) else {
            return;
        };
        task.touched = desk.now;
        task.waiting.extend(waiting);
        let Some(said) = task.said.take() else { return };
        let message = format!("the host asks again for the task {}", shown(&of.1));
        let draft = Draft::new(&ABOUT, Culprit::Host, message)
            .call(&task.call)
            .severity(Severity::Info)
            .confidence(Confidence::Possible)
            .evidence("poll", desk.now, "the host asked for the task".into())
            .supersedes(said);
        desk.report(draft);
        let at = desk.now + task.patience;
        self.wake(of, at, desk);
    }

    fn stopped_waiting(&mut self, call: &Call, now: Timestamp) {
        if !matches!(
            call.method.as_ref(),
            "tasks/result" | "subscriptions/listen"
        ) {
            return;
        }
        for ((conn, _), task) in &mut self.tasks {
            if *conn == call.conn && task.waiting.contains(&call.seq) {
                task.waiting.retain(|seq| *seq != call.seq);
                task.touched = now;
            }
        }
    }
}

/// Whether a poll of the task would have been seen, and could still come.
fn may_be_judged(conn: &Connection, task: &Task) -> bool {
    let over = conn.ends.host_began().is_some() || conn.ends.over().is_some();
    !over && conn.gap(Side::Client).is_none_or(|gap| gap < task.created)
}

fn draft(id: &str, task: &Task, active: Timestamp, idle: Duration) -> Draft {
    let id = shown(id);
    let message = format!(
        "the host has not asked for the task {id} of {} for {}, and has not cancelled it",
        task.call.title(),
        spoken(idle)
    );
    Draft::new(&ABOUT, Culprit::Host, message)
        .call(&task.call)
        .confidence(Confidence::Probable)
        .evidence(
            "task",
            task.created,
            format!("the answer created the task {id}"),
        )
        .evidence(
            "last-poll",
            task.touched,
            "the last that was heard of it".into(),
        )
        .evidence("host-active", active, "the host sent something else".into())
}

#[cfg(test)]
mod tests {
    use crate::verdict::script::judged;

    const TASK: &str = "0 hello 2025-11-25\n1 c 1 tools/call {\"name\":\"t\",\"task\":{\"ttl\":null}}\n\
        2 s= 1 {\"task\":{\"taskId\":\"a\",\"status\":\"working\",\"pollInterval\":1000}}\n\
        3 c 2 tasks/get {\"taskId\":\"a\"}\n3 s= 2 {\"taskId\":\"a\",\"status\":\"working\"}\n";

    #[test]
    fn nobody_asks_for_the_task_any_more() {
        let script = format!("{TASK}20 c 3 tools/list\n21 s= 3\n90 end");
        let gone = "1 answered, 2 answered, 3 answered | abandoned-task 1 probable warning";
        assert_eq!(judged(&script), gone);
        let again = format!("{script}\n99 c 4 tasks/get {{\"taskId\":\"a\"}}\n99 s= 4");
        assert!(judged(&again).ends_with("| abandoned-task 1 possible info"));
    }

    #[test]
    fn the_server_makes_a_task_of_a_call() {
        let made = r#"{"resultType":"task","taskId":"a","status":"working","pollIntervalMs":500}"#;
        let script = format!("1 call 1 t\n2 s= 1 {made}\n20 c 3 tools/list\n21 s= 3\n90 end");
        assert_eq!(
            judged(&script),
            "1 answered, 3 answered | abandoned-task 1 probable warning"
        );
    }

    #[test]
    fn tasks_that_are_not_abandoned() {
        let active = "20 c 9 tools/list\n21 s= 9\n";
        for (what, script) in [
            (
                "cancelled",
                format!("{active}22 c 3 tasks/cancel {{\"taskId\":\"a\"}}\n22 s= 3\n90 end"),
            ),
            (
                "waited for",
                format!("4 c 3 tasks/result {{\"taskId\":\"a\"}}\n{active}900 end"),
            ),
            (
                "listened for",
                format!("4 c 3 subscriptions/listen {{\"taskIds\":[\"a\"]}}\n{active}900 end"),
            ),
            (
                "over",
                format!(
                    "{active}30 s- notifications/tasks/status {{\"taskId\":\"a\",\"status\":\"completed\"}}\n90 end"
                ),
            ),
            ("a silent host", "900 end".into()),
            ("a host that has left", format!("{active}22 eof c\n900 end")),
            ("a poll unseen", format!("{active}22 gap c\n900 end")),
            (
                "polled",
                format!("{active}50 c 3 tasks/get {{\"taskId\":\"a\"}}\n50 s= 3\n100 end"),
            ),
        ] {
            let verdict = judged(&format!("{TASK}{script}"));
            assert!(!verdict.contains("abandoned-task"), "{what}: {verdict}");
        }
        let short = TASK.replace("\"pollInterval\"", "\"ttl\":30000,\"pollInterval\"");
        let verdict = judged(&format!("{short}{active}900 end"));
        assert!(
            !verdict.contains("abandoned-task"),
            "it outlived its ttl: {verdict}"
        );
    }
}
