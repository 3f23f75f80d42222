//! Fuzzes a device's registers: its list of blocks, and its sample format.
#![no_main]

#[path = "../../../crates/radio/tests/all/exercise/mod.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::registers(bytes));
