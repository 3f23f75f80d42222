//! Fuzzes what clients of the dashboard send: requests, frames and messages.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| millstream_web::exercise::bytes(bytes));
