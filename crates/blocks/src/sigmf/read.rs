//! The contents of a recording: the format and rate of its samples, and the start of its captures.

use super::fields::Fields;
use super::{SigmfError, files};
use millstream_flow::blocks::SampleFormat;
use millstream_flow::{TagDocument, TagTime};
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The largest metadata file, bytes: more than the sink's 2²⁰ captures, gaps and annotations take.
const META_BYTES_MAX: u64 = 2 << 30;

/// Extensions of SigMF whose fields this program understands.
const KNOWN_EXTENSIONS: [&str; 1] = ["millstream"];

/// A recording that can be played.
#[derive(Debug, Clone, PartialEq)]
pub struct SigmfRecording {
    /// The file with the samples.
    pub data: PathBuf,
    /// The format of the samples in that file.
    pub format: SampleFormat,
    /// Samples per second, if the recording states it: more than zero.
    pub rate_hz: Option<f64>,
    /// The number of samples; bytes behind them (`core:trailing_bytes`) are none.
    pub samples: u64,
    /// Its captures in order; a raw file has one.
    pub captures: Vec<Capture>,
    /// Annotations of samples, in the order of the samples.
    pub annotations: Vec<Annotation>,
    /// The `global` object of its metadata; `None` for raw samples.
    pub global: Option<TagDocument>,
}

/// An annotation of the samples from one on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Annotation {
    /// The sample's position in the file.
    pub first_sample: u64,
    /// The number of samples it is about, if it says so.
    pub samples: Option<u64>,
    /// Its label; without one, its comment.
    pub text: String,
    /// Its comment, beside a label.
    pub comment: Option<String>,
    /// The number of samples that are missing before its first one, if it is about a gap.
    pub missing: Option<u64>,
    /// The whole of it.
    pub document: Option<TagDocument>,
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
    /// When its first sample was received, by UTC, since 1970.
    pub utc: Option<TagTime>,
    /// The whole of it.
    pub document: Option<TagDocument>,
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
    /// Opens the recording at `path`: either file of a SigMF recording, also of one that was not
    /// completed (`.part`), or raw samples whose format is given or follows from the extension.
    ///
    /// # Errors
    /// When a file is missing, is not a recording, or cannot be played.
    pub fn open(path: &Path, format: Option<SampleFormat>) -> Result<Self, SigmfError> {
        let recording = files::of(path);
        let refused =
            |reason: &str| SigmfError::Samples { path: path.to_owned(), reason: reason.to_owned() };
        if recording.is_some() && format.is_some() {
            return Err(refused("its metadata says the format: leave --format out"));
        }
        let (mut source, trailing, whole) = match recording {
            Some(files) => {
                let (source, trailing) = read_meta(&files)?;
                (source, trailing, !files.is_part())
            }
            None => {
                let extension = path.extension().and_then(|extension| extension.to_str());
                let named = match extension {
                    Some("sigmf") => {
                        return Err(refused(
                            "it is a SigMF archive: extract it first, for example with `tar xf`",
                        ));
                    }
                    Some("sigmf-collection") => {
                        return Err(refused(
                            "it is a SigMF collection, a list of recordings: give one of these",
                        ));
                    }
                    extension => extension.and_then(SampleFormat::from_name),
                };
                let Some(format) = format.or(named) else {
                    return Err(refused(
                        "the file extension does not show the format: use .sc16, .cf32 or \
                         .sigmf-meta, or give --format sc16 or --format cf32",
                    ));
                };
                let source = Self {
                    data: path.to_owned(),
                    format,
                    rate_hz: None,
                    samples: 0,
                    captures: vec![Capture::default()],
                    annotations: Vec::new(),
                    global: None,
                };
                (source, 0, true)
            }
        };
        source.samples = count(&source.data, source.format, trailing, whole)?;
        if !whole {
            // What a crash cut off may have been described already.
            source.captures.retain(|one| one.first_sample < source.samples);
        }
        let beyond = source.captures.iter().any(|one| one.first_sample >= source.samples);
        if beyond {
            let reason = format!(
                "a capture begins behind the end of the data, which has {} samples: the data is \
                 truncated, or belongs to another recording",
                source.samples
            );
            return Err(refused(&reason));
        }
        Ok(source)
    }
}

/// Returns the number of samples in the file, at least one. A file that was not completed may end
/// with a part of a sample.
fn count(data: &Path, format: SampleFormat, trailing: u64, whole: bool) -> Result<u64, SigmfError> {
    let path = || data.to_owned();
    let found =
        std::fs::metadata(data).map_err(|source| SigmfError::Read { path: path(), source })?;
    if !found.is_file() {
        let source = std::io::Error::other("it is not a regular file");
        return Err(SigmfError::Read { path: path(), source });
    }
    let sample = format.sample_bytes() as u64;
    let Some(bytes) = found.len().checked_sub(trailing) else {
        let reason =
            format!("core:trailing_bytes is {trailing}, but the file has {} bytes", found.len());
        return Err(SigmfError::Samples { path: path(), reason });
    };
    if bytes == 0 || bytes < sample && !whole {
        return Err(SigmfError::Empty { path: path() });
    }
    if whole && bytes % sample != 0 {
        return Err(SigmfError::PartialSample { path: path(), bytes, sample_bytes: sample });
    }
    Ok(bytes / sample)
}

/// Reads the metadata file, whose JSON any program may have written.
///
/// # Errors
/// It cannot be read, is too large, or is not JSON.
pub fn read_metadata(path: &Path) -> Result<Value, SigmfError> {
    let meta = files::of(path).map_or_else(|| path.to_owned(), |files| files.meta);
    let mut text = String::new();
    let read =
        File::open(&meta).and_then(|file| file.take(META_BYTES_MAX + 1).read_to_string(&mut text));
    let read = read.and_then(|bytes| match bytes as u64 > META_BYTES_MAX {
        true => Err(std::io::Error::other("it is larger than 2 GiB, the limit of metadata")),
        false => Ok(()),
    });
    if let Err(source) = read {
        return Err(SigmfError::Read { path: meta, source });
    }
    // Some editors put a byte order mark in front.
    serde_json::from_str(text.trim_start_matches('\u{FEFF}'))
        .map_err(|source| SigmfError::Metadata { path: meta, source })
}

fn read_meta(files: &files::RecordingNames) -> Result<(SigmfRecording, u64), SigmfError> {
    let json = read_metadata(&files.meta)?;
    parse(&json, files.data.clone())
        .map_err(|reason| SigmfError::Unplayable { path: files.meta.clone(), reason })
}

/// Returns the recording without its number of samples, and the bytes behind its samples.
fn parse(json: &Value, data: PathBuf) -> Result<(SigmfRecording, u64), String> {
    let all = Fields::of(json);
    let global = Fields::of(&json["global"]);
    if all.get("collection").is_some() {
        return Err("it describes a collection: give one of its recordings".into());
    }
    if global.boolean("core:metadata_only")? == Some(true) {
        return Err("core:metadata_only is true: the recording has no samples".into());
    }
    let datatype = global.text("core:datatype")?.unwrap_or("missing");
    let format = match datatype {
        "ci16_le" => SampleFormat::Sc16,
        "cf32_le" => SampleFormat::Cf32,
        "cu8" | "ci8" => {
            return Err(format!(
                "core:datatype is {datatype}, but only ci16_le and cf32_le can be played: convert \
                 the samples with a graph, whose file_source has the format \"{datatype}\""
            ));
        }
        other => {
            return Err(format!(
                "core:datatype is {other}, but only ci16_le and cf32_le can be played: convert \
                 the samples"
            ));
        }
    };
    if global.whole("core:num_channels")?.unwrap_or(1) != 1 {
        return Err("it has several channels in one file: split them first".into());
    }
    for extension in global.list("core:extensions")? {
        let fields = Fields::of(extension);
        let name = fields.text("name")?.unwrap_or("without a name");
        if fields.boolean("optional")? == Some(false) && !KNOWN_EXTENSIONS.contains(&name) {
            return Err(format!(
                "it needs the SigMF extension {name} (core:extensions, optional = false), which \
                 is not supported"
            ));
        }
    }
    let rate_hz = global.number("core:sample_rate")?;
    if let Some(rate_hz) = rate_hz.filter(|rate_hz| !(*rate_hz > 0.0 && rate_hz.is_finite())) {
        return Err(format!(
            "core:sample_rate is {rate_hz}, but more than 0 is expected: correct it, or leave it \
             out if it is not known"
        ));
    }
    let trailing = global.whole("core:trailing_bytes")?.unwrap_or(0);
    let data = match global.text("core:dataset")? {
        None => data,
        Some(name) => {
            // A file of the same folder, as the standard says: no path that leads elsewhere.
            if Path::new(name).file_name() != Some(name.as_ref()) {
                return Err(format!(
                    "core:dataset is {name:?}, but the name of a file in the same folder is \
                     expected"
                ));
            }
            data.with_file_name(name)
        }
    };
    let captures = all.list("captures")?;
    let mut captures = captures.iter().map(capture).collect::<Result<Vec<_>, _>>()?;
    if captures.first().is_none_or(|first| first.first_sample > 0) {
        captures.insert(0, Capture::default());
    }
    if !captures.is_sorted_by_key(|one| one.first_sample) {
        return Err("its captures are not in order".into());
    }
    let annotations = all.list("annotations")?;
    let mut annotations = annotations.iter().map(annotation).collect::<Result<Vec<_>, _>>()?;
    annotations.sort_by_key(|one| one.first_sample);
    let global = Some(document("recording", &json["global"]));
    let recording =
        SigmfRecording { data, format, rate_hz, samples: 0, captures, annotations, global };
    Ok((recording, trailing))
}

fn document(text: &str, json: &Value) -> TagDocument {
    TagDocument::new(text, &json.to_string())
}

/// Returns the number of samples that are missing at an annotation, if it is about a gap.
pub(super) fn missing_in(fields: Fields<'_>) -> Result<Option<u64>, String> {
    // Recordings of earlier releases say it in words only.
    let in_words = |comment: &str| {
        let words = comment.strip_suffix(" missing before this one")?;
        words.split_once(" samples")?.0.parse().ok()
    };
    let is_place = fields.whole("core:sample_count")? == Some(0);
    let comment = fields.text("core:comment")?.filter(|_| is_place);
    let said = fields.whole("millstream:missing_samples")?;
    Ok(said.or_else(|| comment.and_then(in_words)))
}

fn annotation(json: &Value) -> Result<Annotation, String> {
    let fields = Fields::of(json);
    let first_sample = fields.whole("core:sample_start")?;
    let first_sample = first_sample.ok_or("an annotation has no core:sample_start")?;
    let samples = fields.whole("core:sample_count")?;
    let (label, comment) = (fields.text("core:label")?, fields.text("core:comment")?);
    let missing = missing_in(fields)?;
    let text = label.or(comment).unwrap_or_default().to_owned();
    let comment = label.and(comment).map(str::to_owned);
    let document = Some(document(&text, json));
    Ok(Annotation { first_sample, samples, text, comment, missing, document })
}

fn capture(json: &Value) -> Result<Capture, String> {
    let fields = Fields::of(json);
    if fields.whole("core:header_bytes")?.unwrap_or(0) > 0 {
        return Err("a capture has a header inside the data: remove it first".into());
    }
    let first_sample = fields.whole("core:sample_start")?;
    let time = fields.text("core:datetime")?;
    let time = time.and_then(|time| humantime::parse_rfc3339(time).ok());
    let since = time.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    Ok(Capture {
        first_sample: first_sample.ok_or("a capture has no core:sample_start")?,
        global_index: fields.whole("core:global_index")?,
        frequency_hz: fields.number("core:frequency")?,
        utc: since.map(TagTime::from),
        document: Some(document("capture", json)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parsed(json: Value) -> Result<SigmfRecording, String> {
        parse(&json, "x.sigmf-data".into()).map(|read| read.0)
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
