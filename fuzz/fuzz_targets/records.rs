//! `cargo +nightly fuzz run --features libfuzzer records`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| observer_fuzz::records::records(data));
