//! The wire types that the BPF programs write and `observer::capture::ebpf` reads.
#![no_std]
