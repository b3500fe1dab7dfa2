//! Reads of kernel and user memory, at the offsets that user space has found in the kernel's BTF.

use aya_ebpf::helpers;
use observer_ebpf::config::Config;
use observer_ebpf::syscall::{Op, TABLE_SIZE};

/// Replaced by user space before the programs are loaded, and read-only from then on: the
/// verifier knows the values, and drops the code that they switch off.
#[unsafe(no_mangle)]
pub(crate) static CONFIG: Config = Config::UNSET;

/// The operation of every system-call number; replaced by user space like [`CONFIG`].
#[unsafe(no_mangle)]
static SYSCALLS: [u8; TABLE_SIZE] = [u8::MAX; TABLE_SIZE];

/// One value of [`CONFIG`], read such that the compiler cannot fold what it was built with.
macro_rules! config {
    ($($path:tt)+) => {{
        // SAFETY: the place is a valid, aligned field of a static.
        unsafe { core::ptr::read_volatile(&raw const $crate::kernel::CONFIG.$($path)+) }
    }};
}
pub(crate) use config;

/// An offset of the running kernel, by its name in `observer_ebpf::config::Offsets`.
macro_rules! offset {
    ($field:ident) => {
        $crate::kernel::config!(offsets.$field)
    };
}
pub(crate) use offset;

/// What the call with this number does.
#[inline(always)]
pub(crate) fn op(number: u32) -> u8 {
    if number as usize >= TABLE_SIZE {
        return Op::None as u8;
    }
    // SAFETY: the index was checked against the table's size.
    unsafe { core::ptr::read_volatile((&raw const SYSCALLS).cast::<u8>().add(number as usize)) }
}

/// Reads a `T` at `base + offset` in kernel memory; `None` where that faults.
#[inline(always)]
pub(crate) fn read<T: Copy>(base: u64, offset: u32) -> Option<T> {
    // SAFETY: the helper checks the address; every T read here is valid for all bit patterns.
    unsafe { helpers::bpf_probe_read_kernel((base + u64::from(offset)) as *const T) }.ok()
}

/// Reads a `T` at `address` in the current process's memory; `None` where that faults.
#[inline(always)]
pub(crate) fn read_user<T: Copy>(address: u64) -> Option<T> {
    // SAFETY: the helper checks the address; every T read here is valid for all bit patterns.
    unsafe { helpers::bpf_probe_read_user(address as *const T) }.ok()
}

/// The current thread's `struct task_struct`.
#[inline(always)]
pub(crate) fn current_task() -> u64 {
    // SAFETY: the helper has no preconditions.
    unsafe { helpers::bpf_get_current_task() }
}

/// The registers with which the current thread entered the kernel: its `struct pt_regs`.
#[inline(always)]
pub(crate) fn current_registers() -> u64 {
    // SAFETY: neither helper has preconditions but that the task is alive, and the current one is.
    let registers = unsafe { helpers::bpf_task_pt_regs(helpers::bpf_get_current_task_btf()) };
    registers.cast_unsigned()
}

/// The current process's tgid.
#[inline(always)]
pub(crate) fn current_tgid() -> u32 {
    (helpers::bpf_get_current_pid_tgid() >> 32) as u32
}

/// Nanoseconds on `CLOCK_MONOTONIC`.
#[inline(always)]
pub(crate) fn now() -> u64 {
    // SAFETY: the helper has no preconditions.
    unsafe { helpers::bpf_ktime_get_ns() }
}
