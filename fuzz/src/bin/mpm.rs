//! Fuzzes MPM discovery requests and replies.
#![no_main]

#[path = "../../../crates/wire/tests/all/exercise/mod.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::mpm(bytes));
