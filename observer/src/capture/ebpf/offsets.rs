//! The kernel's layouts that the probe needs, looked up in its BTF.
//!
//! Owns the list of names, from Linux 5.17 on; the probe's `config` owns what they are for.

use observer_ebpf::config::{ABSENT, Offsets, Registers};
use observer_ebpf::syscall::{Arch, RegisterNames};

use super::btf::{Btf, BtfError};

/// The size of a register in `struct pt_regs`, in bytes.
const REGISTER_SIZE: u32 = 8;

/// Looks up every offset of [`Offsets`].
///
/// # Errors
///
/// Where the kernel has no such struct or member.
pub(super) fn offsets(btf: &Btf<'_>, arch: Arch) -> Result<Offsets, BtfError> {
    let task = |member| btf.offset("task_struct", member);
    let signal = |member| btf.offset("signal_struct", member);
    let inode = |member| btf.offset("inode", member);
    let file = |member| btf.offset("file", member);
    let sock = |member| btf.offset("sock", member);
    let compat = RegisterNames::of(arch).compat;
    Ok(Offsets {
        task_files: task("files")?,
        task_mm: task("mm")?,
        task_signal: task("signal")?,
        task_pid: task("pid")?,
        task_tgid: task("tgid")?,
        task_group_leader: task("group_leader")?,
        task_exit_code: task("exit_code")?,
        task_start_boottime: task("start_boottime")?,
        task_compat: task(&format!("thread_info.{compat}"))?,
        signal_live: signal("live")?,
        signal_flags: signal("flags")?,
        signal_group_exit_code: signal("group_exit_code")?,
        mm_arg_start: btf.offset("mm_struct", "arg_start")?,
        mm_arg_end: btf.offset("mm_struct", "arg_end")?,
        binprm_filename: btf.offset("linux_binprm", "filename")?,
        siginfo_code: btf.offset("kernel_siginfo", "si_code")?,
        files_fdt: btf.offset("files_struct", "fdt")?,
        fdt_max_fds: btf.offset("fdtable", "max_fds")?,
        fdt_fd: btf.offset("fdtable", "fd")?,
        file_inode: file("f_inode")?,
        file_mode: file("f_mode")?,
        file_private_data: file("private_data")?,
        inode_ino: inode("i_ino")?,
        inode_mode: inode("i_mode")?,
        inode_rdev: inode("i_rdev")?,
        inode_sb: inode("i_sb")?,
        sb_dev: btf.offset("super_block", "s_dev")?,
        sb_magic: btf.offset("super_block", "s_magic")?,
        socket_type: btf.offset("socket", "type")?,
        socket_sk: btf.offset("socket", "sk")?,
        sock_socket: sock("sk_socket")?,
        sock_family: sock("__sk_common.skc_family")?,
        sock_dport: sock("__sk_common.skc_dport")?,
        sock_daddr: sock("__sk_common.skc_daddr")?,
        sock_v6_daddr: sock("__sk_common.skc_v6_daddr").unwrap_or(ABSENT),
        unix_peer: btf.offset("unix_sock", "peer")?,
        socket_inode: btf.offset("socket_alloc", "vfs_inode")?
            - btf.offset("socket_alloc", "socket")?,
        padding: 0,
    })
}

/// Looks up where a returned system call keeps its number and arguments.
///
/// # Errors
///
/// Where the kernel's `struct pt_regs` has no such member.
pub(super) fn registers(btf: &Btf<'_>, arch: Arch) -> Result<Registers, BtfError> {
    let names = RegisterNames::of(arch);
    let place =
        |(member, index): (&str, u32)| Ok(btf.offset("pt_regs", member)? + index * REGISTER_SIZE);
    let mut arguments = [ABSENT; 6];
    for (argument, name) in arguments.iter_mut().zip(names.arguments) {
        *argument = place(name)?;
    }
    Ok(Registers {
        number: place(names.number)?,
        compat_mask: names.compat_mask,
        arguments,
    })
}
