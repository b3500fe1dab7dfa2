//! What can be said about a process from outside it.

use crate::capture::{CaptureEvent, Pid, ProcessChange, ProcessEvent};

/// A process, as far as it is known.
#[derive(Clone, Debug)]
pub(super) struct Description {
    pub(super) pid: Pid,
    pub(super) exe: Option<String>,
    pub(super) argv: Vec<String>,
}

impl Description {
    /// What the system tells about `pid` now.
    pub(super) fn of(pid: Pid) -> Self {
        Self {
            pid,
            exe: exe(pid),
            argv: argv(pid),
        }
    }
}

impl Description {
    /// What has to be said where the process has executed another program since.
    pub(super) fn news(self) -> Option<CaptureEvent> {
        let now = Self::of(self.pid);
        (now.exe.is_some() && now.exe != self.exe).then(|| {
            CaptureEvent::Process(ProcessEvent {
                pid: self.pid,
                change: ProcessChange::Exec {
                    exe: now.exe,
                    argv: now.argv,
                },
            })
        })
    }
}

/// The process that started this one.
pub(super) fn parent() -> Pid {
    Pid(std::os::unix::process::parent_id())
}

#[cfg(target_os = "linux")]
fn exe(pid: Pid) -> Option<String> {
    let path = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    Some(path.to_string_lossy().into_owned())
}

#[cfg(target_os = "linux")]
fn argv(pid: Pid) -> Vec<String> {
    let joined = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let joined = joined.strip_suffix(b"\0").unwrap_or(&joined);
    joined
        .split(|byte| *byte == 0)
        .filter(|_| !joined.is_empty())
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

#[cfg(target_vendor = "apple")]
fn exe(pid: Pid) -> Option<String> {
    let mut path = [0_u8; libc::PROC_PIDPATHINFO_MAXSIZE as usize];
    let size = u32::try_from(path.len()).ok()?;
    // SAFETY: the buffer is valid for `size` bytes, and the call writes no more.
    let length = unsafe { libc::proc_pidpath(pid.0.cast_signed(), path.as_mut_ptr().cast(), size) };
    let path = path.get(..usize::try_from(length).ok()?)?;
    (!path.is_empty()).then(|| String::from_utf8_lossy(path).into_owned())
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
fn exe(_pid: Pid) -> Option<String> {
    None
}

#[cfg(not(target_os = "linux"))]
fn argv(_pid: Pid) -> Vec<String> {
    Vec::new()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_known() {
        let this = Description::of(Pid(std::process::id()));
        let exe = std::env::current_exe().unwrap();
        assert_eq!(this.exe.as_deref(), exe.to_str());
        assert_eq!(this.argv, std::env::args().collect::<Vec<_>>());
    }
}
