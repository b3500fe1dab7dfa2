//! The counters that tell user space what it did not get.

use core::arch::asm;

use aya_ebpf::macros::map;
use aya_ebpf::maps::PerCpuArray;
use observer_ebpf::wire::Counters;

#[map]
static COUNTERS: PerCpuArray<Counters> = PerCpuArray::with_max_entries(1, 0);

/// Adds to one counter. Atomic, because a program may interrupt another on the same CPU.
macro_rules! count {
    ($field:ident, $n:expr) => {
        if let Some(counters) = $crate::counters::counters() {
            // SAFETY: the map's value is valid and aligned, and only ever used atomically.
            $crate::counters::add(unsafe { &raw mut (*counters).$field }, $n);
        }
    };
}
pub(crate) use count;

/// See [`count!`].
#[inline(always)]
pub(crate) fn counters() -> Option<*mut Counters> {
    COUNTERS.get_ptr_mut(0)
}

/// Adds to a place in a map that other CPUs may add to as well; returns what was there before.
///
/// The BPF target of rustc claims no atomic operations; the instruction (BPF v3, Linux 5.12) does
/// exist.
#[inline(always)]
pub(crate) fn add(place: *mut u64, n: u64) -> u64 {
    let mut value = n;
    // SAFETY: every caller passes an aligned u64 in a map's value that the verifier knows.
    unsafe {
        asm!(
            "{value} = atomic_fetch_add((u64 *)({place} + 0), {value})",
            place = in(reg) place,
            value = inout(reg) value,
            options(nostack),
        );
    }
    value
}
