//! What user space tells the probe before it is loaded: the running kernel's layouts and the scope.
//!
//! Rust emits no CO-RE relocations, so the reader looks the offsets up in the kernel's BTF and
//! puts them here. The probe finds it in read-only data, which the verifier knows the values of.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The configuration, as one block of read-only data named `CONFIG` in the object.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct Config {
    /// Not 0: every process is of the scope, except `observer`.
    pub machine: u32,
    /// The observer's own tgid.
    pub observer: u32,
    /// Wake the reader once this many bytes wait in the ring, whatever it does.
    pub wakeup_bytes: u64,
    /// Where things are in the kernel's memory.
    pub offsets: Offsets,
    /// Where a system call's number and arguments are in `struct pt_regs`.
    pub registers: Registers,
}

impl Config {
    /// What the object is built with; useless until user space replaces it. Not all zeros, so
    /// that it lands in `.rodata`.
    pub const UNSET: Self = Self {
        machine: 0,
        observer: u32::MAX,
        wakeup_bytes: 0,
        offsets: Offsets::UNSET,
        registers: Registers::UNSET,
    };
}

/// An optional field that this kernel does not have.
pub const ABSENT: u32 = u32::MAX;

macro_rules! offsets {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Byte offsets of the fields that the probe reads, each named `STRUCT_FIELD`.
        #[repr(C)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
        pub struct Offsets {
            $($(#[$doc])* pub $name: u32,)*
        }

        impl Offsets {
            const UNSET: Self = Self { $($name: ABSENT,)* };
        }
    };
}

offsets! {
    /// `task_struct.files`
    task_files,
    /// `task_struct.mm`
    task_mm,
    /// `task_struct.signal`
    task_signal,
    /// `task_struct.pid`: the thread's id
    task_pid,
    /// `task_struct.tgid`
    task_tgid,
    /// `task_struct.group_leader`
    task_group_leader,
    /// `task_struct.exit_code`
    task_exit_code,
    /// `task_struct.start_boottime`
    task_start_boottime,
    /// The word that tells a 32-bit task apart: `thread_info.status` (x86) or `.flags` (arm64).
    task_compat,
    /// `signal_struct.live`
    signal_live,
    /// `signal_struct.flags`
    signal_flags,
    /// `signal_struct.group_exit_code`
    signal_group_exit_code,
    /// `mm_struct.arg_start`
    mm_arg_start,
    /// `mm_struct.arg_end`
    mm_arg_end,
    /// `linux_binprm.filename`
    binprm_filename,
    /// `kernel_siginfo.si_code`
    siginfo_code,
    /// `files_struct.fdt`
    files_fdt,
    /// `fdtable.max_fds`
    fdt_max_fds,
    /// `fdtable.fd`
    fdt_fd,
    /// `file.f_inode`
    file_inode,
    /// `file.f_mode`
    file_mode,
    /// `file.private_data`
    file_private_data,
    /// `inode.i_ino`
    inode_ino,
    /// `inode.i_mode`
    inode_mode,
    /// `inode.i_rdev`
    inode_rdev,
    /// `inode.i_sb`
    inode_sb,
    /// `super_block.s_dev`
    sb_dev,
    /// `super_block.s_magic`
    sb_magic,
    /// `socket.type`
    socket_type,
    /// `socket.sk`
    socket_sk,
    /// `sock.sk_socket`
    sock_socket,
    /// `sock.__sk_common.skc_family`
    sock_family,
    /// `sock.__sk_common.skc_dport`
    sock_dport,
    /// `sock.__sk_common.skc_daddr`
    sock_daddr,
    /// `sock.__sk_common.skc_v6_daddr`; [`ABSENT`] where the kernel has no IPv6
    sock_v6_daddr,
    /// `unix_sock.peer`
    unix_peer,
    /// From a `struct socket` to its inode: `socket_alloc.vfs_inode - socket_alloc.socket`
    socket_inode,
    /// Keeps the size a multiple of eight.
    padding,
}
const _: () = assert!(size_of::<Offsets>().is_multiple_of(8));

/// Byte offsets in `struct pt_regs`, as it stands when a system call returns.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
pub struct Registers {
    /// The call's number: a 32-bit value on both architectures' byte order.
    pub number: u32,
    /// The bits of [`Offsets::task_compat`] that mark a 32-bit task, whose numbers mean others.
    pub compat_mask: u32,
    /// The call's six arguments.
    pub arguments: [u32; 6],
}

impl Registers {
    const UNSET: Self = Self {
        number: ABSENT,
        compat_mask: 0,
        arguments: [ABSENT; 6],
    };
}
