//! Where each stream stands: how much was written, read and lost, and what user space gave up.

use aya_ebpf::bindings::BPF_NOEXIST;
use aya_ebpf::helpers::bpf_get_prandom_u32;
use aya_ebpf::macros::map;
use aya_ebpf::maps::LruHashMap;
use observer_ebpf::wire::{StreamKey, StreamState, Transfer, loss, stream_kind};

use crate::counters::add;
use crate::file::Target;
use crate::kernel::current_tgid;
use crate::ring::header;

/// Every stream that bytes moved through. The least recently used goes when it is full; its
/// next state then has another generation, which user space reports as a gap.
#[map]
static STREAMS: LruHashMap<StreamKey, StreamState> = LruHashMap::with_max_entries(1 << 14, 0);

/// Streams whose content user space does not want.
#[map]
static GIVEN_UP: LruHashMap<StreamKey, u8> = LruHashMap::with_max_entries(1 << 14, 0);

/// The other end of each socket: a reader that finds its peer closed still knows whose bytes
/// these were.
#[map]
static PEERS: LruHashMap<u64, u64> = LruHashMap::with_max_entries(1 << 14, 0);

/// A stream, and its state in the map.
#[derive(Clone, Copy)]
pub(crate) struct Stream {
    pub(crate) key: StreamKey,
    state: *mut StreamState,
}

impl Stream {
    /// The stream that is written through a descriptor.
    #[inline(always)]
    pub(crate) fn written_to(target: &Target) -> Option<Self> {
        match *target {
            Target::Pipe(key) => Self::find(key),
            Target::Socket { own, peer } => {
                if let Some(peer) = peer {
                    remember_peers(own, peer);
                }
                Self::find(socket_key(own))
            }
            Target::Internet { .. } | Target::Terminal(_) => None,
        }
    }

    /// The stream that is read through a descriptor.
    #[inline(always)]
    pub(crate) fn read_from(target: &Target) -> Option<Self> {
        match *target {
            Target::Pipe(key) => Self::find(key),
            Target::Socket { own, peer } => {
                let peer = match peer {
                    Some(peer) => {
                        remember_peers(own, peer);
                        peer
                    }
                    None => known_peer(own)?,
                };
                Self::find(socket_key(peer))
            }
            Target::Internet { .. } | Target::Terminal(_) => None,
        }
    }

    #[inline(always)]
    fn find(key: StreamKey) -> Option<Self> {
        if let Some(state) = STREAMS.get_ptr_mut(key) {
            return Some(Self { key, state });
        }
        let fresh = StreamState {
            written: 0,
            read: 0,
            lost: 0,
            loss: loss::NONE,
            // SAFETY: the helper has no preconditions.
            generation: unsafe { bpf_get_prandom_u32() },
        };
        // Another CPU may have been first; then its state is the one.
        let _ = STREAMS.insert(key, fresh, u64::from(BPF_NOEXIST));
        STREAMS.get_ptr_mut(key).map(|state| Self { key, state })
    }

    /// Whether user space gave it up.
    #[inline(always)]
    pub(crate) fn is_given_up(&self) -> bool {
        GIVEN_UP.get_ptr(self.key).is_some()
    }

    /// Counts written bytes; returns the offset of the first.
    #[inline(always)]
    pub(crate) fn advance_written(&self, n: u64) -> u64 {
        // SAFETY: `state` points to a value of the map.
        add(unsafe { &raw mut (*self.state).written }, n)
    }

    /// Counts read bytes; returns the position after the last.
    #[inline(always)]
    pub(crate) fn advance_read(&self, n: u64) -> u64 {
        // SAFETY: `state` points to a value of the map.
        add(unsafe { &raw mut (*self.state).read }, n) + n
    }

    /// Counts lost bytes.
    #[inline(always)]
    pub(crate) fn lose(key: StreamKey, n: u64, why: u32) {
        if let Some(state) = STREAMS.get_ptr_mut(key) {
            // SAFETY: `state` points to a value of the map.
            unsafe { (&raw mut (*state).loss).write_volatile(why) };
            // SAFETY: as above.
            add(unsafe { &raw mut (*state).lost }, n);
        }
    }

    /// A record about this stream, by the current process.
    #[inline(always)]
    pub(crate) fn transfer(&self, kind: u16, len: u32, offset: u64, fd: i32) -> Transfer {
        // SAFETY: `state` points to a value of the map; other CPUs only add to it.
        let state = unsafe { self.state.read_volatile() };
        Transfer {
            header: header(kind, len),
            stream: self.key,
            offset,
            lost: state.lost,
            pid: current_tgid(),
            fd,
            loss: state.loss,
            generation: state.generation,
        }
    }
}

#[inline(always)]
fn socket_key(object: u64) -> StreamKey {
    StreamKey {
        object,
        scope: 0,
        kind: stream_kind::SOCKET,
    }
}

#[inline(always)]
fn known_peer(own: u64) -> Option<u64> {
    // SAFETY: values are only ever replaced by the same value.
    unsafe { PEERS.get(own) }.copied()
}

#[inline(always)]
fn remember_peers(own: u64, peer: u64) {
    if known_peer(own) != Some(peer) {
        let _ = PEERS.insert(own, peer, 0);
        let _ = PEERS.insert(peer, own, 0);
    }
}
