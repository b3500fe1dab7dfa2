//! The requests of `ptrace(2)` and `waitid(2)` as the kernel takes them, one function each.
//!
//! Owns all `unsafe` of the backend but that of the tracee's memory and descriptors. Remembers
//! nothing. Real-time signals are plain numbers here: nix cannot name them.

use std::fmt;
use std::mem::MaybeUninit;
use std::ptr;

use nix::Result;
use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::unistd;

use super::info::SyscallInfo;

/// A thread, by the number that the kernel gives it in our PID namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Tid(pub(super) i32);

impl Tid {
    pub(super) fn raw(self) -> unistd::Pid {
        unistd::Pid::from_raw(self.0)
    }
}

impl fmt::Display for Tid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What all tracees report: the start of what they fork and clone (which is then traced from its
/// first instruction), what they execute, and system calls apart from a real SIGTRAP. Never
/// `PTRACE_O_EXITKILL`: they live on when we die.
fn options() -> Options {
    Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEEXEC
}

/// Has the kernel send this process no SIGCHLD for stops, of which every system call makes two.
/// Those for ends still come. A program that we execute gets it as it was.
pub(super) fn silence_stops() -> Result<()> {
    let action = SigAction::new(SigHandler::SigDfl, SaFlags::SA_NOCLDSTOP, SigSet::empty());
    // SAFETY: the default action installs no handler.
    unsafe { sigaction(Signal::SIGCHLD, &action) }.map(drop)
}

/// Makes this thread the tracer of `tid`, which goes on running.
pub(super) fn seize(tid: Tid) -> Result<()> {
    ptrace::seize(tid.raw(), options())
}

/// Has `tid` stop soon, with a report that no signal causes.
pub(super) fn interrupt(tid: Tid) -> Result<()> {
    ptrace::interrupt(tid.raw())
}

/// Lets a stopped thread go on to its next system call, delivering `signal` where it is not 0.
pub(super) fn resume(tid: Tid, signal: i32) -> Result<()> {
    request(libc::PTRACE_SYSCALL, tid, signal)
}

/// Leaves a thread in its group-stop, and has it report when that ends.
pub(super) fn listen(tid: Tid) -> Result<()> {
    request(libc::PTRACE_LISTEN, tid, 0)
}

#[cfg(target_env = "musl")]
type Request = libc::c_int;
#[cfg(not(target_env = "musl"))]
type Request = libc::c_uint;

fn request(request: Request, tid: Tid, data: i32) -> Result<()> {
    let data = ptr::without_provenance_mut::<libc::c_void>(data.unsigned_abs() as usize);
    // SAFETY: PTRACE_SYSCALL and PTRACE_LISTEN take a number, and touch no memory of ours.
    let result = unsafe { libc::ptrace(request, tid.0, ptr::null_mut::<libc::c_void>(), data) };
    Errno::result(result).map(drop)
}

/// What a thread that stands at the entry or exit of a system call is about to do, or has done.
pub(super) fn syscall_info(tid: Tid) -> Result<SyscallInfo> {
    /// `PTRACE_GET_SYSCALL_INFO` of `include/uapi/linux/ptrace.h` (Linux 5.3).
    const GET_SYSCALL_INFO: Request = 0x420e;
    let mut buffer = [0_u64; SyscallInfo::WORDS];
    let size = ptr::without_provenance_mut::<libc::c_void>(size_of_val(&buffer));
    // SAFETY: the kernel writes at most `size` bytes to the buffer, which has as many.
    let result = unsafe { libc::ptrace(GET_SYSCALL_INFO, tid.0, size, buffer.as_mut_ptr()) };
    Errno::result(result)?;
    Ok(SyscallInfo::decode(&buffer))
}

/// The message of an event: the new thread of a fork or clone, the former tid of an exec.
pub(super) fn event_message(tid: Tid) -> Result<i64> {
    ptrace::getevent(tid.raw())
}

/// The signal that a thread stopped for.
pub(super) fn signal_info(tid: Tid) -> Result<libc::siginfo_t> {
    ptrace::getsiginfo(tid.raw())
}

/// A word of a tracee's memory.
pub(super) fn peek(tid: Tid, address: u64) -> Result<u64> {
    let address = usize::try_from(address).map_err(|_| Errno::EFAULT)?;
    let word = ptrace::read(tid.raw(), ptr::without_provenance_mut(address))?;
    Ok(word.cast_unsigned())
}

/// Whose reports to wait for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Whose {
    /// Any tracee's.
    Any,
    /// This one's.
    One(Tid),
}

/// Which reports, and whether to wait until there is one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait(libc::c_int);

impl Wait {
    /// Stops and ends.
    pub(super) const ALL: Self = Self(libc::WSTOPPED | libc::WEXITED);
    /// Stops only: somebody else waits for the end.
    pub(super) const STOPS: Self = Self(libc::WSTOPPED);

    /// Without waiting.
    pub(super) const fn now(self) -> Self {
        Self(self.0 | libc::WNOHANG)
    }
}

/// What `waitid` reported of a thread: `si_code` and `si_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) tid: Tid,
    pub(super) code: i32,
    pub(super) status: i32,
}

/// The next report of a tracee of this thread, which stays unread.
///
/// A stop that was waited for forgets its signal: if the tracer then dies before it resumes the
/// tracee, the signal is lost. One that was only looked at keeps it (`wait_task_stopped` and
/// `ptrace_stop`, Linux 6.12), and resuming removes it as well.
///
/// # Errors
///
/// `ECHILD` where there is no such tracee, `EINTR` where a signal came first.
pub(super) fn look(whose: Whose, which: Wait) -> Result<Option<Report>> {
    wait(whose, which.0 | libc::WNOWAIT)
}

/// Reads the report of a stop that carries no signal. Of an exec it must be read: where another
/// thread than the first has executed the program, the kernel refuses all requests until then
/// (`looks_like_a_spurious_pid` in `kernel/ptrace.c`, Linux 5.13).
pub(super) fn take(tid: Tid) -> Result<()> {
    wait(Whose::One(tid), libc::WSTOPPED | libc::WNOHANG).map(drop)
}

/// Takes the end of a thread off the kernel's table, so that its parent gets to know.
pub(super) fn reap(tid: Tid) -> Result<()> {
    wait(Whose::One(tid), libc::WEXITED | libc::WNOHANG).map(drop)
}

fn wait(whose: Whose, options: libc::c_int) -> Result<Option<Report>> {
    let (kind, id) = match whose {
        Whose::Any => (libc::P_ALL, 0),
        Whose::One(tid) => (libc::P_PID, tid.0.cast_unsigned()),
    };
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    // Threads and processes alike; of this thread only: others have children of their own.
    let options = options | libc::__WALL | libc::__WNOTHREAD;
    // SAFETY: the kernel writes one siginfo_t to valid memory.
    let result = unsafe { libc::waitid(kind, id, info.as_mut_ptr(), options) };
    Errno::result(result)?;
    // SAFETY: all zeros are a valid siginfo_t, and the kernel wrote it or left it.
    let info = unsafe { info.assume_init() };
    // SAFETY: waitid fills in the members of a SIGCHLD, or leaves them zero.
    let tid = Tid(unsafe { info.si_pid() });
    // SAFETY: as above.
    let status = unsafe { info.si_status() };
    Ok((tid.0 != 0).then_some(Report {
        tid,
        code: info.si_code,
        status,
    }))
}
