//! Fuzzes the scan for the end of a MessagePack message.
#![no_main]

#[path = "../../../crates/wire/tests/all/exercise/mod.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::msgpack(bytes));
