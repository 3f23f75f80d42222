//! SigMF recordings: the data file and its type from the metadata file.

use super::Antenna;
use super::file::{FileAntenna, ItemFormat, OpenFile, open_regular};
use crate::Error;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Metadata above this size is rejected, bytes.
const META_BYTES_MAX: u64 = 16 << 20;

/// Opens a recording; returns it with its sample rate, Hz.
pub(crate) fn recording(path: &Path) -> Result<(Box<dyn Antenna>, f64), Error> {
    let spec = format!("recording:{}", path.display());
    let request = OpenFile { spec: &spec, path: path.to_owned(), format: None };
    let (meta, json) = metadata(&request)?;
    let rate_hz = json["global"]["core:sample_rate"].as_f64().unwrap_or(0.0);
    if !(1.0..=1e9).contains(&rate_hz) {
        let reason = format!("core:sample_rate is {rate_hz:?}; 1 Hz to 1 GHz are accepted");
        return Err(request.error(&meta, reason));
    }
    Ok((Box::new(FileAntenna::open(request)?), rate_hz))
}

/// Reads the metadata of the recording that has `request` as either of its files.
fn metadata(request: &OpenFile<'_>) -> Result<(PathBuf, serde_json::Value), Error> {
    let meta = request.path.with_extension("sigmf-meta");
    let mut text = String::new();
    open_regular(&meta)
        .and_then(|file| file.take(META_BYTES_MAX).read_to_string(&mut text))
        .map_err(|error| request.error(&meta, error.to_string()))?;
    let text = text.trim_start_matches('\u{FEFF}');
    let json: serde_json::Value = serde_json::from_str(text).map_err(|error| {
        request.error(&meta, format!("it is not valid SigMF metadata: {error}"))
    })?;
    // Fields that say that the data file is not the samples alone.
    let global = &json["global"];
    for key in ["core:trailing_bytes", "core:metadata_only"] {
        let usual = match &global[key] {
            serde_json::Value::Null | serde_json::Value::Bool(false) => true,
            value => value.as_f64() == Some(0.0),
        };
        if !usual {
            let reason = format!("{key} is {}: this is not supported here", global[key]);
            return Err(request.error(&meta, reason));
        }
    }
    Ok((meta, json))
}

/// Returns the data file and format of the recording that has `request` as either of its files.
pub(super) fn resolve(request: &OpenFile<'_>) -> Result<(PathBuf, ItemFormat), Error> {
    let (meta, json) = metadata(request)?;
    let format = match json["global"]["core:datatype"].as_str() {
        Some("ci16_le") => ItemFormat::Sc16,
        Some("cf32_le") => ItemFormat::Cf32,
        other => {
            let name = other.unwrap_or("missing");
            let reason = format!("core:datatype is {name}; ci16_le and cf32_le are accepted");
            return Err(request.error(&meta, reason));
        }
    };
    let data = match &json["global"]["core:dataset"] {
        serde_json::Value::Null => request.path.with_extension("sigmf-data"),
        serde_json::Value::String(name) if Path::new(name).file_name() == Some(name.as_ref()) => {
            request.path.with_file_name(name)
        }
        other => {
            let reason = format!("core:dataset is {other}; a file in the same folder is accepted");
            return Err(request.error(&meta, reason));
        }
    };
    Ok((data, format))
}
