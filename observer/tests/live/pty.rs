//! A program on a terminal of its own: what it shows, and keys for it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use nix::pty::{Winsize, openpty};

/// See the module.
pub(crate) struct Terminal {
    child: Child,
    keys: File,
    output: Receiver<Vec<u8>>,
    /// The output since what was waited for last, as it was written.
    seen: String,
    /// What the terminal shows. A program that draws writes only the cells that change, so a text
    /// on the screen need not stand in its output.
    screen: vt100::Parser,
}

/// One limit for all that is waited for: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

impl Terminal {
    /// Starts a command as the first of a session, with a terminal of 80x24.
    pub(crate) fn start(command: &mut Command) -> Self {
        let size = Winsize {
            ws_row: 24,
            ws_col: 80,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let pty = openpty(Some(&size), None).unwrap();
        let terminal: OwnedFd = pty.slave;
        let stdio = || Stdio::from(terminal.try_clone().unwrap());
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
        // The command has them: its end must be the terminal's.
        command.stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let keys = File::from(pty.master);
        let mut output = keys.try_clone().unwrap();
        let (sender, received) = mpsc::channel();
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
            output: received,
            seen: String::new(),
            screen: vt100::Parser::new(size.ws_row, size.ws_col, 0),
        }
    }

    pub(crate) fn type_in(&mut self, text: &str) {
        self.keys.write_all(text.as_bytes()).unwrap();
    }

    /// Waits until `text` is written, after what was waited for before. What was written before
    /// it.
    pub(crate) fn await_text(&mut self, text: &str) -> String {
        let patience = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.seen.find(text) {
                let rest = self.seen.split_off(at + text.len());
                let mut before = std::mem::replace(&mut self.seen, rest);
                before.truncate(at);
                return before;
            }
            if !self.receive(patience) {
                panic!("{text:?} was not written:\n{}", self.seen);
            }
        }
    }

    /// Waits until the screen shows `text` in one line.
    pub(crate) fn await_shown(&mut self, text: &str) {
        let patience = Instant::now() + PATIENCE;
        loop {
            let shown = self.screen.screen().contents();
            if shown.lines().any(|line| line.contains(text)) {
                return;
            }
            if !self.receive(patience) {
                panic!("no {text:?} on the screen:\n{shown}");
            }
        }
    }

    /// Takes what is written next. Whether anything was, until then.
    fn receive(&mut self, until: Instant) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        let Ok(bytes) = self.output.recv_timeout(left) else {
            return false;
        };
        self.screen.process(&bytes);
        self.seen.push_str(&String::from_utf8_lossy(&bytes));
        true
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Its end hangs the terminal up, which ends what it has started.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
