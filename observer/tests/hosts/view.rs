//! The live view on a real terminal, beside a real host: what a user would see and type.
//!
//! Owns the terminal (tmux) and the reading of it. The screen is asked for again and again until it
//! shows what is awaited, so that a slow machine only takes longer.

use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use crate::run::{Plan, evidence};

/// How long anything may take to turn up on the screen.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the shell in the pane says once the view is left.
const LEFT: &str = "left with status 0";

#[test]
fn the_live_view_says_which_call_codex_old_abandoned_and_why() {
    let pane = Pane::new();
    let begun = pane.begin(&format!(
        "LANG=C.UTF-8 '{}' attach --log {{out}}/audit.jsonl {{pid}}; echo left with status $?; cat",
        env!("CARGO_BIN_EXE_observer")
    ));
    let plan = Plan::new("codex-old", "timeout-retry-late").beside(begun);
    let host = thread::spawn(|| plan.run());
    // Where it is skipped, there is never a screen.
    let seen = pane.await_screen(
        |screen| screen.contains(" abandoned: the host "),
        || host.is_finished(),
    );
    let Some(seen) = seen else {
        assert!(
            host.join().unwrap().is_none(),
            "no screen:\n{}",
            pane.screen()
        );
        return;
    };
    assert!(seen.contains("tools/call slow"), "{seen}");

    pane.press(&["/", "outcome:abandoned", "Enter"]);
    pane.await_text("filter: outcome:abandoned");
    pane.press(&["n", "Enter"]);
    pane.await_text("sent again");
    let details = pane.await_text("Why");
    assert!(details.contains("abandoned-call"), "{details}");
    pane.press(&["q", "5"]);
    pane.await_text("in view");
    pane.press(&["2"]);
    let run = host.join().unwrap().expect("it was not skipped");
    // The host is gone, and what was seen of it stays until the user leaves.
    pane.await_text("abandoned, ended");
    pane.press(&["q"]);
    let left = pane.await_text(LEFT);
    assert!(
        !left.contains("Connections"),
        "the terminal is not given back:\n{left}"
    );

    assert_eq!(run.outcomes()[0], "abandoned");
    let findings = run.findings("abandoned-call");
    assert!(evidence(&findings[0]).contains(&"retry"), "{findings:#?}");
}

/// A terminal of its own, which goes when this does.
struct Pane {
    socket: String,
}

impl Pane {
    fn new() -> Self {
        Self {
            socket: format!("observer-view-{}", std::process::id()),
        }
    }

    /// The command that runs `script` in the terminal, and ends once there is a log.
    fn begin(&self, script: &str) -> String {
        let socket = &self.socket;
        let words = script.replace('\'', r#"'"'"'"#);
        format!(
            "sh -c 'tmux -L {socket} -f /dev/null -u new-session -d -x 100 -y 30 \"$1\" && \
             until [ -s \"$0\" ]; do sleep 0.1; done' {{out}}/audit.jsonl '{words}'"
        )
    }

    fn tmux(&self, words: &[&str]) -> Output {
        let mut command = Command::new("tmux");
        command.args(["-L", &self.socket, "-f", "/dev/null"]);
        command.args(words).output().unwrap()
    }

    fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    fn screen(&self) -> String {
        String::from_utf8_lossy(&self.tmux(&["capture-pane", "-p"]).stdout).into_owned()
    }

    /// The screen, once it is as wanted; `None` where `is_over` says that it never will be.
    fn await_screen(
        &self,
        is_wanted: impl Fn(&str) -> bool,
        is_over: impl Fn() -> bool,
    ) -> Option<String> {
        let begun = Instant::now();
        loop {
            let over = is_over() || begun.elapsed() > PATIENCE;
            let screen = self.screen();
            if is_wanted(&screen) {
                return Some(screen);
            }
            if over {
                return None;
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// The screen, once the text stands on it.
    fn await_text(&self, text: &str) -> String {
        self.await_screen(|screen| screen.contains(text), || false)
            .unwrap_or_else(|| panic!("no {text:?} on the screen:\n{}", self.screen()))
    }
}

impl Drop for Pane {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}
