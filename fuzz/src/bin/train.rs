//! Fuzzes the code that splits trains of datagrams (UDP GSO over a veth pair): the frame is a
//! sender's, the header before it the kernel's.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| millstream_link::packet::exercise_train(bytes));
