//! Fuzzes a transmit stream and an emulated radio in simulated time: the bytes choose faults of the
//! network and of the device, corrupt packets, and the caller's actions.
#![no_main]
#![allow(dead_code, unused_imports, reason = "the modules have tests besides")]

#[path = "../../../crates/radio/tests/all/common/mod.rs"]
mod common;
#[path = "../../../crates/radio/tests/all/tx_played/mod.rs"]
mod tx_played;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tx_played::endure(bytes));
