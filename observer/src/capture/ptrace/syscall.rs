//! Which system calls matter, by number, and what their arguments mean. Pure.
//!
//! pread64, pwrite64, preadv and pwritev are left out: a pipe or a socket answers them with
//! `ESPIPE`. `preadv2` and `pwritev2` with the offset -1 are `readv` and `writev`.
//!
//! Sources: `arch/x86/entry/syscalls/syscall_64.tbl`, `include/uapi/asm-generic/unistd.h` and
//! `include/uapi/linux/audit.h` (Linux 6.12).

/// The six arguments of a system call.
pub(super) type Args = [u64; 6];

/// Whose numbers and structures a system call uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Abi {
    /// x86-64.
    X86_64,
    /// arm64.
    Aarch64,
    /// Another, such as that of a 32-bit program: none of its calls is known.
    Other,
}

impl Abi {
    /// From `AUDIT_ARCH_*`, and the call's number: x32 has that of x86-64, and a bit in the number.
    pub(super) fn of(audit_arch: u32, number: u64) -> Self {
        const X86_64: u32 = 0xc000_003e;
        const AARCH64: u32 = 0xc000_00b7;
        const X32_BIT: u64 = 0x4000_0000;
        match audit_arch {
            X86_64 if number & X32_BIT == 0 => Self::X86_64,
            AARCH64 => Self::Aarch64,
            _ => Self::Other,
        }
    }
}

/// A system call that matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Read,
    Write,
    Readv,
    Writev,
    Recvfrom,
    Sendto,
    Recvmsg,
    Sendmsg,
    Recvmmsg,
    Sendmmsg,
    Splice,
    Tee,
    Vmsplice,
    Sendfile,
    Socketpair,
    Kill,
    Tkill,
    Tgkill,
    PidfdSendSignal,
}

/// The calls: name, meaning, number on x86-64, number on arm64.
const CALLS: [(&str, Op, u16, u16); 21] = [
    ("read", Op::Read, 0, 63),
    ("write", Op::Write, 1, 64),
    ("readv", Op::Readv, 19, 65),
    ("writev", Op::Writev, 20, 66),
    ("sendfile", Op::Sendfile, 40, 71),
    ("sendto", Op::Sendto, 44, 206),
    ("recvfrom", Op::Recvfrom, 45, 207),
    ("sendmsg", Op::Sendmsg, 46, 211),
    ("recvmsg", Op::Recvmsg, 47, 212),
    ("socketpair", Op::Socketpair, 53, 199),
    ("kill", Op::Kill, 62, 129),
    ("tkill", Op::Tkill, 200, 130),
    ("tgkill", Op::Tgkill, 234, 131),
    ("splice", Op::Splice, 275, 76),
    ("tee", Op::Tee, 276, 77),
    ("vmsplice", Op::Vmsplice, 278, 75),
    ("recvmmsg", Op::Recvmmsg, 299, 243),
    ("sendmmsg", Op::Sendmmsg, 307, 269),
    ("preadv2", Op::Readv, 327, 286),
    ("pwritev2", Op::Writev, 328, 287),
    ("pidfd_send_signal", Op::PidfdSendSignal, 424, 424),
];

const SIZE: usize = 512;

const fn table(abi: Abi) -> [Option<Op>; SIZE] {
    let mut table = [None; SIZE];
    let mut i = 0;
    while i < CALLS.len() {
        let (_, op, x86_64, aarch64) = CALLS[i];
        let number = match abi {
            Abi::X86_64 => x86_64,
            Abi::Aarch64 => aarch64,
            Abi::Other => return table,
        };
        table[number as usize] = Some(op);
        i += 1;
    }
    table
}

static X86_64: [Option<Op>; SIZE] = table(Abi::X86_64);
static AARCH64: [Option<Op>; SIZE] = table(Abi::Aarch64);

/// The names of the calls.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    CALLS.iter().map(|&(name, ..)| name)
}

impl Op {
    /// The call with this number, if it matters.
    pub(super) fn of(abi: Abi, number: u64) -> Option<Self> {
        let table = match abi {
            Abi::X86_64 => &X86_64,
            Abi::Aarch64 => &AARCH64,
            Abi::Other => return None,
        };
        *table.get(usize::try_from(number).ok()?)?
    }

    /// The descriptor that bytes go into, and the one that they come from. Of `vmsplice` it is
    /// one of the two, as the descriptor is open for writing or for reading.
    pub(super) fn descriptors(self, args: &Args) -> (Option<i32>, Option<i32>) {
        let fd = |n: usize| Some(low(args[n]));
        match self {
            Self::Write | Self::Writev | Self::Sendto | Self::Sendmsg | Self::Sendmmsg => {
                (fd(0), None)
            }
            Self::Read | Self::Readv | Self::Recvfrom | Self::Recvmsg | Self::Recvmmsg => {
                (None, fd(0))
            }
            Self::Splice => (fd(2), fd(0)),
            // It copies, and leaves what it copied where it was.
            Self::Tee => (fd(1), None),
            Self::Vmsplice => (fd(0), fd(0)),
            Self::Sendfile => (fd(0), fd(1)),
            Self::Socketpair | Self::Kill | Self::Tkill | Self::Tgkill | Self::PidfdSendSignal => {
                (None, None)
            }
        }
    }

    /// Whether the call leaves what it reads where it is.
    pub(super) fn peeks(self, args: &Args) -> bool {
        const MSG_PEEK: u64 = 2;
        let flags = match self {
            Self::Recvfrom | Self::Recvmmsg => args[3],
            Self::Recvmsg => args[2],
            _ => 0,
        };
        flags & MSG_PEEK != 0
    }
}

/// An `int` argument: the upper half of its register means nothing.
pub(super) fn low(arg: u64) -> i32 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the kernel takes these 32 bits too"
    )]
    let low = arg as u32;
    low.cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_this_architecture() {
        let abi = if cfg!(target_arch = "aarch64") {
            Abi::Aarch64
        } else {
            Abi::X86_64
        };
        for (number, op) in [
            (libc::SYS_read, Op::Read),
            (libc::SYS_write, Op::Write),
            (libc::SYS_readv, Op::Readv),
            (libc::SYS_writev, Op::Writev),
            (libc::SYS_preadv2, Op::Readv),
            (libc::SYS_pwritev2, Op::Writev),
            (libc::SYS_recvfrom, Op::Recvfrom),
            (libc::SYS_sendto, Op::Sendto),
            (libc::SYS_recvmsg, Op::Recvmsg),
            (libc::SYS_sendmsg, Op::Sendmsg),
            (libc::SYS_recvmmsg, Op::Recvmmsg),
            (libc::SYS_sendmmsg, Op::Sendmmsg),
            (libc::SYS_splice, Op::Splice),
            (libc::SYS_tee, Op::Tee),
            (libc::SYS_vmsplice, Op::Vmsplice),
            (libc::SYS_sendfile, Op::Sendfile),
            (libc::SYS_socketpair, Op::Socketpair),
            (libc::SYS_kill, Op::Kill),
            (libc::SYS_tkill, Op::Tkill),
            (libc::SYS_tgkill, Op::Tgkill),
            (libc::SYS_pidfd_send_signal, Op::PidfdSendSignal),
        ] {
            assert_eq!(Op::of(abi, number.unsigned_abs()), Some(op), "{number}");
        }
    }

    #[test]
    fn every_call_has_its_own_number() {
        for abi in [Abi::X86_64, Abi::Aarch64] {
            let known = (0..SIZE as u64)
                .filter(|&number| Op::of(abi, number).is_some())
                .count();
            assert_eq!(known, CALLS.len(), "{abi:?}");
        }
    }

    #[test]
    fn architectures_do_not_share_numbers() {
        assert_eq!(Op::of(Abi::X86_64, 1), Some(Op::Write));
        assert_eq!(Op::of(Abi::Aarch64, 1), None); // io_setup
        assert_eq!(Op::of(Abi::Aarch64, 64), Some(Op::Write));
        assert_eq!(Op::of(Abi::X86_64, 64), None); // semget
        assert_eq!(Op::of(Abi::Aarch64, 206), Some(Op::Sendto));
        assert_eq!(Op::of(Abi::Aarch64, 287), Some(Op::Writev));
        assert_eq!(Op::of(Abi::X86_64, 328), Some(Op::Writev));
        assert_eq!(Op::of(Abi::Other, 1), None);
        assert_eq!(Op::of(Abi::X86_64, u64::MAX), None);
    }

    #[test]
    fn a_32_bit_program_is_another_abi() {
        assert_eq!(Abi::of(0xc000_003e, 1), Abi::X86_64);
        assert_eq!(Abi::of(0xc000_003e, 0x4000_0001), Abi::Other); // x32
        assert_eq!(Abi::of(0x4000_0003, 4), Abi::Other); // i386
        assert_eq!(Abi::of(0xc000_00b7, 64), Abi::Aarch64);
        assert_eq!(Abi::of(0x4000_0028, 4), Abi::Other); // arm
    }

    #[test]
    fn calls_name_where_bytes_go_and_come_from() {
        let args = [3, 4, 5, 6, 7, 8];
        assert_eq!(Op::Writev.descriptors(&args), (Some(3), None));
        assert_eq!(Op::Recvmsg.descriptors(&args), (None, Some(3)));
        assert_eq!(Op::Splice.descriptors(&args), (Some(5), Some(3)));
        assert_eq!(Op::Tee.descriptors(&args), (Some(4), None));
        assert_eq!(Op::Sendfile.descriptors(&args), (Some(3), Some(4)));
        assert_eq!(Op::Kill.descriptors(&args), (None, None));
        let minus_one = u64::from(u32::MAX);
        assert_eq!(Op::Read.descriptors(&[minus_one; 6]), (None, Some(-1)));
    }

    #[test]
    fn only_receiving_calls_peek() {
        assert!(Op::Recvfrom.peeks(&[0, 0, 0, 2, 0, 0]));
        assert!(Op::Recvmmsg.peeks(&[0, 0, 0, 0x42, 0, 0]));
        assert!(Op::Recvmsg.peeks(&[0, 0, 2, 0, 0, 0]));
        assert!(!Op::Recvmsg.peeks(&[0, 0, 0, 2, 0, 0]));
        assert!(!Op::Read.peeks(&[2; 6]));
    }
}
