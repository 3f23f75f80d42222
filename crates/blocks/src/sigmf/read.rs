//! The contents of a recording: the format and rate of its samples, and the start of its captures.

use super::SigmfError;
use millstream_flow::blocks::SampleFormat;
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The largest metadata file, bytes.
const META_BYTES_MAX: u64 = 16 << 20;

/// A recording that can be played.
#[derive(Debug, Clone, PartialEq)]
pub struct SigmfRecording {
    /// The file with the samples.
    pub data: PathBuf,
    /// The format of the samples in that file.
    pub format: SampleFormat,
    /// Samples per second, if the recording states it.
    pub rate_hz: Option<f64>,
    /// The number of samples.
    pub samples: u64,
    /// Its captures in order; a raw file has one.
    pub captures: Vec<Capture>,
    /// Annotations of samples, in the order of the samples.
    pub annotations: Vec<Annotation>,
}

/// An annotation of the samples from one on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    /// The sample's position in the file.
    pub first_sample: u64,
    /// Its label; without one, its comment.
    pub text: String,
}

/// A part of a recording without a gap.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Capture {
    /// Its first sample in the file.
    pub first_sample: u64,
    /// That sample's position in the whole signal, gaps included.
    pub global_index: Option<u64>,
    /// The frequency in the middle of its band, Hz.
    pub frequency_hz: Option<f64>,
}

impl Capture {
    /// Returns the number of samples missing between the previous capture and this one; `None`
    /// without a gap, or if the recording does not state it.
    #[must_use]
    pub fn missing_since(&self, before: &Self) -> Option<u64> {
        let passed = self.global_index?.checked_sub(before.global_index?)?;
        let missing = passed.checked_sub(self.first_sample.checked_sub(before.first_sample)?)?;
        (missing > 0).then_some(missing)
    }
}

impl SigmfRecording {
    /// Opens the recording at `path`: either file of a SigMF recording, or raw samples whose format
    /// is given or follows from the extension.
    ///
    /// # Errors
    /// When a file is missing, is not a recording, or cannot be played.
    pub fn open(path: &Path, format: Option<SampleFormat>) -> Result<Self, SigmfError> {
        let extension = path.extension().and_then(|extension| extension.to_str());
        let recording = matches!(extension, Some("sigmf-meta" | "sigmf-data"));
        if recording && format.is_some() {
            let reason = "its metadata says the format: leave --format out".to_owned();
            return Err(SigmfError::Samples { path: path.to_owned(), reason });
        }
        let mut source = if recording {
            read_meta(path)?
        } else {
            let Some(format) = format.or_else(|| extension.and_then(SampleFormat::from_name))
            else {
                let reason = "the file extension does not show the format: use .sc16, .cf32 or \
                     .sigmf-meta, or give --format sc16 or --format cf32";
                return Err(SigmfError::Samples { path: path.to_owned(), reason: reason.into() });
            };
            let captures = vec![Capture::default()];
            let (data, annotations) = (path.to_owned(), Vec::new());
            Self { data, format, rate_hz: None, samples: 0, captures, annotations }
        };
        source.samples = count(&source.data, source.format)?;
        let beyond = source.captures.iter().any(|one| one.first_sample >= source.samples);
        if beyond {
            let reason = format!(
                "a capture begins behind the end of the data, which has {} samples: the data is \
                 truncated, or belongs to another recording",
                source.samples
            );
            return Err(SigmfError::Samples { path: path.to_owned(), reason });
        }
        Ok(source)
    }
}

/// Returns the number of samples in the file, at least one.
fn count(data: &Path, format: SampleFormat) -> Result<u64, SigmfError> {
    let path = || data.to_owned();
    let found =
        std::fs::metadata(data).map_err(|source| SigmfError::Read { path: path(), source })?;
    if !found.is_file() {
        let source = std::io::Error::other("it is not a regular file");
        return Err(SigmfError::Read { path: path(), source });
    }
    let (bytes, sample) = (found.len(), format.sample_bytes() as u64);
    if bytes == 0 {
        return Err(SigmfError::Empty { path: path() });
    }
    if !bytes.is_multiple_of(sample) {
        return Err(SigmfError::PartialSample { path: path(), bytes, sample_bytes: sample });
    }
    Ok(bytes / sample)
}

fn read_meta(path: &Path) -> Result<SigmfRecording, SigmfError> {
    let meta = path.with_extension("sigmf-meta");
    let mut text = String::new();
    let read =
        File::open(&meta).and_then(|file| file.take(META_BYTES_MAX).read_to_string(&mut text));
    if let Err(source) = read {
        return Err(SigmfError::Read { path: meta, source });
    }
    let json: Value = match serde_json::from_str(&text) {
        Ok(json) => json,
        Err(source) => return Err(SigmfError::Metadata { path: meta, source }),
    };
    parse(&json, path.with_extension("sigmf-data"))
        .map_err(|reason| SigmfError::Unplayable { path: meta, reason })
}

fn parse(json: &Value, data: PathBuf) -> Result<SigmfRecording, String> {
    let global = &json["global"];
    let datatype = global["core:datatype"].as_str().unwrap_or("missing");
    let format = match datatype {
        "ci16_le" => SampleFormat::Sc16,
        "cf32_le" => SampleFormat::Cf32,
        other => {
            return Err(format!(
                "core:datatype is {other}, but only ci16_le and cf32_le can be played: convert \
                 the samples"
            ));
        }
    };
    let channels = global.get("core:num_channels").map_or(Some(1), Value::as_u64);
    if channels != Some(1) {
        return Err("it has several channels in one file: split them first".into());
    }
    let rate_hz = global["core:sample_rate"].as_f64();
    let captures = json["captures"].as_array().map_or(&[][..], Vec::as_slice);
    let mut captures = captures.iter().map(capture).collect::<Result<Vec<_>, _>>()?;
    if captures.first().is_none_or(|first| first.first_sample > 0) {
        captures.insert(0, Capture::default());
    }
    if !captures.is_sorted_by_key(|one| one.first_sample) {
        return Err("its captures are not in order".into());
    }
    let annotations = json["annotations"].as_array().map_or(&[][..], Vec::as_slice);
    let mut annotations = annotations.iter().map(annotation).collect::<Result<Vec<_>, _>>()?;
    annotations.sort_by_key(|one| one.first_sample);
    Ok(SigmfRecording { data, format, rate_hz, samples: 0, captures, annotations })
}

fn annotation(json: &Value) -> Result<Annotation, String> {
    let first_sample = json["core:sample_start"].as_u64();
    let text = ["core:label", "core:comment"].into_iter().find_map(|key| json[key].as_str());
    Ok(Annotation {
        first_sample: first_sample.ok_or("an annotation has no core:sample_start")?,
        text: text.unwrap_or_default().to_owned(),
    })
}

fn capture(json: &Value) -> Result<Capture, String> {
    if json.get("core:header_bytes").is_some_and(|bytes| bytes.as_u64() != Some(0)) {
        return Err("a capture has a header inside the data: remove it first".into());
    }
    let first_sample = json["core:sample_start"].as_u64();
    Ok(Capture {
        first_sample: first_sample.ok_or("a capture has no core:sample_start")?,
        global_index: json["core:global_index"].as_u64(),
        frequency_hz: json["core:frequency"].as_f64(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parsed(json: Value) -> Result<SigmfRecording, String> {
        parse(&json, "x.sigmf-data".into())
    }

    #[test]
    fn captures_say_where_the_time_jumps() {
        let source = parsed(json!({
            "global": { "core:datatype": "ci16_le", "core:sample_rate": 1e6 },
            "captures": [
                { "core:sample_start": 0, "core:global_index": 100 },
                { "core:sample_start": 60, "core:global_index": 200 },
            ],
        }))
        .unwrap();
        assert_eq!((source.format, source.rate_hz), (SampleFormat::Sc16, Some(1e6)));
        let indices: Vec<_> = source.captures.iter().map(|one| one.global_index).collect();
        assert_eq!(indices, [Some(100), Some(200)]);
    }

    #[test]
    fn annotations_are_put_in_the_order_of_their_samples() {
        let source = parsed(json!({
            "global": { "core:datatype": "ci16_le" },
            "annotations": [
                { "core:sample_start": 9, "core:comment": "a comment" },
                { "core:sample_start": 3, "core:label": "a label", "core:comment": "more" },
                { "core:sample_start": 4 },
            ],
        }));
        let annotations = source.unwrap().annotations;
        let read: Vec<_> =
            annotations.iter().map(|one| (one.first_sample, one.text.as_str())).collect();
        assert_eq!(read, [(3, "a label"), (4, ""), (9, "a comment")]);
    }

    #[test]
    fn what_cannot_be_played_is_named() {
        let refused = |global: Value, captures: Value, part: &str| {
            let error = parsed(json!({ "global": global, "captures": captures })).unwrap_err();
            assert!(error.contains(part), "{error}");
        };
        let sc16 = json!({ "core:datatype": "ci16_le" });
        refused(json!({}), json!([]), "core:datatype is missing, but only ci16_le and cf32_le");
        refused(json!({ "core:datatype": "rf32_le" }), json!([]), "core:datatype is rf32_le");
        let two = json!({ "core:datatype": "ci16_le", "core:num_channels": 2 });
        refused(two, json!([]), "several channels");
        let header = json!([{ "core:sample_start": 0, "core:header_bytes": 8 }]);
        refused(sc16.clone(), header, "header inside the data");
        refused(sc16.clone(), json!([{}]), "no core:sample_start");
        let back = json!([{ "core:sample_start": 9 }, { "core:sample_start": 3 }]);
        refused(sc16, back, "not in order");
        let global = json!({ "core:datatype": "ci16_le" });
        let error = parsed(json!({ "global": global, "annotations": [{}] })).unwrap_err();
        assert_eq!(error, "an annotation has no core:sample_start");
    }
}
