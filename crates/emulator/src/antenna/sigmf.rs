//! SigMF recordings: the data file and its type from the metadata file.

use super::file::{ItemFormat, OpenFile};
use crate::Error;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

/// Metadata above this size is rejected, bytes.
const META_BYTES_MAX: u64 = 16 << 20;

/// Returns the data file and format of the recording that has `request` as either of its files.
pub(super) fn resolve(request: &OpenFile<'_>) -> Result<(PathBuf, ItemFormat), Error> {
    let meta = request.path.with_extension("sigmf-meta");
    let mut text = String::new();
    File::open(&meta)
        .and_then(|file| file.take(META_BYTES_MAX).read_to_string(&mut text))
        .map_err(|error| request.error(&meta, error.to_string()))?;
    let json: serde_json::Value = serde_json::from_str(&text)
        .map_err(|error| request.error(&meta, format!("not SigMF metadata: {error}")))?;
    let format = match json["global"]["core:datatype"].as_str() {
        Some("ci16_le") => ItemFormat::Sc16,
        Some("cf32_le") => ItemFormat::Cf32,
        other => {
            let name = other.unwrap_or("missing");
            let reason = format!("core:datatype is {name}; ci16_le and cf32_le are accepted");
            return Err(request.error(&meta, reason));
        }
    };
    Ok((request.path.with_extension("sigmf-data"), format))
}
