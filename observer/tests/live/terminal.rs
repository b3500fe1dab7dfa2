//! `run` under a shell with job control: the terminal's signals reach the command as without us.

use std::process::Command;

use crate::observer::backends;
use crate::pty::Terminal;

#[test]
fn the_terminals_keys_reach_the_command_and_the_shell_gets_its_job_back() {
    for backend in backends() {
        a_job_under(backend);
    }
}

fn a_job_under(backend: &str) {
    let mut command = Command::new("bash");
    command
        .args(["--norc", "--noprofile", "-i"])
        .env("PS1", "> ")
        .env("NO_COLOR", "1");
    let mut shell = Terminal::start(&mut command);
    // The quotes keep what is awaited from being what was typed.
    let script = "trap 'echo inter\"\"rupted; exit 9' INT; trap 'echo res\"\"umed' CONT; \
                  echo sta\"\"rted; while :; do sleep 0.1; done";
    let observer = env!("CARGO_BIN_EXE_observer");
    shell.type_in(&format!(
        "{observer} run --quiet --backend {backend} -- bash -c '{}'\n",
        script.replace('\'', r"'\''")
    ));
    shell.await_text("started");
    shell.type_in("\x1a");
    shell.await_text("Stopped");
    shell.type_in("echo shell is he\"\"re\n");
    shell.await_text("shell is here");
    shell.type_in("fg\n");
    // The shell hands the terminal over before it resumes its job.
    shell.await_text("resumed");
    shell.type_in("\x03");
    shell.await_text("interrupted");
    shell.type_in("echo sta\"\"tus $?.\n");
    shell.await_text("status 9.");
}
