//! `cargo +nightly fuzz run --features libfuzzer jsonrpc`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| observer_fuzz::targets::jsonrpc(data));
