//! Who is in the middle of a write at this moment, from `/proc`.
//!
//! The probe sees a system call when it returns. A write that blocks has moved bytes by then that
//! nobody has counted yet, and a reader may be ahead of it for as long as it pleases.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use observer_ebpf::syscall::{Arch, Op, TABLE_SIZE, table};

use crate::capture::{Pid, StreamId};

/// A look at all threads of some processes.
#[derive(Debug, Default)]
pub(super) struct Writers {
    /// What they write to, as `/proc/PID/fd` names it. Of a thread that runs nobody can say what
    /// it does: then everything that its process has open counts.
    targets: HashSet<String>,
}

impl Writers {
    /// Looks at these processes; at every process, where there are none.
    pub(super) fn find(pids: &[Pid]) -> Self {
        let mut writers = Self::default();
        let Some(arch) = Arch::host() else {
            return writers;
        };
        let operations = table(arch);
        if pids.is_empty() {
            for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
                let pid = entry.file_name().to_string_lossy().parse::<u32>();
                if pid.is_ok_and(|pid| pid != std::process::id()) {
                    writers.look_at(&entry.path(), &operations);
                }
            }
        }
        for Pid(pid) in pids {
            writers.look_at(&Path::new("/proc").join(pid.to_string()), &operations);
        }
        writers
    }

    /// Whether somebody may be writing to this stream.
    pub(super) fn may_be_writing_to(&self, stream: StreamId) -> bool {
        // A named pipe has a path for a name. Whoever writes to one may write to this one.
        let named = |target: &String| stream.scope != 0 && target.starts_with('/');
        self.targets.contains(&stream.to_string()) || self.targets.iter().any(named)
    }

    fn note(&mut self, fd: &Path) {
        let target = fs::read_link(fd);
        self.targets
            .extend(target.map(|target| target.to_string_lossy().into_owned()));
    }

    fn look_at(&mut self, process: &Path, operations: &[u8; TABLE_SIZE]) {
        let threads = fs::read_dir(process.join("task"))
            .into_iter()
            .flatten()
            .flatten();
        for thread in threads {
            let Ok(call) = fs::read_to_string(thread.path().join("syscall")) else {
                continue;
            };
            match blocked_write(&call, operations) {
                Blocked::In(fd) => self.note(&process.join("fd").join(fd.to_string())),
                Blocked::Unknown => {
                    for fd in fs::read_dir(process.join("fd"))
                        .into_iter()
                        .flatten()
                        .flatten()
                    {
                        self.note(&fd.path());
                    }
                }
                Blocked::No => {}
            }
        }
    }
}

/// What `/proc/PID/task/TID/syscall` says.
#[derive(Debug, PartialEq, Eq)]
enum Blocked {
    /// In a call that writes to this descriptor.
    In(u64),
    /// It runs, and may be in any call.
    Unknown,
    /// In another call, or in none.
    No,
}

/// Reads a line such as `1 0x4 0x7f... 0x1000 0x0 0x0 0x0 0x7ff... 0x7f...`.
fn blocked_write(call: &str, operations: &[u8; TABLE_SIZE]) -> Blocked {
    if call.trim_end() == "running" {
        return Blocked::Unknown;
    }
    let mut words = call.split_whitespace();
    let number = words.next().and_then(|number| number.parse::<usize>().ok());
    let operation = number.and_then(|number| operations.get(number).copied());
    let position = match operation {
        Some(op) if op >= Op::Write as u8 && op <= Op::Sendmmsg as u8 => 0,
        Some(op) if op == Op::Vmsplice as u8 || op == Op::Sendfile as u8 => 0,
        Some(op) if op == Op::Tee as u8 => 1,
        Some(op) if op == Op::Splice as u8 => 2,
        _ => return Blocked::No,
    };
    let argument = words.nth(position).and_then(|word| word.strip_prefix("0x"));
    match argument.and_then(|digits| u64::from_str_radix(digits, 16).ok()) {
        Some(fd) => Blocked::In(fd),
        None => Blocked::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_calls_that_write_count() {
        let operations = table(Arch::X86_64);
        let blocked = |call| blocked_write(call, &operations);
        assert_eq!(
            blocked("1 0x4 0x7f00 0x1000 0x0 0x0 0x0 0x7ffe 0x7f11\n"),
            Blocked::In(4)
        );
        assert_eq!(
            blocked("0 0x4 0x7f00 0x1000 0x0 0x0 0x0 0x7ffe 0x7f11\n"),
            Blocked::No
        );
        assert_eq!(
            blocked("275 0x4 0x0 0x9 0x0 0x0 0x0 0x7ffe 0x7f11\n"),
            Blocked::In(9)
        );
        assert_eq!(blocked("-1 0x7ffe 0x7f11\n"), Blocked::No);
        assert_eq!(blocked("running\n"), Blocked::Unknown);
        assert_eq!(blocked("1 nonsense"), Blocked::Unknown);
    }

    #[test]
    fn a_thread_that_blocks_in_a_write_is_found() {
        use std::io::{Read, Write};
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        let name = fs::read_link(format!(
            "/proc/self/fd/{}",
            std::os::fd::AsRawFd::as_raw_fd(&writer)
        ));
        let name = name.unwrap().to_string_lossy().into_owned();
        let writing = std::thread::spawn(move || writer.write_all(&[0; 1 << 20]));
        let me = [Pid(std::process::id())];
        let found = (0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(2));
            Writers::find(&me).targets.contains(&name)
        });
        let mut all = Vec::new();
        reader.read_to_end(&mut all).unwrap();
        writing.join().unwrap().unwrap();
        assert!(found);
    }
}
