//! Fuzzes CHDR headers and the views over them.
#![no_main]

#[path = "../../../crates/wire/tests/all/exercise/mod.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::chdr(bytes));
