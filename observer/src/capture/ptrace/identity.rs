//! What a process runs, from `/proc`.

use std::fs;

use crate::capture::event::Pid;

/// How often `/proc` counts a second (`USER_HZ`), in every Linux architecture that we know.
const NANOS_PER_TICK: u64 = 1_000_000_000 / 100;

/// Its executable.
pub(super) fn exe(pid: Pid) -> Option<String> {
    let path = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let path = path.to_string_lossy();
    Some(path.strip_suffix(" (deleted)").unwrap_or(&path).to_owned())
}

/// Its arguments.
pub(super) fn argv(pid: Pid) -> Vec<String> {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let Some(words) = words.strip_suffix(b"\0") else {
        return Vec::new();
    };
    words
        .split(|&byte| byte == 0)
        .map(|word| String::from_utf8_lossy(word).into())
        .collect()
}

/// When it started, in nanoseconds since boot.
pub(super) fn start(pid: Pid) -> Option<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses, and may hold some itself.
    let end = memchr::memrchr(b')', &stat)?;
    let fields = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    let ticks: u64 = fields.split_ascii_whitespace().nth(19)?.parse().ok()?;
    Some(ticks.saturating_mul(NANOS_PER_TICK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_as_it_was_started() {
        let own = Pid(std::process::id());
        let exe = exe(own).unwrap();
        assert_eq!(exe, std::env::current_exe().unwrap().to_string_lossy());
        assert_eq!(argv(own), std::env::args().collect::<Vec<_>>());
        assert!(start(own).unwrap() > 0);
        let nobody = Pid(u32::MAX);
        assert_eq!(
            (super::exe(nobody), argv(nobody), start(nobody)),
            (None, vec![], None)
        );
    }
}
