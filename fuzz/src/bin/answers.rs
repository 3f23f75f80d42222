//! Fuzzes the bytes of the RPC connection, and a session that handles them.
#![no_main]

#[path = "../../../crates/radio/tests/all/exercise/mod.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::answers(bytes));
