//! What the probe in the kernel and its reader in user space agree on.
//!
//! The lib target, built for the host and for BPF, owns the [`wire`] format, the [`config`] that
//! the reader hands to the probe before it is loaded, and the [`syscall`] tables. The bin target
//! (`src/programs`, feature `programs`) holds the BPF programs. Nothing here allocates, and
//! nothing here may depend on the host's architecture: one object serves x86-64 and arm64.
#![no_std]

pub mod config;
pub mod syscall;
pub mod wire;
