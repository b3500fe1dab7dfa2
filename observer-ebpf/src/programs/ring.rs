//! The ring buffer to user space, and when its reader is woken.

use aya_ebpf::bindings::{BPF_RB_AVAIL_DATA, BPF_RB_FORCE_WAKEUP, BPF_RB_NO_WAKEUP};
use aya_ebpf::macros::map;
use aya_ebpf::maps::{Array, RingBuf};
use observer_ebpf::wire::{ABI, Header};

use crate::counters::count;
use crate::kernel::{config, now};

/// User space sets the size.
#[map]
static RING: RingBuf = RingBuf::with_byte_size(1 << 16, 0);

/// 1 while the reader sleeps and wants to be woken by the next record. While it is busy it looks
/// by itself every few milliseconds, and the watched processes need not pay for waking it.
#[map]
static READER_ASLEEP: Array<u32> = Array::with_max_entries(1, 0);

/// A header for a record that is made now.
#[inline(always)]
pub(crate) fn header(kind: u16, len: u32) -> Header {
    Header {
        abi: ABI,
        kind,
        len,
        at: now(),
    }
}

/// Reserves room for a `T`, lets `fill` write it, and submits it, unless `fill` says not to.
#[inline(always)]
pub(crate) fn emit<T: 'static>(fill: impl FnOnce(*mut T) -> bool) -> Result<(), Lost> {
    let Some(mut entry) = RING.reserve::<T>(0) else {
        return Err(Lost::RingFull);
    };
    if fill(entry.as_mut_ptr()) {
        entry.submit(wakeup());
        Ok(())
    } else {
        entry.discard(u64::from(BPF_RB_NO_WAKEUP));
        Err(Lost::Unreadable)
    }
}

/// Emits a record without content; counts it where it is lost.
#[inline(always)]
pub(crate) fn emit_event<T: 'static>(record: T) {
    let sent = emit::<T>(|place| {
        // SAFETY: the ring reserved room for a T at `place`, aligned to eight bytes.
        unsafe { place.write(record) };
        true
    });
    if sent.is_err() {
        count!(events_lost, 1);
    }
}

/// Why a record did not reach the ring.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    RingFull,
    Unreadable,
}

/// Whether this record wakes the reader.
#[inline(always)]
fn wakeup() -> u64 {
    let asleep = READER_ASLEEP.get_ptr(0).is_some_and(|flag| {
        // SAFETY: the map's value is valid and aligned; user space writes it at any time.
        unsafe { flag.read_volatile() != 0 }
    });
    if asleep || RING.query(u64::from(BPF_RB_AVAIL_DATA)) >= config!(wakeup_bytes) {
        return u64::from(BPF_RB_FORCE_WAKEUP);
    }
    u64::from(BPF_RB_NO_WAKEUP)
}
