//! Processes that come and go, and what interrupts them.

use std::fmt::Write;

use super::Detail;
use super::view::View;
use crate::capture::{Fate, InterruptKind, Pid, Timestamp};

impl View {
    pub(super) fn process_seen(
        &self,
        at: Timestamp,
        pid: Pid,
        ppid: Option<Pid>,
        out: &mut String,
    ) {
        let by = ppid
            .map(|ppid| format!(" by {}", self.names.of(ppid)))
            .unwrap_or_default();
        self.process_row(at, pid, "process", &by, out);
    }

    pub(super) fn process_row(
        &self,
        at: Timestamp,
        pid: Pid,
        word: &str,
        rest: &str,
        out: &mut String,
    ) {
        if self.shows(Detail::Verbose) {
            self.row(out, at, None, self.palette.dim, word);
            let _ = writeln!(out, "{}{rest}", self.names.of(pid));
        }
    }

    pub(super) fn process_exit(
        &mut self,
        at: Timestamp,
        pid: Pid,
        fate: Option<Fate>,
        out: &mut String,
    ) {
        let detail = if self.parties.contains_key(&pid) {
            Detail::Normal
        } else {
            Detail::Verbose
        };
        if self.shows(detail) {
            self.row(out, at, None, self.palette.dim, "exit");
            let how = match fate {
                None => String::new(),
                Some(Fate::Code(code)) => format!(" with status {code}"),
                Some(Fate::Signal(signal)) => format!(" by {}", signal_name(signal)),
            };
            let _ = writeln!(out, "{}{how}", self.names.of(pid));
        }
        self.names.forget(pid);
    }

    pub(super) fn interrupt(
        &self,
        at: Timestamp,
        pid: Pid,
        kind: InterruptKind,
        sender: Option<Pid>,
        out: &mut String,
    ) {
        let detail = if self.parties.contains_key(&pid) {
            Detail::Normal
        } else {
            Detail::Verbose
        };
        if !self.shows(detail) {
            return;
        }
        self.row(out, at, None, self.palette.note, "interrupt");
        let what = match kind {
            InterruptKind::Sigint => "SIGINT",
            InterruptKind::Sigterm => "SIGTERM",
            InterruptKind::Sigkill => "SIGKILL",
            InterruptKind::Sighup => "SIGHUP",
            InterruptKind::KeyEsc => "the key Esc",
            InterruptKind::KeyCtrlC => "the keys Ctrl-C",
        };
        let by = sender
            .map(|pid| format!(" from {}", self.names.of(pid)))
            .unwrap_or_default();
        let _ = writeln!(out, "{} got {what}{by}", self.names.of(pid));
    }
}

fn signal_name(signal: i32) -> String {
    match nix::sys::signal::Signal::try_from(signal) {
        Ok(signal) => signal.as_str().into(),
        Err(_) => format!("signal {signal}"),
    }
}
