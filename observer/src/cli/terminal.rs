//! Our lines on a terminal that the observed command draws on.
//!
//! Owns the manners: while the command has the terminal in raw mode, as Codex and its like do,
//! nothing of ours is written into its picture. The lines come when the command gives the
//! terminal back.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::AsFd;

use nix::sys::termios::{LocalFlags, OutputFlags, tcgetattr};

/// So many bytes are held back at most; the oldest lines go first.
const HELD_BYTES: usize = 256 << 10;

/// A writer to `terminal` that waits while something else draws on it.
#[derive(Debug)]
pub(super) struct Courteous<T: Write + AsFd> {
    terminal: T,
    held: Held,
}

impl<T: Write + AsFd> Courteous<T> {
    /// Writes to `terminal`; where it is none, as it comes.
    pub(super) fn new(terminal: T) -> Self {
        Self {
            terminal,
            held: Held::default(),
        }
    }

    /// Whether a program reads the terminal key by key, and so most likely draws on it.
    fn is_drawn_on(&self) -> bool {
        tcgetattr(&self.terminal).is_ok_and(|mode| !mode.local_flags.contains(LocalFlags::ICANON))
    }

    fn release(&mut self) -> io::Result<()> {
        let text = self.held.take();
        if text.is_empty() {
            return Ok(());
        }
        let cooked = tcgetattr(&self.terminal)
            .map_or(true, |mode| mode.output_flags.contains(OutputFlags::OPOST));
        if cooked {
            return self.terminal.write_all(&text);
        }
        // A program that was killed leaves the terminal as it was.
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            self.terminal.write_all(line)?;
            self.terminal.write_all(b"\r")?;
        }
        Ok(())
    }
}

impl<T: Write + AsFd> Write for Courteous<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.held.push(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.is_drawn_on() {
            self.release()?;
        }
        self.terminal.flush()
    }
}

impl<T: Write + AsFd> Drop for Courteous<T> {
    /// The command has ended: nobody draws any more.
    fn drop(&mut self) {
        // Nobody is left to be told.
        let _ = self.release();
    }
}

/// Lines that wait, the last [`HELD_BYTES`] of them.
#[derive(Debug, Default)]
struct Held {
    bytes: VecDeque<u8>,
    left_out: u64,
}

impl Held {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        while self.bytes.len() > HELD_BYTES {
            let line = self.bytes.iter().position(|&byte| byte == b'\n');
            self.bytes
                .drain(..line.map_or(self.bytes.len(), |end| end + 1));
            self.left_out += 1;
        }
    }

    fn take(&mut self) -> Vec<u8> {
        let mut text = Vec::new();
        if self.left_out > 0 {
            let left_out = std::mem::take(&mut self.left_out);
            text.extend(
                format!("({left_out} earlier lines left out; --log FILE keeps all)\n").bytes(),
            );
        }
        text.extend(std::mem::take(&mut self.bytes));
        text
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;

    use nix::pty::openpty;
    use nix::sys::termios::{SetArg, cfmakeraw, tcsetattr};

    use super::*;

    #[test]
    fn waits_while_a_program_draws() {
        let pty = openpty(None, None).unwrap();
        let mut screen = File::from(pty.master);
        let terminal = File::from(pty.slave);
        let mode = tcgetattr(&terminal).unwrap();
        let set = |mode| tcsetattr(&terminal, SetArg::TCSANOW, mode).unwrap();
        let mut ours = Courteous::new(terminal.try_clone().unwrap());

        let mut raw = mode.clone();
        cfmakeraw(&mut raw);
        set(&raw);
        ours.write_all(b"one\n").unwrap();
        ours.flush().unwrap();
        (&terminal).write_all(b"PICTURE").unwrap();
        set(&mode);
        ours.write_all(b"two\n").unwrap();
        ours.flush().unwrap();

        let mut seen = [0; 17];
        screen.read_exact(&mut seen).unwrap();
        assert_eq!(&seen, b"PICTUREone\r\ntwo\r\n");
    }

    #[test]
    fn a_file_gets_all_as_it_comes() {
        let file = tempfile::tempfile().unwrap();
        let mut ours = Courteous::new(file.try_clone().unwrap());
        ours.write_all(b"one\n").unwrap();
        ours.flush().unwrap();
        assert_eq!(file.metadata().unwrap().len(), 4);
        ours.write_all(b"two\n").unwrap();
        drop(ours);
        assert_eq!(file.metadata().unwrap().len(), 8);
    }

    #[test]
    fn the_oldest_lines_go_first_and_are_counted() {
        let mut held = Held::default();
        held.push(b"first\n");
        held.push(&[b'x'; HELD_BYTES - 4]);
        held.push(b"\n");
        let text = String::from_utf8(held.take()).unwrap();
        assert!(
            text.starts_with("(1 earlier lines left out"),
            "{}",
            &text[..60]
        );
        assert!(text.ends_with("xxx\n"));
        assert_eq!(held.take(), b"");
    }
}
