//! What the processes are called.

use std::collections::HashMap;

use super::observed;
use crate::capture::Pid;
use crate::session::{Event, Party};

/// A name is cut to this many characters.
const LIMIT: usize = 60;

/// Programs that run others: their first argument says more than they do.
const INTERPRETERS: [&str; 14] = [
    "bash", "bun", "bunx", "dash", "deno", "node", "npm", "npx", "perl", "python", "ruby", "sh",
    "uv", "uvx",
];

/// The names of the processes that are alive.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    by_pid: HashMap<Pid, String>,
}

impl Names {
    /// Learns from a process event.
    pub(crate) fn handle_event(&mut self, event: &Event) {
        match event {
            Event::ProcessSeen { pid, exe, argv, .. } | Event::ProcessExec { pid, exe, argv } => {
                match name(exe.as_deref(), argv) {
                    Some(name) => self.by_pid.insert(*pid, name),
                    None => self.by_pid.remove(pid),
                };
            }
            _ => {}
        }
    }

    /// Forgets a process that has ended.
    pub(crate) fn forget(&mut self, pid: Pid) {
        self.by_pid.remove(&pid);
    }

    /// `python3 slow_server.py[23614]`.
    pub(crate) fn of(&self, pid: Pid) -> String {
        match self.by_pid.get(&pid) {
            Some(name) => format!("{name}[{pid}]"),
            None => format!("pid {pid}"),
        }
    }

    /// The program of a side of a connection, where it is known.
    pub(crate) fn program_of(&self, party: &Party) -> Option<String> {
        let known = self.by_pid.get(&party.pid).cloned();
        known.or_else(|| party.exe.as_deref().map(|exe| observed(base(exe), LIMIT)))
    }

    /// As [`Self::of`], for a side of a connection.
    pub(crate) fn of_party(&self, party: Option<&Party>) -> String {
        let Some(Party { pid, exe }) = party else {
            return "?".into();
        };
        match exe {
            Some(exe) if !self.by_pid.contains_key(pid) => {
                format!("{}[{pid}]", observed(base(exe), LIMIT))
            }
            _ => self.of(*pid),
        }
    }
}

/// The program's name, and its script's where it is an interpreter.
fn name(exe: Option<&str>, argv: &[String]) -> Option<String> {
    let program = argv
        .first()
        .map(String::as_str)
        .filter(|arg| !arg.is_empty())
        .or(exe)?;
    let program = base(program);
    let plain = program.trim_end_matches(|char: char| char.is_ascii_digit() || char == '.');
    let script = argv
        .iter()
        .skip(1)
        .find(|arg| !arg.starts_with('-') && !arg.is_empty())
        .filter(|_| INTERPRETERS.contains(&plain));
    Some(match script {
        Some(script) => observed(&format!("{program} {}", base(script)), LIMIT),
        None => observed(program, LIMIT),
    })
}

fn base(path: &str) -> &str {
    path.trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_called_by_what_it_runs() {
        for (exe, argv, expected) in [
            (
                Some("/usr/bin/codex"),
                &["codex", "exec", "hi"][..],
                "codex",
            ),
            (
                Some("/usr/bin/python3.11"),
                &["/usr/bin/python3", "-u", "/x/slow_server.py"],
                "python3 slow_server.py",
            ),
            (
                None,
                &["node", "--no-warnings", "dist/cli.js", "-v"],
                "node cli.js",
            ),
            (Some("/opt/evil\x1b[2J"), &[], r"evil\u{1b}[2J"),
            (Some("/usr/bin/x"), &[""], "x"),
        ] {
            let argv: Vec<_> = argv.iter().map(ToString::to_string).collect();
            assert_eq!(name(exe, &argv).as_deref(), Some(expected));
        }
        assert_eq!(name(None, &[]), None);
    }
}
