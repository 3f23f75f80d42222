//! SigMF recordings: the data file and its type from the metadata file.

use super::Antenna;
use super::file::{FileAntenna, ItemFormat, OpenFile, open_regular};
use crate::Error;
use serde_json::Value;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Metadata above this size is rejected, bytes: the limit of the reader for graphs, so that what is
/// recorded can be received.
const META_BYTES_MAX: u64 = 2 << 30;

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
fn metadata(request: &OpenFile<'_>) -> Result<(PathBuf, Value), Error> {
    let meta = request.path.with_extension("sigmf-meta");
    let mut text = String::new();
    open_regular(&meta)
        .and_then(|file| file.take(META_BYTES_MAX + 1).read_to_string(&mut text))
        .map_err(|error| request.error(&meta, error.to_string()))?;
    if text.len() as u64 > META_BYTES_MAX {
        return Err(request.error(&meta, "it is larger than 2 GiB, the limit of metadata"));
    }
    let text = text.trim_start_matches('\u{FEFF}');
    let json: Value = serde_json::from_str(text).map_err(|error| {
        request.error(&meta, format!("it is not valid SigMF metadata: {error}"))
    })?;
    match unsupported(&json) {
        Some((key, value)) => {
            let reason = format!("{key} is {value}: this is not supported here");
            Err(request.error(&meta, reason))
        }
        None => Ok((meta, json)),
    }
}

/// Returns a field, and its value, that says that the data file is not the samples alone, or that
/// they are no plain ones.
fn unsupported(json: &Value) -> Option<(&'static str, &Value)> {
    let is_none = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        value => value.as_f64() == Some(0.0),
    };
    let is_one = |value: &Value| value.is_null() || value.as_f64() == Some(1.0);
    let global = &json["global"];
    let none = ["core:trailing_bytes", "core:metadata_only"].map(|key| (key, &global[key]));
    let all = |list: &'static str| json[list].as_array().into_iter().flatten();
    let headers = all("captures").map(|one| ("core:header_bytes", &one["core:header_bytes"]));
    let channels = ("core:num_channels", &global["core:num_channels"]);
    let extensions = global["core:extensions"].as_array().into_iter().flatten();
    let needed = extensions.filter(|one| one["optional"] == Value::Bool(false));
    let needed = needed.filter(|one| one["name"] != "millstream");
    let mut fields = none.into_iter().chain(headers).filter(|(_, value)| !is_none(value));
    let channels = || Some(channels).filter(|(_, value)| !is_one(value));
    let mut needed = needed.map(|one| ("core:extensions, optional = false,", &one["name"]));
    fields.next().or_else(channels).or_else(|| needed.next())
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
        Value::Null => request.path.with_extension("sigmf-data"),
        Value::String(name) if Path::new(name).file_name() == Some(name.as_ref()) => {
            request.path.with_file_name(name)
        }
        other => {
            let reason = format!("core:dataset is {other}; a file in the same folder is accepted");
            return Err(request.error(&meta, reason));
        }
    };
    Ok((data, format))
}
