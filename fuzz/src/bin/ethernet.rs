//! Fuzzes whole frames: Ethernet, ARP, IPv4, UDP and ICMP.
#![no_main]

#[path = "../../../crates/wire/tests/all/exercise/mod.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::ethernet(bytes));
