//! Fuzzes the reader of SigMF recordings: for any metadata, a recording that opens has a rate that
//! can be played, samples that are in its file, and captures and annotations in order.
#![no_main]

use std::path::PathBuf;
use std::sync::OnceLock;

use millstream_blocks::sigmf::SigmfRecording;

/// Bytes of the samples, which are always there.
const DATA_BYTES: usize = 4096;

/// Returns the name of the metadata; the folder is in memory and goes with the fuzzer's own.
fn meta() -> &'static PathBuf {
    static META: OnceLock<PathBuf> = OnceLock::new();
    META.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("sigmf-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("there is memory");
        std::fs::write(folder.join("a.sigmf-data"), [7; DATA_BYTES]).expect("there is memory");
        folder.join("a.sigmf-meta")
    })
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    std::fs::write(meta(), bytes).expect("there is memory");
    let recording = match SigmfRecording::open(meta(), None) {
        Ok(recording) => recording,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert!(recording.rate_hz.is_none_or(|hz| hz > 0.0 && hz.is_finite()));
    let bytes = recording.samples * recording.format.sample_bytes() as u64;
    assert!(recording.samples > 0 && bytes <= DATA_BYTES as u64);
    assert!(recording.captures.is_sorted_by_key(|one| one.first_sample));
    assert!(recording.captures.iter().all(|one| one.first_sample < recording.samples));
    assert!(recording.annotations.is_sorted_by_key(|one| one.first_sample));
    for two in recording.captures.windows(2) {
        let _ = two[1].missing_since(&two[0]);
    }
});
