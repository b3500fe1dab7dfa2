//! Copies the bytes that a system call moved from the caller's memory into the ring.

use core::ffi::c_void;

use aya_ebpf::helpers::{bpf_loop, generated::bpf_probe_read_user};
use aya_ebpf::macros::map;
use aya_ebpf::maps::PerCpuArray;
use observer_ebpf::wire::{MAX_PIECE, StreamKey, Transfer, loss};

use crate::counters::count;
use crate::kernel::read_user;
use crate::ring::{Lost, emit};
use crate::stream::Stream;

/// More turns than any system call needs: two gigabytes in the largest pieces are 65,536, and
/// 1,024 messages of 1,024 buffers each a million. The kernel's own limit is eight million.
const MAX_TURNS: u32 = 1 << 22;

/// `UIO_MAXIOV`: what one call moves at most.
const MAX_MESSAGES: u32 = 1024;

/// `struct iovec`
#[repr(C)]
#[derive(Clone, Copy)]
struct Iovec {
    base: u64,
    len: u64,
}

/// `struct user_msghdr`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Msghdr {
    pub(crate) name: u64,
    pub(crate) name_len: u64,
    pub(crate) iov: u64,
    pub(crate) iov_len: u64,
    control: u64,
    control_len: u64,
    flags: u64,
}

/// `struct mmsghdr`
#[repr(C)]
#[derive(Clone, Copy)]
struct Mmsghdr {
    message: Msghdr,
    /// How many bytes of this message moved.
    len: u32,
    padding: u32,
}
const _: () = assert!(size_of::<Mmsghdr>() == 64);

/// A record with room for `N` bytes.
#[repr(C)]
struct Piece<const N: usize> {
    transfer: Transfer,
    payload: [u8; N],
}

/// One cursor for each CPU. It lives in a map and not on the stack, because the verifier follows
/// every value on the stack through every turn of a loop, and would never come to an end. The
/// kernel runs a program only once at a time on a CPU (and counts the runs that it skips).
#[map]
static CURSOR: PerCpuArray<Cursor> = PerCpuArray::with_max_entries(1, 0);

/// The same for sums.
#[map]
static SUM: PerCpuArray<Sum> = PerCpuArray::with_max_entries(1, 0);

/// The bytes of one system call that are still to be copied.
#[repr(C)]
pub(crate) struct Cursor {
    /// The next piece's record: its offset goes on from turn to turn.
    transfer: Transfer,
    /// Bytes to copy.
    todo: u64,
    /// The next `struct mmsghdr`, and how many there are.
    messages: u64,
    messages_left: u64,
    /// Bytes of the current message.
    message_left: u64,
    /// The next `struct iovec`, and how many there are.
    iov: u64,
    iov_left: u64,
    /// The current buffer.
    base: u64,
    base_left: u64,
    submitted: u64,
    ring_full: u64,
    unreadable: u64,
}

impl Cursor {
    #[inline(always)]
    fn new(transfer: Transfer, todo: u64) -> Self {
        Self {
            transfer,
            todo,
            messages: 0,
            messages_left: 0,
            message_left: todo,
            iov: 0,
            iov_left: 0,
            base: 0,
            base_left: 0,
            submitted: 0,
            ring_full: 0,
            unreadable: 0,
        }
    }

    /// `len` bytes at `base`.
    #[inline(always)]
    pub(crate) fn buffer(transfer: Transfer, base: u64, len: u64) -> Self {
        Self {
            base,
            base_left: len,
            ..Self::new(transfer, len)
        }
    }

    /// `len` bytes in an array of buffers.
    #[inline(always)]
    pub(crate) fn vector(transfer: Transfer, iov: u64, iov_left: u64, len: u64) -> Self {
        Self {
            iov,
            iov_left,
            ..Self::new(transfer, len)
        }
    }

    /// `len` bytes in the first `messages_left` of an array of messages.
    #[inline(always)]
    pub(crate) fn messages(
        transfer: Transfer,
        messages: u64,
        messages_left: u64,
        len: u64,
    ) -> Self {
        Self {
            messages,
            messages_left,
            message_left: 0,
            ..Self::new(transfer, len)
        }
    }

    /// Copies everything; returns how much was lost on the way, which is counted.
    #[inline(always)]
    pub(crate) fn copy_content(self) -> Option<u64> {
        let cursor = self.run()?;
        count!(submitted, cursor.submitted);
        let lost = cursor.ring_full + cursor.unreadable + cursor.todo;
        if lost > 0 {
            count!(ring_full, cursor.ring_full);
            count!(unreadable, cursor.unreadable + cursor.todo);
        }
        if cursor.todo > 0 {
            Stream::lose(cursor.transfer.stream, cursor.todo, loss::UNREADABLE);
        }
        Some(lost)
    }

    /// Copies everything that is no stream's content.
    #[inline(always)]
    pub(crate) fn copy_keys(self) -> Option<()> {
        let cursor = self.run()?;
        if cursor.ring_full + cursor.unreadable + cursor.todo > 0 {
            count!(events_lost, 1);
        }
        Some(())
    }

    #[inline(always)]
    fn run(self) -> Option<&'static mut Self> {
        let place = CURSOR.get_ptr_mut(0)?;
        // SAFETY: the map's value is valid, aligned, and this CPU's own.
        let cursor = unsafe { &mut *place };
        *cursor = self;
        // SAFETY: `turn` has the signature that the helper calls.
        unsafe {
            bpf_loop(MAX_TURNS, turn as *mut c_void, core::ptr::null_mut(), 0);
        }
        Some(cursor)
    }

    /// One step of the copy; `None` ends it.
    #[inline(always)]
    fn advance(&mut self) -> Option<()> {
        if self.todo == 0 {
            return None;
        }
        if self.message_left == 0 {
            return self.next_message();
        }
        if self.base_left == 0 {
            return self.next_buffer();
        }
        let n = if self.base_left > u64::from(MAX_PIECE) {
            u64::from(MAX_PIECE)
        } else {
            self.base_left
        };
        self.copy_piece(n);
        self.base += n;
        self.base_left -= n;
        self.message_left -= n;
        self.todo -= n;
        Some(())
    }

    #[inline(always)]
    fn next_message(&mut self) -> Option<()> {
        if self.messages_left == 0 {
            return None;
        }
        let message = read_user::<Mmsghdr>(self.messages)?;
        self.messages += size_of::<Mmsghdr>() as u64;
        self.messages_left -= 1;
        self.message_left = smaller(u64::from(message.len), self.todo);
        self.iov = message.message.iov;
        self.iov_left = message.message.iov_len;
        self.base_left = 0;
        Some(())
    }

    #[inline(always)]
    fn next_buffer(&mut self) -> Option<()> {
        if self.iov_left == 0 {
            return None;
        }
        let buffer = read_user::<Iovec>(self.iov)?;
        self.iov += size_of::<Iovec>() as u64;
        self.iov_left -= 1;
        self.base = buffer.base;
        self.base_left = smaller(buffer.len, self.message_left);
        Some(())
    }

    /// Copies one piece into the smallest record that holds it.
    #[expect(
        clippy::match_overlapping_arm,
        reason = "a ladder: the first step that is high enough"
    )]
    #[inline(always)]
    fn copy_piece(&mut self, n: u64) {
        let outcome = match n {
            ..=64 => self.emit::<64>(n),
            ..=128 => self.emit::<128>(n),
            ..=256 => self.emit::<256>(n),
            ..=512 => self.emit::<512>(n),
            ..=1024 => self.emit::<1024>(n),
            ..=2048 => self.emit::<2048>(n),
            ..=4096 => self.emit::<4096>(n),
            ..=8192 => self.emit::<8192>(n),
            ..=16384 => self.emit::<16384>(n),
            _ => self.emit::<32768>(n),
        };
        self.transfer.offset += n;
        match outcome {
            Ok(()) => self.submitted += n,
            Err(Lost::RingFull) => {
                self.ring_full += n;
                self.lose(n, loss::RING_FULL);
            }
            Err(Lost::Unreadable) => {
                self.unreadable += n;
                self.lose(n, loss::UNREADABLE);
            }
        }
    }

    #[inline(always)]
    fn lose(&mut self, n: u64, why: u32) {
        self.transfer.lost += n;
        self.transfer.loss = why;
        let key: StreamKey = self.transfer.stream;
        Stream::lose(key, n, why);
    }

    #[inline(always)]
    fn emit<const N: usize>(&mut self, n: u64) -> Result<(), Lost> {
        self.transfer.header.len = n as u32;
        let (transfer, base) = (self.transfer, self.base);
        emit::<Piece<N>>(|piece| {
            // SAFETY: the ring reserved room for a Piece<N>, aligned to eight bytes.
            unsafe { (&raw mut (*piece).transfer).write(transfer) };
            // SAFETY: as above; the verifier sees that `n` is at most N.
            let payload = unsafe { &raw mut (*piece).payload };
            let size = bounded::<N>(n);
            // SAFETY: the helper checks the source's address.
            unsafe { bpf_probe_read_user(payload.cast(), size, base as *const c_void) == 0 }
        })
    }
}

/// `n`, which is at most `N`, in a form in which the verifier sees that it is.
#[inline(always)]
fn bounded<const N: usize>(n: u64) -> u32 {
    let n = core::hint::black_box(n);
    if n > N as u64 { 0 } else { n as u32 }
}

#[inline(always)]
fn smaller(a: u64, b: u64) -> u64 {
    if a < b { a } else { b }
}

/// One turn of the loop. The kernel wants a private function that was not inlined.
extern "C" fn turn(_index: u64, _context: *mut c_void) -> i64 {
    let Some(place) = CURSOR.get_ptr_mut(0) else {
        return 1;
    };
    // SAFETY: the map's value is valid, aligned, and this CPU's own.
    let cursor = unsafe { &mut *place };
    i64::from(cursor.advance().is_none())
}

/// What moved through an array of messages.
#[repr(C)]
pub(crate) struct Sum {
    messages: u64,
    messages_left: u64,
    /// Bytes in all of them.
    pub(crate) bytes: u64,
    /// Messages of no bytes at all: in a read, the end of the stream.
    pub(crate) empty: u64,
}

impl Sum {
    /// Adds up the first `count` messages of an array of `struct mmsghdr`.
    #[inline(always)]
    pub(crate) fn of(messages: u64, count: u64) -> Option<&'static Self> {
        let place = SUM.get_ptr_mut(0)?;
        // SAFETY: the map's value is valid, aligned, and this CPU's own.
        let sum = unsafe { &mut *place };
        *sum = Self {
            messages,
            messages_left: count,
            bytes: 0,
            empty: 0,
        };
        // SAFETY: `add_message` has the signature that the helper calls.
        unsafe {
            bpf_loop(
                MAX_MESSAGES,
                add_message as *mut c_void,
                core::ptr::null_mut(),
                0,
            );
        }
        Some(sum)
    }

    #[inline(always)]
    fn add(&mut self) -> Option<()> {
        if self.messages_left == 0 {
            return None;
        }
        let message = read_user::<Mmsghdr>(self.messages)?;
        self.messages += size_of::<Mmsghdr>() as u64;
        self.messages_left -= 1;
        self.bytes += u64::from(message.len);
        self.empty += u64::from(message.len == 0);
        Some(())
    }
}

/// See [`turn`].
extern "C" fn add_message(_index: u64, _context: *mut c_void) -> i64 {
    let Some(place) = SUM.get_ptr_mut(0) else {
        return 1;
    };
    // SAFETY: the map's value is valid, aligned, and this CPU's own.
    let sum = unsafe { &mut *place };
    i64::from(sum.add().is_none())
}

/// The header of the message that `sendmsg` and `recvmsg` point to.
#[inline(always)]
pub(crate) fn message(address: u64) -> Option<Msghdr> {
    read_user::<Msghdr>(address)
}

/// Whether an array of buffers has room for anything, judged by the first that counts.
#[inline(always)]
pub(crate) fn has_room(iov: u64, iov_len: u64) -> bool {
    iov_len > 0 && read_user::<Iovec>(iov).is_some_and(|first| iov_len > 1 || first.len > 0)
}
