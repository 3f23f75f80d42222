//! Fuzzes a walk through a device that answers management packets arbitrarily.
#![no_main]

#[path = "../../../crates/radio/tests/all/exercise/mod.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::topology(bytes));
