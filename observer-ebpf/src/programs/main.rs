//! The BPF programs of `observer`: tracepoints on system-call exit, on the life of processes and on
//! signals.
//!
//! They copy what the watched processes write, count what they read, and judge nothing. Each
//! file owns one question: who is watched ([`scope`]), what a descriptor is ([`file`]), which
//! bytes moved ([`exit`], [`content`]), where they stand in their stream ([`stream`]).
#![no_std]
#![no_main]
#![feature(asm_experimental_arch)]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a checked conversion is one more branch for the verifier; what is cut is bounded before"
)]
#![expect(
    clippy::needless_pass_by_value,
    reason = "aya's macros hand the context over by value"
)]
#![expect(
    clippy::multiple_unsafe_ops_per_block,
    reason = "a field's address and the access to it are one step, with one reason"
)]

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
