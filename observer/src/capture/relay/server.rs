//! The server's own start: its standard streams, its signal mask, and nothing that it would not
//! have had from the host.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::SigSet;
use nix::sys::socket::{SockaddrStorage, getsockname};

use super::StartError;
use super::describe::Description;
use crate::capture::Pid;

/// The server, and the relay's ends of its standard streams.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) process: Process,
    pub(super) description: Description,
    pub(super) stdio: Stdios,
}

/// The relay's ends.
#[derive(Debug)]
pub(super) struct Stdios {
    pub(super) to_server: OwnedFd,
    pub(super) from_server: OwnedFd,
}

/// A handle on the server's process, in the front (its parent) and in the passer.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) pid: nix::unistd::Pid,
    /// Names the process for good, where the kernel has such a thing.
    #[cfg(target_os = "linux")]
    handle: Option<OwnedFd>,
}

/// Executes the server with `mask` as its signal mask.
pub(super) fn start(
    program: OsString,
    args: Vec<OsString>,
    mask: SigSet,
) -> Result<Server, StartError> {
    let pair = StartError::system("open a pipe for the server");
    let (its_stdin, to_server) = pair_like(io::stdin().as_fd()).map_err(pair)?;
    let pair = StartError::system("open a pipe for the server");
    let (its_stdout, from_server) = pair_like(io::stdout().as_fd())
        .map(|(reader, writer)| (writer, reader))
        .map_err(pair)?;
    let mut command = Command::new(&program);
    command.args(&args);
    command
        .stdin(Stdio::from(its_stdin))
        .stdout(Stdio::from(its_stdout));
    // SAFETY: between fork and exec, sets a mask, which is allowed there; nothing is allocated.
    unsafe {
        command.pre_exec(move || Ok(mask.thread_set_mask()?));
    }
    let child = command.spawn().map_err(|source| StartError::Server {
        program: program.clone(),
        source,
    })?;
    let pid = Pid(child.id());
    let mut description = Description::of(pid);
    description.argv = [program]
        .into_iter()
        .chain(args)
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    Ok(Server {
        process: Process::new(pid),
        description,
        stdio: Stdios {
            to_server,
            from_server,
        },
    })
}

impl Process {
    /// Of a child that has not been waited for.
    fn new(pid: Pid) -> Self {
        let pid = nix::unistd::Pid::from_raw(pid.0.cast_signed());
        Self {
            pid,
            #[cfg(target_os = "linux")]
            handle: handle(pid),
        }
    }

    /// Kills it on behalf of a front that was killed, from the passer, which is not its parent.
    pub(super) fn kill(&self) {
        #[cfg(target_os = "linux")]
        if let Some(handle) = &self.handle {
            use std::os::fd::AsRawFd;
            let none = std::ptr::null::<libc::siginfo_t>();
            // SAFETY: the descriptor is open, and the other arguments are plain values.
            unsafe {
                libc::syscall(
                    libc::SYS_pidfd_send_signal,
                    handle.as_raw_fd(),
                    libc::SIGKILL,
                    none,
                    0,
                )
            };
            return;
        }
        // Without a handle the number alone must do: the front died this moment, and pids come
        // round again only after all others.
        let _ = nix::sys::signal::kill(self.pid, nix::sys::signal::Signal::SIGKILL);
    }
}

#[cfg(target_os = "linux")]
fn handle(pid: nix::unistd::Pid) -> Option<OwnedFd> {
    // SAFETY: plain values in, a new descriptor or -1 out.
    let handle = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) };
    let handle = RawFd::try_from(handle).ok().filter(|fd| *fd >= 0)?;
    // SAFETY: the kernel has just made this descriptor, and nobody else knows it.
    Some(unsafe { OwnedFd::from_raw_fd(handle) })
}

/// A pair (reader, writer) of the kind that the host has chosen: a socket pair or a pipe.
/// Programs notice the difference (Node writes to pipes and sockets in different ways).
fn pair_like(host: BorrowedFd<'_>) -> io::Result<(OwnedFd, OwnedFd)> {
    use std::os::fd::AsRawFd;
    if getsockname::<SockaddrStorage>(host.as_raw_fd()).is_ok() {
        let (one, other) = UnixStream::pair()?;
        return Ok((one.into(), other.into()));
    }
    let (reader, writer) = io::pipe()?;
    Ok((reader.into(), writer.into()))
}

/// The descriptors beyond stdio that this process was started with, and the server will be: a
/// host's extra channels. To be called before anything is opened.
pub(super) fn inherited_descriptors() -> Vec<RawFd> {
    let numbers: Vec<RawFd> = fs::read_dir("/dev/fd")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|number| *number > 2)
        .collect();
    let passes_exec = |number: &RawFd| {
        // SAFETY: borrowed for a call that answers EBADF where it is not open (the listing's own).
        let fd = unsafe { BorrowedFd::borrow_raw(*number) };
        fcntl(fd, FcntlArg::F_GETFD)
            .is_ok_and(|flags| !FdFlag::from_bits_retain(flags).contains(FdFlag::FD_CLOEXEC))
    };
    numbers.into_iter().filter(passes_exec).collect()
}

/// Closes them here: only the server shall hold them, so that their end is seen when it ends.
pub(super) fn close(inherited: &[RawFd]) {
    for number in inherited {
        // SAFETY: it came from the process that started this one, so nobody here owns it.
        drop(unsafe { OwnedFd::from_raw_fd(*number) });
    }
}
