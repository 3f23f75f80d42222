//! SigMF metadata of a transmit file (SigMF 1.0.0): a capture per stretch without a gap, with its
//! time, and an annotation with the kind of end of its burst.

use super::{Begin, BurstEnd};
use serde_json::{Value, json};
use std::io;
use std::path::{Path, PathBuf};

/// Samples without a gap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CaptureSegment {
    first: u64,
    begin: Begin,
    /// One past its last sample, and the kind of end; `None` if samples behind it are missing.
    end: Option<(u64, BurstEnd)>,
}

impl CaptureSegment {
    /// Returns a segment that begins with sample `first` of the file.
    pub fn new(first: u64, begin: Begin) -> Self {
        Self { first, begin, end: None }
    }

    /// Ends the segment before sample `end` of the file.
    pub fn finish(&mut self, end: u64, how: BurstEnd) {
        self.end = Some((end, how));
    }

    fn capture(&self) -> Value {
        json!({ "core:sample_start": self.first, "core:global_index": self.begin.timestamp })
    }

    fn annotation(&self) -> Option<Value> {
        let (end, how) = self.end?;
        let label = match how {
            BurstEnd::EndOfBurst => "end of burst",
            BurstEnd::Underflow => "underflow",
        };
        Some(json!({
            "core:sample_start": self.first,
            "core:sample_count": end - self.first,
            "core:label": label,
        }))
    }
}

/// Writes the metadata file of the data file `path`, completely or not at all.
pub(super) fn write_meta(path: &Path, stretches: &[CaptureSegment]) -> io::Result<()> {
    let mut global = json!({
        "core:version": "1.0.0",
        "core:datatype": "ci16_le",
        "core:hw": "emulated E320, transmit",
        "core:recorder": concat!("millstream ", env!("CARGO_PKG_VERSION")),
    });
    if let Some(first) = stretches.first() {
        global["core:sample_rate"] = json!(first.begin.rate_hz);
    }
    // Only a data file with the extension .sigmf-data is linked to its metadata by name.
    if path.extension().is_none_or(|extension| extension != "sigmf-data") {
        global["core:dataset"] = json!(path.file_name().map(|name| name.to_string_lossy()));
    }
    let document = json!({
        "global": global,
        "captures": stretches.iter().map(CaptureSegment::capture).collect::<Vec<_>>(),
        "annotations": stretches.iter().filter_map(CaptureSegment::annotation).collect::<Vec<_>>(),
    });
    let text = serde_json::to_string_pretty(&document)?;
    Ok(millstream_output::store_whole(&meta_of(path), text.as_bytes())?)
}

/// Returns the name of the metadata file of the data file `path`.
pub(super) fn meta_of(path: &Path) -> PathBuf {
    path.with_extension("sigmf-meta")
}
