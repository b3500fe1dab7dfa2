//! The BPF programs of `observer`: raw tracepoints on system-call exit, on the life of processes
//! and on signals.
//!
//! They copy what the watched processes write, count what they read, and judge nothing. Each
//! file owns one question: who is watched ([`scope`]), what a descriptor is ([`file`]), which
//! bytes moved ([`exit`], [`content`]), where they stand in their stream ([`stream`]).
#![no_std]
#![no_main]
#![feature(asm_experimental_arch)]

mod content;
mod counters;
mod exit;
mod file;
mod kernel;
mod net;
mod ring;
mod scope;
mod signal;
mod stream;

/// The kernel gives the helpers that read its memory to such programs only.
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";

#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
