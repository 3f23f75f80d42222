//! SigMF metadata of a recording: one capture segment per part without a gap, and annotations that
//! name each loss and each tag (SigMF 1.0.0, sections "captures array" and "annotations array").

use millstream_flow::{Tag, keys};
use millstream_output::store_whole;
use serde_json::{Value, json};
use std::path::Path;
use std::time::SystemTime;

/// The contents of the metadata.
#[derive(Clone, Debug)]
pub struct RecordingDescription<'a> {
    /// SigMF's name of the sample format.
    pub datatype: &'static str,
    /// Samples per second, if known.
    pub rate_hz: Option<f64>,
    /// The frequency in the middle of its band, Hz, if known; stretches may have others.
    pub frequency_hz: Option<f64>,
    /// The device, as free text.
    pub hardware: Option<&'a str>,
    /// A description, as free text.
    pub description: Option<String>,
    /// The start time, by this machine's clock.
    pub began: SystemTime,
    /// Its parts without a gap.
    pub stretches: &'a [CaptureSegment],
    /// Tags that become annotations, in the order of their samples.
    pub notes: &'a [Tag],
    /// Samples in the data file.
    pub samples: u64,
}

/// The start of a recording, or its continuation after missing samples. Several segments at one
/// sample stand for several events before it; the last one has its time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CaptureSegment {
    /// Samples in the file before it.
    pub first_sample: u64,
    /// Its first sample's position in the whole signal, gaps included.
    pub global_index: Option<u64>,
    /// The cause of the missing samples before it, and their number, as text.
    pub gap: Option<(String, String)>,
    /// The frequency in the middle of its band, Hz, if it is not that of the recording.
    pub frequency_hz: Option<f64>,
}

/// Writes the metadata file, which gets its name when it is complete.
///
/// # Errors
/// When the file cannot be written; an older one remains.
pub fn write_meta(path: &Path, recording: &RecordingDescription<'_>) -> std::io::Result<()> {
    let text = serde_json::to_string_pretty(&meta(recording))?;
    Ok(store_whole(path, text.as_bytes())?)
}

fn meta(recording: &RecordingDescription<'_>) -> Value {
    let mut global = json!({
        "core:version": "1.0.0",
        "core:datatype": recording.datatype,
        "core:recorder": concat!("millstream ", env!("CARGO_PKG_VERSION")),
    });
    if let Some(rate_hz) = recording.rate_hz {
        global["core:sample_rate"] = json!(rate_hz);
    }
    if let Some(hardware) = recording.hardware {
        global["core:hw"] = json!(hardware);
    }
    if let Some(description) = &recording.description {
        global["core:description"] = json!(description);
    }
    json!({
        "global": global,
        "captures": captures(recording),
        "annotations": annotations(recording),
    })
}

fn captures(recording: &RecordingDescription<'_>) -> Vec<Value> {
    let mut captures = Vec::new();
    let mut stretches = recording.stretches.iter().peekable();
    while let Some(stretch) = stretches.next() {
        // The last segment at a sample has its time; no segment begins behind the last sample.
        let next = stretches.peek().map_or(recording.samples, |next| next.first_sample);
        if stretch.first_sample == next {
            continue;
        }
        let mut capture = json!({ "core:sample_start": stretch.first_sample });
        if let Some(index) = stretch.global_index {
            capture["core:global_index"] = json!(index);
        }
        if let Some(frequency_hz) = stretch.frequency_hz.or(recording.frequency_hz) {
            capture["core:frequency"] = json!(frequency_hz);
        }
        captures.push(capture);
    }
    if captures.is_empty() {
        captures.push(json!({ "core:sample_start": 0 }));
        if let Some(frequency_hz) = recording.frequency_hz {
            captures[0]["core:frequency"] = json!(frequency_hz);
        }
    }
    let began = humantime::format_rfc3339_micros(recording.began).to_string();
    captures[0]["core:datetime"] = json!(began);
    captures
}

/// Returns the annotations in the order of their samples, as the standard requires.
fn annotations(recording: &RecordingDescription<'_>) -> Vec<Value> {
    let gap = |stretch: &CaptureSegment| {
        let (label, missing) = stretch.gap.as_ref()?;
        Some(json!({
            "core:sample_start": stretch.first_sample,
            "core:sample_count": 0,
            "core:label": label,
            "core:comment": format!("{missing} missing before this one"),
        }))
    };
    let note = |tag: &Tag| {
        let value = tag.value.to_string();
        let mut note = json!({ "core:sample_start": tag.offset });
        if tag.key == keys::ANNOTATION {
            note["core:label"] = json!(value);
        } else {
            note["core:label"] = json!(tag.key.name());
            note["core:comment"] = json!(value);
        }
        note
    };
    let gaps = recording.stretches.iter().filter_map(gap);
    let mut all: Vec<Value> = gaps.chain(recording.notes.iter().map(note)).collect();
    all.sort_by_key(|one| one["core:sample_start"].as_u64());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording(stretches: &[CaptureSegment], samples: u64) -> RecordingDescription<'_> {
        RecordingDescription {
            datatype: "ci16_le",
            rate_hz: Some(1e6),
            frequency_hz: Some(99e6),
            hardware: None,
            description: None,
            began: SystemTime::UNIX_EPOCH,
            stretches,
            notes: &[],
            samples,
        }
    }

    #[test]
    fn every_gap_begins_a_capture_and_is_named() {
        let gap = |label: &str, missing: &str| Some((label.to_owned(), missing.to_owned()));
        let at = |first_sample, global_index, gap| CaptureSegment {
            first_sample,
            global_index,
            gap,
            frequency_hz: (first_sample == 90).then_some(88e6),
        };
        let lost = "40 samples in 2 packets";
        let stretches = [
            at(0, Some(1000), None),
            at(60, None, gap("packets lost", lost)),
            at(60, Some(1107), gap("disk too slow", "7 samples")),
            at(90, None, gap("disk too slow", "7 samples")),
        ];
        let retuned = meta(&recording(&stretches, 120));
        assert_eq!(retuned["captures"][2]["core:frequency"], 88e6);
        let meta = meta(&recording(&stretches, 90));
        assert_eq!(meta["captures"][0]["core:datetime"], "1970-01-01T00:00:00.000000Z");
        assert_eq!(meta["captures"][1]["core:sample_start"], 60);
        assert_eq!(meta["captures"][1]["core:global_index"], 1107);
        assert_eq!(meta["captures"][1]["core:frequency"], 99e6);
        assert_eq!(meta["captures"].as_array().unwrap().len(), 2);
        let labels: Vec<_> =
            meta["annotations"].as_array().unwrap().iter().map(|one| &one["core:label"]).collect();
        assert_eq!(labels, ["packets lost", "disk too slow", "disk too slow"]);
        assert_eq!(meta["annotations"][1]["core:comment"], "7 samples missing before this one");
        let comment = &meta["annotations"][0]["core:comment"];
        assert_eq!(*comment, "40 samples in 2 packets missing before this one");
    }

    #[test]
    fn metadata_that_cannot_be_written_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sigmf-meta");
        write_meta(&path, &recording(&[], 0)).unwrap();
        let before = std::fs::read(&path).unwrap();
        // The name of the incomplete file is in use.
        std::fs::create_dir(folder.path().join("a.sigmf-meta.part")).unwrap();
        write_meta(&path, &recording(&[], 1)).unwrap_err();
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }

    #[test]
    fn a_recording_without_samples_still_has_a_capture() {
        let meta = meta(&recording(&[], 0));
        assert_eq!(meta["captures"].as_array().unwrap().len(), 1);
    }
}
