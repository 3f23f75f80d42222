//! Fuzzes the header of a WAV file.
#![no_main]

#[path = "../../../crates/cli/src/verbs/inspect/wav.rs"]
mod wav;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(header) = wav::read(bytes) {
        assert!(header.data_at <= bytes.len() as u64 && header.channels > 0 && header.bits > 0);
        let there = bytes.len() as u64 - header.data_at;
        assert!([false, true].into_iter().all(|part| header.data_bytes_of(there, part).0 <= there));
    }
});
