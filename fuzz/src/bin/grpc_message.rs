//! Fuzzes the messages of gRPC calls.
#![no_main]

#[path = "../../../crates/mpm/tests/all/exercise/mod.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::message(bytes));
