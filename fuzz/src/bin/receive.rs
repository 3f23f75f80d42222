//! Fuzzes histories of a receive stream: packets, their losses and delays, and the caller's
//! actions.
#![no_main]

#[path = "../../../crates/radio/tests/all/exercise/mod.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::receive(bytes));
