//! SigMF metadata of a transmit file (SigMF 1.0.0): a capture per stretch without a gap, with its
//! time, and an annotation with the kind of end of its burst.

use super::{Begin, BurstEnd};
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};

/// The metadata file.
#[derive(Serialize)]
struct TransmitMetadata {
    global: TransmitGlobal,
    captures: Vec<TransmitCapture>,
    annotations: Vec<TransmitAnnotation>,
}

#[derive(Serialize)]
struct TransmitGlobal {
    #[serde(rename = "core:version")]
    version: &'static str,
    #[serde(rename = "core:datatype")]
    datatype: &'static str,
    #[serde(rename = "core:hw")]
    hardware: &'static str,
    #[serde(rename = "core:recorder")]
    recorder: &'static str,
    #[serde(rename = "core:sample_rate", skip_serializing_if = "Option::is_none")]
    rate_hz: Option<f64>,
    #[serde(rename = "core:dataset", skip_serializing_if = "Option::is_none")]
    dataset: Option<String>,
}

#[derive(Serialize)]
struct TransmitCapture {
    #[serde(rename = "core:sample_start")]
    first: u64,
    #[serde(rename = "core:global_index")]
    global_index: u64,
}

#[derive(Serialize)]
struct TransmitAnnotation {
    #[serde(rename = "core:sample_start")]
    first: u64,
    #[serde(rename = "core:sample_count")]
    count: u64,
    #[serde(rename = "core:label")]
    label: &'static str,
}

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

    fn capture(&self) -> TransmitCapture {
        TransmitCapture { first: self.first, global_index: self.begin.timestamp }
    }

    fn annotation(&self) -> Option<TransmitAnnotation> {
        let (end, how) = self.end?;
        let label = match how {
            BurstEnd::EndOfBurst => "end of burst",
            BurstEnd::Underflow => "underflow",
        };
        Some(TransmitAnnotation { first: self.first, count: end - self.first, label })
    }
}

/// Writes the metadata file of the data file `path`, completely or not at all.
pub(super) fn write_meta(path: &Path, stretches: &[CaptureSegment]) -> io::Result<()> {
    // Only a data file with the extension .sigmf-data is linked to its metadata by name.
    let is_linked = path.extension().is_some_and(|extension| extension == "sigmf-data");
    let name = path.file_name().filter(|_| !is_linked);
    let document = TransmitMetadata {
        global: TransmitGlobal {
            version: "1.0.0",
            datatype: "ci16_le",
            hardware: "emulated E320, transmit",
            recorder: concat!("millstream ", env!("CARGO_PKG_VERSION")),
            rate_hz: stretches.first().map(|first| first.begin.rate_hz),
            dataset: name.map(|name| name.to_string_lossy().into_owned()),
        },
        captures: stretches.iter().map(CaptureSegment::capture).collect(),
        annotations: stretches.iter().filter_map(CaptureSegment::annotation).collect(),
    };
    let text = serde_json::to_string_pretty(&document)?;
    Ok(millstream_output::store_whole(&meta_of(path), text.as_bytes())?)
}

/// Returns the name of the metadata file of the data file `path`.
pub(super) fn meta_of(path: &Path) -> PathBuf {
    path.with_extension("sigmf-meta")
}
