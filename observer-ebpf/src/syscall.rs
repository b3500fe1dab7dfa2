//! Which system calls move the bytes of a stream, by number, for each architecture.
//!
//! pread64, pwrite64, preadv and pwritev are left out: a pipe or a socket answers them with
//! `ESPIPE`, so no byte of a stream moves through them. `preadv2` and `pwritev2` with the offset
//! -1 are `readv` and `writev` (Bun's servers use them so).

/// What a system call does to the descriptors in its arguments.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Nothing of interest.
    None = 0,
    /// `write(fd, buffer, ...)`
    Write = 1,
    /// `writev(fd, iov, iovcnt)`, `pwritev2`, `vmsplice` into a pipe
    Writev = 2,
    /// `sendto(fd, buffer, len, flags, address, ...)`
    Sendto = 3,
    /// `sendmsg(fd, msghdr, flags)`
    Sendmsg = 4,
    /// `sendmmsg(fd, mmsghdr, vlen, flags)`
    Sendmmsg = 5,
    /// `read(fd, buffer, count)`
    Read = 6,
    /// `readv(fd, iov, iovcnt)`, `preadv2`
    Readv = 7,
    /// `recvfrom(fd, buffer, len, flags, ...)`
    Recvfrom = 8,
    /// `recvmsg(fd, msghdr, flags)`
    Recvmsg = 9,
    /// `recvmmsg(fd, mmsghdr, vlen, flags, ...)`
    Recvmmsg = 10,
    /// `splice(fd_in, off_in, fd_out, ...)`
    Splice = 11,
    /// `tee(fd_in, fd_out, ...)`
    Tee = 12,
    /// `vmsplice(fd, iov, nr_segs, flags)`: writes or reads, as `fd` is open for
    Vmsplice = 13,
    /// `sendfile(fd_out, fd_in, ...)`
    Sendfile = 14,
}

/// System-call numbers from 0 to here have an entry in a [`table`].
pub const TABLE_SIZE: usize = 512;

/// An instruction set that the probe can run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arch {
    /// x86-64.
    X86_64,
    /// arm64.
    Aarch64,
}

impl Arch {
    /// The one this code was compiled for, where the probe knows it.
    pub const fn host() -> Option<Self> {
        if cfg!(target_arch = "x86_64") {
            Some(Self::X86_64)
        } else if cfg!(target_arch = "aarch64") {
            Some(Self::Aarch64)
        } else {
            None
        }
    }
}

/// The calls of interest, with their numbers on x86-64
/// (`arch/x86/entry/syscalls/syscall_64.tbl`) and on arm64 (`include/uapi/asm-generic/unistd.h`).
const CALLS: [(Op, u16, u16); 16] = [
    (Op::Read, 0, 63),
    (Op::Write, 1, 64),
    (Op::Readv, 19, 65),
    (Op::Writev, 20, 66),
    (Op::Sendfile, 40, 71),
    (Op::Sendto, 44, 206),
    (Op::Recvfrom, 45, 207),
    (Op::Sendmsg, 46, 211),
    (Op::Recvmsg, 47, 212),
    (Op::Splice, 275, 76),
    (Op::Tee, 276, 77),
    (Op::Vmsplice, 278, 75),
    (Op::Recvmmsg, 299, 243),
    (Op::Sendmmsg, 307, 269),
    // preadv2, pwritev2
    (Op::Readv, 327, 286),
    (Op::Writev, 328, 287),
];

/// The operation of every system-call number, as the block of read-only data named `SYSCALLS`.
pub const fn table(arch: Arch) -> [u8; TABLE_SIZE] {
    let mut table = [Op::None as u8; TABLE_SIZE];
    let mut i = 0;
    while i < CALLS.len() {
        let (op, x86_64, aarch64) = CALLS[i];
        let number = match arch {
            Arch::X86_64 => x86_64,
            Arch::Aarch64 => aarch64,
        };
        table[number as usize] = op as u8;
        i += 1;
    }
    table
}

/// Where `struct pt_regs` keeps the call's number and arguments once the call has returned, as
/// (member, index into it). A 64-bit register each, but for the number, of which 32 bits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterNames {
    /// The call's number.
    pub number: (&'static str, u32),
    /// Its six arguments.
    pub arguments: [(&'static str, u32); 6],
    /// The member of `struct thread_info` that marks a 32-bit task.
    pub compat: &'static str,
    /// The bits of it that do.
    pub compat_mask: u32,
}

impl RegisterNames {
    /// The names on an architecture.
    ///
    /// On arm64 the first argument is in `orig_x0`: `x0` holds the return value by then.
    /// Sources: `arch/x86/include/asm/ptrace.h` and `TS_COMPAT` in `asm/thread_info.h`,
    /// `arch/arm64/include/asm/ptrace.h` and `TIF_32BIT` in `asm/thread_info.h` (Linux 6.12).
    pub const fn of(arch: Arch) -> Self {
        match arch {
            Arch::X86_64 => Self {
                number: ("orig_ax", 0),
                arguments: [
                    ("di", 0),
                    ("si", 0),
                    ("dx", 0),
                    ("r10", 0),
                    ("r8", 0),
                    ("r9", 0),
                ],
                compat: "status",
                compat_mask: 1 << 1,
            },
            Arch::Aarch64 => Self {
                number: ("syscallno", 0),
                arguments: [
                    ("orig_x0", 0),
                    ("regs", 1),
                    ("regs", 2),
                    ("regs", 3),
                    ("regs", 4),
                    ("regs", 5),
                ],
                compat: "flags",
                compat_mask: 1 << 22,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(arch: Arch, number: usize) -> u8 {
        table(arch)[number]
    }

    #[test]
    fn every_call_has_its_own_number() {
        for arch in [Arch::X86_64, Arch::Aarch64] {
            let known = table(arch)
                .iter()
                .filter(|&&op| op != Op::None as u8)
                .count();
            assert_eq!(known, CALLS.len(), "two calls share a number on {arch:?}");
        }
    }

    #[test]
    fn numbers_are_those_of_the_architecture() {
        // write is 1 on x86-64; 1 on arm64 is io_destroy. 64 on arm64 is write; on x86-64 semget.
        assert_eq!(op(Arch::X86_64, 1), Op::Write as u8);
        assert_eq!(op(Arch::X86_64, 64), Op::None as u8);
        assert_eq!(op(Arch::Aarch64, 64), Op::Write as u8);
        assert_eq!(op(Arch::Aarch64, 1), Op::None as u8);
        assert_eq!(op(Arch::X86_64, 328), Op::Writev as u8);
        assert_eq!(op(Arch::Aarch64, 287), Op::Writev as u8);
    }

    #[test]
    fn pread_and_pwrite_move_nothing_on_a_stream() {
        for number in [17, 18, 295, 296] {
            assert_eq!(op(Arch::X86_64, number), Op::None as u8);
        }
        for number in [67, 68, 69, 70] {
            assert_eq!(op(Arch::Aarch64, number), Op::None as u8);
        }
    }

    #[test]
    fn the_first_argument_is_never_the_return_value() {
        let names = RegisterNames::of(Arch::Aarch64);
        assert!(
            !names.arguments.contains(&("regs", 0)),
            "x0 holds the return value at exit"
        );
        assert_eq!(
            RegisterNames::of(Arch::X86_64).arguments[3].0,
            "r10",
            "rcx is clobbered"
        );
    }
}
