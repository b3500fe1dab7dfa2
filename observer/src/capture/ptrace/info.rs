//! What the kernel tells of a thread at a system call: `struct ptrace_syscall_info`.
//!
//! Pure decoding. Source: `include/uapi/linux/ptrace.h` (Linux 6.12); the layout is the same on
//! every architecture.

use super::syscall::{Abi, Args};

/// Where in a system call a thread stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SyscallInfo {
    /// It is about to make this call.
    Entry {
        /// Whose numbers and pointers these are.
        abi: Abi,
        /// The call's number.
        number: u64,
        /// Its arguments.
        args: Args,
    },
    /// The call has returned this: negative for an error.
    Exit(i64),
    /// It stands elsewhere.
    None,
}

impl SyscallInfo {
    /// The size of the structure, in words of 64 bits.
    pub(super) const WORDS: usize = 11;

    pub(super) fn decode(words: &[u64; Self::WORDS]) -> Self {
        const ENTRY: u8 = 1;
        const EXIT: u8 = 2;
        // `op` is the first byte in memory, `arch` the second half of the first word.
        let [op, _, _, _, arch @ ..] = words[0].to_ne_bytes();
        let [_, _, _, number, args @ .., _] = *words;
        match op {
            ENTRY => Self::Entry {
                abi: Abi::of(u32::from_ne_bytes(arch), number),
                number,
                args,
            },
            EXIT => Self::Exit(number.cast_signed()),
            _ => Self::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(op: u8, arch: u32, rest: [u64; 10]) -> [u64; SyscallInfo::WORDS] {
        let mut head = [0; 8];
        head[0] = op;
        head[4..].copy_from_slice(&arch.to_ne_bytes());
        let mut words = [0; SyscallInfo::WORDS];
        words[0] = u64::from_ne_bytes(head);
        words[1..].copy_from_slice(&rest);
        words
    }

    #[test]
    fn entry_and_exit_are_told_apart() {
        // instruction pointer, stack pointer, number, six arguments
        let rest = [7, 8, 64, 1, 2, 3, 4, 5, 6, 0];
        assert_eq!(
            SyscallInfo::decode(&words(1, 0xc000_00b7, rest)),
            SyscallInfo::Entry {
                abi: Abi::Aarch64,
                number: 64,
                args: [1, 2, 3, 4, 5, 6]
            }
        );
        let rest = [7, 8, (-32_i64).cast_unsigned(), 1, 0, 0, 0, 0, 0, 0];
        assert_eq!(
            SyscallInfo::decode(&words(2, 0xc000_003e, rest)),
            SyscallInfo::Exit(-32)
        );
        assert_eq!(
            SyscallInfo::decode(&words(0, 0xc000_003e, rest)),
            SyscallInfo::None
        );
        // PTRACE_SYSCALL_INFO_SECCOMP: never asked for.
        assert_eq!(
            SyscallInfo::decode(&words(3, 0xc000_003e, rest)),
            SyscallInfo::None
        );
    }
}
