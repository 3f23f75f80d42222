//! Fuzzes the reader of the control messages of received datagrams.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| millstream_link::udp::exercise_notes(bytes));
