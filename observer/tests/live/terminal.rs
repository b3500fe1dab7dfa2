//! `run` under a shell with job control: the terminal's signals reach the command as without us.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use nix::pty::openpty;

use crate::observer::backends;

/// An interactive shell on a terminal of its own.
struct Shell {
    child: Child,
    keys: File,
    screen: Receiver<Vec<u8>>,
    seen: String,
}

impl Shell {
    fn start() -> Self {
        let pty = openpty(None, None).unwrap();
        let terminal: OwnedFd = pty.slave;
        let stdio = || Stdio::from(terminal.try_clone().unwrap());
        let mut command = Command::new("bash");
        command
            .args(["--norc", "--noprofile", "-i"])
            .env("PS1", "> ")
            .env("NO_COLOR", "1");
        command.stdin(stdio()).stdout(stdio()).stderr(stdio());
        let descriptor = terminal.as_raw_fd();
        let prepare = move || {
            nix::unistd::setsid()?;
            // SAFETY: the descriptor is a terminal, and this request takes a number.
            match unsafe { libc::ioctl(descriptor, libc::TIOCSCTTY, 0) } {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        };
        // SAFETY: two system calls, which a forked child may make.
        let child = unsafe { command.pre_exec(prepare) }.spawn().unwrap();
        let keys = File::from(pty.master);
        let mut output = keys.try_clone().unwrap();
        let (sender, screen) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            // The master reads an error once the last slave is closed.
            while let Ok(read @ 1..) = output.read(&mut buffer) {
                if sender.send(buffer[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            keys,
            screen,
            seen: String::new(),
        }
    }

    fn type_in(&mut self, text: &str) {
        self.keys.write_all(text.as_bytes()).unwrap();
    }

    /// Waits until the screen shows `text`, after what was waited for before.
    fn await_text(&mut self, text: &str) {
        let patience = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(at) = self.seen.find(text) {
                self.seen.drain(..at + text.len());
                return;
            }
            let left = patience.saturating_duration_since(Instant::now());
            match self.screen.recv_timeout(left) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => panic!("no {text:?} on the screen:\n{}", self.seen),
            }
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // Its end hangs the terminal up, which ends what it has started.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn the_terminals_keys_reach_the_command_and_the_shell_gets_its_job_back() {
    for backend in backends() {
        a_job_under(backend);
    }
}

fn a_job_under(backend: &str) {
    let mut shell = Shell::start();
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
