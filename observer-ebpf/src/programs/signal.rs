//! Signals that ask a watched process to stop, and who sent them.

use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;
use observer_ebpf::wire::{Signal, kind};

use crate::kernel::{current_tgid, offset, read};
use crate::ring::{emit_event, header};
use crate::scope;

const SIGHUP: i32 = 1;
const SIGINT: i32 = 2;
const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;

/// `TRACE_SIGNAL_DELIVERED` of `include/trace/events/signal.h`: neither ignored nor a repetition.
const DELIVERED: i32 = 0;

/// `SEND_SIG_NOINFO` of `include/linux/sched/signal.h`, in place of a pointer: sent by a process.
const SEND_SIG_NOINFO: u64 = 0;
/// `SEND_SIG_PRIV`, in place of a pointer: made by the kernel, such as a terminal's Ctrl-C.
const SEND_SIG_PRIV: u64 = 1;

/// `signal_generate(sig, info, task, group, result)`
#[raw_tracepoint(tracepoint = "signal_generate")]
pub(crate) fn signal_generate(ctx: RawTracePointContext) -> i32 {
    generated(ctx.arg(0), ctx.arg(1), ctx.arg(2), ctx.arg(4));
    0
}

#[inline(always)]
fn generated(signal: i32, info: u64, task: u64, result: i32) -> Option<()> {
    if !matches!(signal, SIGHUP | SIGINT | SIGKILL | SIGTERM) || result != DELIVERED {
        return None;
    }
    let pid = read::<u32>(task, offset!(task_tgid))?;
    if !scope::contains(pid) {
        return None;
    }
    let sender = if sent_by_process(info) {
        current_tgid()
    } else {
        0
    };
    emit_event(Signal {
        header: header(kind::SIGNAL, 0),
        pid,
        sender,
        signal: signal as u32,
        padding: 0,
    });
    Some(())
}

/// Whether a process sent it: `SI_FROMUSER` of `include/uapi/asm-generic/siginfo.h`.
#[inline(always)]
fn sent_by_process(info: u64) -> bool {
    match info {
        SEND_SIG_NOINFO => true,
        SEND_SIG_PRIV => false,
        info => read::<i32>(info, offset!(siginfo_code)).is_some_and(|code| code <= 0),
    }
}
