//! Fuzzes histories of the user-space IPv4 host: frames, datagrams, time.
#![no_main]

#[path = "../../../crates/net/tests/all/exercise/mod.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::history(bytes));
