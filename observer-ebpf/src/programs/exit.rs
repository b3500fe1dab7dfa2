//! The return of a system call: which bytes moved, on which stream, in which direction.
//!
//! Everything is decided at the return, where the kernel says how much really went: short writes,
//! `EAGAIN` and `EPIPE` need no thought, and nothing is remembered between entry and return.

use aya_ebpf::EbpfContext;
use aya_ebpf::macros::{raw_tracepoint, tracepoint};
use aya_ebpf::programs::{RawTracePointContext, TracePointContext};
use aya_log_ebpf::warn;
use observer_ebpf::syscall::Op;
use observer_ebpf::wire::{MAX_KEYS, StreamKey, Transfer, kind, loss, stream_kind};

use crate::content::{Cursor, Sum, has_room, message};
use crate::counters::count;
use crate::file::{File, Target};
use crate::kernel::{config, current_registers, current_task, current_tgid, offset, op, read};
use crate::net;
use crate::ring::{emit_event, header};
use crate::scope;
use crate::stream::Stream;

const EPIPE: i64 = -32;
const ECONNRESET: i64 = -104;

/// A read with this flag leaves the bytes where they are.
const MSG_PEEK: u64 = 2;

/// A system call that has returned.
#[derive(Clone, Copy)]
struct Call {
    registers: u64,
    returned: i64,
}

impl Call {
    #[inline(always)]
    fn number(self) -> Option<u32> {
        read::<u32>(self.registers, config!(registers.number))
    }

    /// An argument, from the registers: they still hold it.
    #[inline(always)]
    fn argument<const N: usize>(self) -> Option<u64> {
        read::<u64>(self.registers, config!(registers.arguments[N]))
    }

    #[inline(always)]
    fn fd<const N: usize>(self) -> Option<i32> {
        self.argument::<N>().map(|fd| fd as i32)
    }

    /// How many bytes or messages moved.
    #[inline(always)]
    fn moved(self) -> u64 {
        if self.returned > 0 {
            self.returned as u64
        } else {
            0
        }
    }
}

/// `sys_exit(registers, returned)`
#[raw_tracepoint(tracepoint = "sys_exit")]
pub(crate) fn sys_exit(ctx: RawTracePointContext) -> i32 {
    returned(
        &ctx,
        Call {
            registers: ctx.arg(0),
            returned: ctx.arg(1),
        },
    );
    0
}

/// Where `long ret` is in the event `raw_syscalls:sys_exit` (its `format` in tracefs; the same since
/// Linux 2.6.35).
const EVENT_RET: usize = 16;

/// The event `raw_syscalls:sys_exit`, for kernels that may take the CPU from the program above: while
/// it waits to go on, the kernel skips it for everybody else on that CPU. From the program of an event
/// the CPU is never taken.
#[tracepoint(category = "raw_syscalls", name = "sys_exit")]
pub(crate) fn sys_exit_event(ctx: TracePointContext) -> u32 {
    // SAFETY: the event has a long there.
    if let Ok(value) = unsafe { ctx.read_at::<i64>(EVENT_RET) } {
        returned(
            &ctx,
            Call {
                registers: current_registers(),
                returned: value,
            },
        );
    }
    0
}

#[inline(always)]
fn returned(ctx: &impl EbpfContext, call: Call) -> Option<()> {
    if call.returned < 0 && call.returned != EPIPE && call.returned != ECONNRESET {
        return None;
    }
    let op = op(call.number()?);
    if op == Op::None as u8 {
        return None;
    }
    scope::current()?;
    if is_32_bit() {
        return None;
    }
    let op = if op == Op::Vmsplice as u8 {
        direction(call)?
    } else {
        op
    };
    if op <= Op::Sendmmsg as u8 {
        wrote(ctx, call, op)
    } else if op <= Op::Recvmmsg as u8 {
        has_read(call, op)
    } else {
        moved_unseen(call, op)
    }
}

/// A 32-bit program's numbers mean other calls.
#[inline(always)]
fn is_32_bit() -> bool {
    let word = read::<u32>(current_task(), offset!(task_compat)).unwrap_or(0);
    word & config!(registers.compat_mask) != 0
}

#[inline(always)]
fn wrote(ctx: &impl EbpfContext, call: Call, op: u8) -> Option<()> {
    let fd = call.fd::<0>()?;
    let target = File::of(fd)?.target()?;
    let bytes = if op == Op::Sendmmsg as u8 {
        Sum::of(call.argument::<1>()?, call.moved())?.bytes
    } else {
        call.moved()
    };
    if let Target::Internet { sock, family } = target {
        return if bytes > 0 {
            net::sent(sock, family, bytes, destination(call, op).unwrap_or(0))
        } else {
            None
        };
    }
    let stream = Stream::written_to(&target)?;
    if call.returned < 0 {
        return refused(&stream, fd);
    }
    if bytes == 0 {
        return None;
    }
    let offset = stream.advance_written(bytes);
    count!(seen, bytes);
    if stream.is_given_up() {
        count!(filtered, bytes);
        return None;
    }
    let transfer = stream.transfer(kind::CONTENT, 0, offset, fd);
    let lost = if let Some(cursor) = cursor(call, op, transfer, bytes) {
        cursor.copy_content()?
    } else {
        // The message header itself could not be read.
        count!(unreadable, bytes);
        Stream::lose(stream.key, bytes, loss::UNREADABLE);
        bytes
    };
    if lost > 0 {
        warn!(
            ctx,
            "{} of {} bytes lost at {} of {}", lost, bytes, offset, stream.key.object
        );
    }
    Some(())
}

/// Where the bytes of a call are in the caller's memory.
#[inline(always)]
fn cursor(call: Call, op: u8, transfer: Transfer, bytes: u64) -> Option<Cursor> {
    let pointer = call.argument::<1>()?;
    if op == Op::Write as u8 || op == Op::Sendto as u8 || op == Op::Read as u8 {
        Some(Cursor::buffer(transfer, pointer, bytes))
    } else if op == Op::Sendmsg as u8 {
        let message = message(pointer)?;
        Some(Cursor::vector(
            transfer,
            message.iov,
            message.iov_len,
            bytes,
        ))
    } else if op == Op::Sendmmsg as u8 {
        Some(Cursor::messages(transfer, pointer, call.moved(), bytes))
    } else {
        Some(Cursor::vector(
            transfer,
            pointer,
            call.argument::<2>()?,
            bytes,
        ))
    }
}

/// The address that a call named, as a pointer into the caller's memory.
#[inline(always)]
fn destination(call: Call, op: u8) -> Option<u64> {
    if op == Op::Sendto as u8 {
        call.argument::<4>()
    } else if op == Op::Sendmsg as u8 || op == Op::Sendmmsg as u8 {
        message(call.argument::<1>()?).map(|message| message.name)
    } else {
        None
    }
}

#[inline(always)]
fn refused(stream: &Stream, fd: i32) -> Option<()> {
    if !stream.is_given_up() {
        emit_event(stream.transfer(kind::REFUSED, 0, 0, fd));
    }
    Some(())
}

#[inline(always)]
fn has_read(call: Call, op: u8) -> Option<()> {
    if call.returned < 0 || flags(call, op)? & MSG_PEEK != 0 {
        return None;
    }
    let fd = call.fd::<0>()?;
    let target = File::of(fd)?.target()?;
    if let Target::Terminal(device) = target {
        return keys(call, op, device, fd);
    }
    let stream = Stream::read_from(&target)?;
    let (bytes, ended) = if op == Op::Recvmmsg as u8 {
        let sum = Sum::of(call.argument::<1>()?, call.moved())?;
        (sum.bytes, sum.empty > 0)
    } else {
        (call.moved(), call.returned == 0 && wanted_bytes(call, op)?)
    };
    read_up(&stream, bytes, ended, fd)
}

/// Reports that bytes were read, or that there was nothing left to read.
#[inline(always)]
fn read_up(stream: &Stream, bytes: u64, ended: bool, fd: i32) -> Option<()> {
    let end = stream.advance_read(bytes);
    if stream.is_given_up() {
        return None;
    }
    if bytes > 0 {
        emit_event(stream.transfer(kind::READ, 0, end, fd));
    }
    if ended {
        emit_event(stream.transfer(kind::EOF, 0, end, fd));
    }
    Some(())
}

/// The flags of a receiving call.
#[inline(always)]
fn flags(call: Call, op: u8) -> Option<u64> {
    if op == Op::Recvmsg as u8 {
        call.argument::<2>()
    } else if op == Op::Recvfrom as u8 || op == Op::Recvmmsg as u8 {
        call.argument::<3>()
    } else {
        Some(0)
    }
}

/// Whether a call that returned nothing had asked for something: only then it met the end.
#[inline(always)]
fn wanted_bytes(call: Call, op: u8) -> Option<bool> {
    if op == Op::Readv as u8 {
        Some(has_room(call.argument::<1>()?, call.argument::<2>()?))
    } else if op == Op::Recvmsg as u8 {
        let message = message(call.argument::<1>()?)?;
        Some(has_room(message.iov, message.iov_len))
    } else {
        Some(call.argument::<2>()? > 0)
    }
}

/// Reports what was read from a terminal; user space looks for Esc and Ctrl-C and drops the rest.
#[inline(always)]
fn keys(call: Call, op: u8, device: u32, fd: i32) -> Option<()> {
    if call.returned == 0 || (op != Op::Read as u8 && op != Op::Readv as u8) {
        return None;
    }
    let bytes = if call.moved() > u64::from(MAX_KEYS) {
        u64::from(MAX_KEYS)
    } else {
        call.moved()
    };
    let transfer = Transfer {
        header: header(kind::KEYS, 0),
        stream: StreamKey {
            object: u64::from(device),
            scope: 0,
            kind: stream_kind::TERMINAL,
        },
        offset: 0,
        lost: 0,
        pid: current_tgid(),
        fd,
        loss: loss::NONE,
        generation: 0,
    };
    cursor(call, op, transfer, bytes)?.copy_keys()
}

/// vmsplice writes or reads, as its descriptor is open for. Its bytes are in the caller's memory.
#[inline(always)]
fn direction(call: Call) -> Option<u8> {
    let writes = File::of(call.fd::<0>()?)?.is_writable();
    Some(if writes {
        Op::Writev as u8
    } else {
        Op::Readv as u8
    })
}

/// splice, tee, sendfile: bytes that move without passing through the caller's memory.
#[inline(always)]
fn moved_unseen(call: Call, op: u8) -> Option<()> {
    if op == Op::Splice as u8 {
        filled(call, call.fd::<2>()?);
        drained(call, call.fd::<0>()?)
    } else if op == Op::Tee as u8 {
        filled(call, call.fd::<1>()?)
    } else {
        filled(call, call.fd::<0>()?)
    }
}

/// Bytes went into a stream unseen.
#[inline(always)]
fn filled(call: Call, fd: i32) -> Option<()> {
    let target = File::of(fd)?.target()?;
    let bytes = call.moved();
    if let Target::Internet { sock, family } = target {
        return if bytes > 0 {
            net::sent(sock, family, bytes, 0)
        } else {
            None
        };
    }
    let stream = Stream::written_to(&target)?;
    if call.returned < 0 {
        return refused(&stream, fd);
    }
    if bytes == 0 {
        return None;
    }
    let offset = stream.advance_written(bytes);
    count!(seen, bytes);
    if stream.is_given_up() {
        count!(filtered, bytes);
        return None;
    }
    count!(unreadable, bytes);
    emit_event(stream.transfer(kind::UNSEEN, bytes as u32, offset, fd));
    Some(())
}

/// Bytes left a stream unseen.
#[inline(always)]
fn drained(call: Call, fd: i32) -> Option<()> {
    if call.returned < 0 {
        return None;
    }
    let target = File::of(fd)?.target()?;
    let stream = Stream::read_from(&target)?;
    read_up(&stream, call.moved(), call.returned == 0, fd)
}
