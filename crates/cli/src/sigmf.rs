//! SigMF metadata of a recording: one capture segment per stretch without a gap, and an annotation
//! that names each loss (SigMF 1.0.0, sections "captures array" and "annotations array").

pub mod read;

use anyhow::Context;
use millstream_radio::RxEvent;
use millstream_radio::block::{Gap, Segment};
use serde_json::{Value, json};
use std::path::Path;
use std::time::SystemTime;

/// What the metadata says.
pub struct Recording<'a> {
    /// SigMF's name of the sample format.
    pub datatype: &'static str,
    /// Samples per second.
    pub rate_hz: f64,
    /// The device, for people.
    pub hardware: &'a str,
    /// The number of this channel among those recorded at the same moments, and how many they are.
    pub channel: Option<(usize, usize)>,
    /// When it began, by this machine's clock.
    pub began: SystemTime,
    /// Its stretches without a gap.
    pub segments: &'a [Segment],
    /// Samples in the data file.
    pub samples: u64,
}

/// Writes the metadata file.
///
/// # Errors
/// When the file cannot be written.
pub fn write_meta(path: &Path, recording: &Recording<'_>) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(&meta(recording))?;
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn meta(recording: &Recording<'_>) -> Value {
    let mut meta = json!({
        "global": {
            "core:version": "1.0.0",
            "core:datatype": recording.datatype,
            "core:sample_rate": recording.rate_hz,
            "core:hw": recording.hardware,
            "core:recorder": concat!("millstream ", env!("CARGO_PKG_VERSION")),
        },
        "captures": captures(recording),
        "annotations": annotations(recording.segments),
    });
    if let Some((number, count)) = recording.channel {
        let text = format!("channel {number}, one of {count} recorded at the same moments");
        meta["global"]["core:description"] = json!(text);
    }
    meta
}

fn captures(recording: &Recording<'_>) -> Vec<Value> {
    let mut captures = Vec::new();
    let mut segments = recording.segments.iter().peekable();
    while let Some(segment) = segments.next() {
        // The last one that begins at a sample has its time; behind the last sample none begins.
        let next = segments.peek().map_or(recording.samples, |next| next.first_sample);
        if segment.first_sample == next {
            continue;
        }
        let mut capture = json!({ "core:sample_start": segment.first_sample });
        if let Some(ticks) = segment.time_ticks {
            capture["core:global_index"] = json!(ticks);
        }
        captures.push(capture);
    }
    if captures.is_empty() {
        captures.push(json!({ "core:sample_start": 0 }));
    }
    let began = humantime::format_rfc3339_micros(recording.began).to_string();
    captures[0]["core:datetime"] = json!(began);
    captures
}

fn annotations(segments: &[Segment]) -> Vec<Value> {
    let gap = |segment: &Segment| {
        let (label, comment) = describe(segment.gap?)?;
        Some(json!({
            "core:sample_start": segment.first_sample,
            "core:sample_count": 0,
            "core:label": label,
            "core:comment": comment,
        }))
    };
    segments.iter().filter_map(gap).collect()
}

fn describe(gap: Gap) -> Option<(&'static str, String)> {
    let (label, missing) = match gap {
        Gap::Stream(RxEvent::Overrun { samples }) => ("overrun", format!("{samples} samples")),
        Gap::Stream(RxEvent::SequenceGap { packets, samples }) => {
            ("packets lost", format!("{samples} samples in {packets} packets"))
        }
        Gap::Full { samples } => ("disk too slow", format!("{samples} samples")),
        Gap::Stream(_) => return None,
    };
    Some((label, format!("{missing} missing before this one")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gap_begins_a_capture_and_is_named() {
        let first = Segment { first_sample: 0, time_ticks: Some(1000), gap: None };
        let gap = Some(Gap::Stream(RxEvent::SequenceGap { packets: 2, samples: 40 }));
        let lost = Segment { first_sample: 60, time_ticks: None, gap };
        let gap = Some(Gap::Full { samples: 7 });
        let second = Segment { first_sample: 60, time_ticks: Some(1107), gap };
        let last = Segment { first_sample: 90, time_ticks: None, gap };
        let meta = meta(&Recording {
            datatype: "ci16_le",
            rate_hz: 1e6,
            hardware: "e320",
            channel: None,
            began: SystemTime::UNIX_EPOCH,
            segments: &[first, lost, second, last],
            samples: 90,
        });
        assert_eq!(meta["captures"][0]["core:datetime"], "1970-01-01T00:00:00.000000Z");
        assert_eq!(meta["captures"][1]["core:sample_start"], 60);
        assert_eq!(meta["captures"][1]["core:global_index"], 1107);
        assert_eq!(meta["captures"].as_array().unwrap().len(), 2);
        let labels: Vec<_> =
            meta["annotations"].as_array().unwrap().iter().map(|one| &one["core:label"]).collect();
        assert_eq!(labels, ["packets lost", "disk too slow", "disk too slow"]);
        assert_eq!(meta["annotations"][1]["core:comment"], "7 samples missing before this one");
        assert_eq!(
            meta["annotations"][0]["core:comment"],
            "40 samples in 2 packets missing before this one"
        );
    }

    #[test]
    fn a_recording_without_samples_still_has_a_capture() {
        let meta = meta(&Recording {
            datatype: "cf32_le",
            rate_hz: 1e6,
            hardware: "e320",
            channel: None,
            began: SystemTime::UNIX_EPOCH,
            segments: &[],
            samples: 0,
        });
        assert_eq!(meta["captures"].as_array().unwrap().len(), 1);
    }
}
