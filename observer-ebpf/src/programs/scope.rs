//! Who is watched: a set of processes that follows fork and exit, or the whole machine.

use aya_ebpf::helpers::{bpf_probe_read_kernel_str_bytes, bpf_probe_read_user_buf};
use aya_ebpf::macros::{map, raw_tracepoint};
use aya_ebpf::maps::HashMap;
use aya_ebpf::programs::RawTracePointContext;
use aya_log_ebpf::{debug, error};
use observer_ebpf::wire::{Exec, MAX_ARGV, Process, kind};

use crate::counters::count;
use crate::kernel::{config, current_task, current_tgid, offset, read};
use crate::ring::{Lost, emit, emit_event, header};

/// The watched processes, by tgid. Unused when the whole machine is watched.
#[map]
static SCOPE: HashMap<u32, u8> = HashMap::with_max_entries(1 << 16, 0);

/// `SIGNAL_GROUP_EXIT` of `include/linux/sched/signal.h`: `group_exit_code` is the status.
const SIGNAL_GROUP_EXIT: u32 = 4;

/// The current process's tgid, where it is watched.
#[inline(always)]
pub(crate) fn current() -> Option<u32> {
    let tgid = current_tgid();
    contains(tgid).then_some(tgid)
}

/// Whether a process is watched.
#[inline(always)]
pub(crate) fn contains(tgid: u32) -> bool {
    if config!(machine) != 0 {
        tgid != config!(observer)
    } else {
        SCOPE.get_ptr(tgid).is_some()
    }
}

/// `sched_process_fork(parent, child)`
#[raw_tracepoint(tracepoint = "sched_process_fork")]
pub(crate) fn process_fork(ctx: RawTracePointContext) -> i32 {
    forked(&ctx, ctx.arg(1));
    0
}

#[inline(always)]
fn forked(ctx: &RawTracePointContext, child: u64) -> Option<()> {
    let parent = current()?;
    let pid = read::<u32>(child, offset!(task_tgid))?;
    if read::<u32>(child, offset!(task_pid))? != pid {
        return None; // a thread
    }
    if config!(machine) == 0 && SCOPE.insert(pid, 1u8, 0).is_err() {
        error!(ctx, "no room to watch {}, a child of {}", pid, parent);
        count!(events_lost, 1);
    }
    debug!(ctx, "{} forked {}", parent, pid);
    emit_event(Process {
        header: header(kind::FORK, 0),
        pid,
        ppid: parent,
        start: read::<u64>(child, offset!(task_start_boottime))?,
        status: 0,
        padding: 0,
    });
    Some(())
}

/// `sched_process_exec(task, old_pid, binprm)`
#[raw_tracepoint(tracepoint = "sched_process_exec")]
pub(crate) fn process_exec(ctx: RawTracePointContext) -> i32 {
    if let Some(pid) = current()
        && emit::<Exec>(|place| describe_exec(place, pid, ctx.arg(2))) == Err(Lost::RingFull)
    {
        count!(events_lost, 1);
    }
    0
}

/// Fills an [`Exec`]; what cannot be read stays empty.
#[inline(always)]
fn describe_exec(place: *mut Exec, pid: u32, binprm: u64) -> bool {
    // SAFETY: the ring reserved room for an Exec, aligned to eight bytes; every field is written
    // or counted as empty before user space sees the record.
    let exec = unsafe { &mut *place };
    exec.header = header(kind::EXEC, 0);
    exec.pid = pid;
    exec.path_len = 0;
    exec.argv_len = 0;
    exec.padding = 0;
    if let Some(filename) = read::<u64>(binprm, offset!(binprm_filename)) {
        // SAFETY: the helper checks the address.
        let path =
            unsafe { bpf_probe_read_kernel_str_bytes(filename as *const u8, &mut exec.path) };
        exec.path_len = path.map_or(0, <[u8]>::len) as u32;
    }
    exec.argv_len = copy_argv(&mut exec.argv).unwrap_or(0);
    true
}

/// Copies the new program's arguments, which the kernel has just put on its stack.
#[inline(always)]
fn copy_argv(argv: &mut [u8; MAX_ARGV as usize]) -> Option<u32> {
    let mm = read::<u64>(current_task(), offset!(task_mm))?;
    let start = read::<u64>(mm, offset!(mm_arg_start))?;
    let end = read::<u64>(mm, offset!(mm_arg_end))?;
    let len = end.wrapping_sub(start);
    let len = if len > u64::from(MAX_ARGV) {
        u64::from(MAX_ARGV)
    } else {
        len
    };
    let room = argv.get_mut(..len as usize)?;
    // SAFETY: the helper checks the address.
    unsafe { bpf_probe_read_user_buf(start as *const u8, room) }.ok()?;
    Some(len as u32)
}

/// `sched_process_exit(task, ...)`
#[raw_tracepoint(tracepoint = "sched_process_exit")]
pub(crate) fn process_exit(ctx: RawTracePointContext) -> i32 {
    exited(&ctx, ctx.arg(0));
    0
}

#[inline(always)]
fn exited(ctx: &RawTracePointContext, task: u64) -> Option<()> {
    let pid = current()?;
    let signal = read::<u64>(task, offset!(task_signal))?;
    if read::<u32>(signal, offset!(signal_live))? != 0 {
        return None; // not the last thread
    }
    // The last two threads may both find themselves the last; only one can remove the process.
    // Where the whole machine is watched, user space drops the second record.
    if config!(machine) == 0 && SCOPE.remove(pid).is_err() {
        return None;
    }
    let leader = read::<u64>(task, offset!(task_group_leader))?;
    let status = if read::<u32>(signal, offset!(signal_flags))? & SIGNAL_GROUP_EXIT != 0 {
        read::<u32>(signal, offset!(signal_group_exit_code))?
    } else {
        read::<u32>(leader, offset!(task_exit_code))?
    };
    debug!(ctx, "{} ended with status {:x}", pid, status);
    emit_event(Process {
        header: header(kind::EXIT, 0),
        pid,
        ppid: 0,
        start: read::<u64>(leader, offset!(task_start_boottime))?,
        status,
        padding: 0,
    });
    Some(())
}
