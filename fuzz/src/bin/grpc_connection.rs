//! Fuzzes the bytes of a gRPC connection, at both of its ends.
#![no_main]

#[path = "../../../crates/mpm/tests/all/exercise/mod.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::connection(bytes));
