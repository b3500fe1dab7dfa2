//! `cargo +nightly fuzz run --features libfuzzer framer`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| observer_fuzz::targets::framer(data));
