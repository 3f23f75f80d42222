//! Fuzzes stream status and stream command packets.
#![no_main]

#[path = "../../../crates/wire/tests/all/exercise/mod.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::stream(bytes));
