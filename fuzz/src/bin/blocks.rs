//! Fuzzes the streams of blocks without time: packets to the receiver, reports to the sender.
#![no_main]

#[path = "../../../crates/radio/tests/all/exercise/mod.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::blocks(bytes));
