//! Fuzzes what reads the control messages beside received datagrams.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| millstream_link::udp::exercise_notes(bytes));
