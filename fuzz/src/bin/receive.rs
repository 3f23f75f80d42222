//! Fuzzes histories of a receive stream: packets, what becomes of them, and what the caller does.
#![no_main]

#[path = "../../../crates/radio/tests/all/exercise/mod.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::receive(bytes));
