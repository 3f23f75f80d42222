//! Fuzzes what comes over the RPC connection, and what a session makes of it.
#![no_main]

#[path = "../../../crates/radio/tests/all/exercise/mod.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::answers(bytes));
