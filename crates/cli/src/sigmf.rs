//! SigMF metadata of a recording: one capture segment per stretch without a gap, and an annotation
//! that names each loss (SigMF 1.0.0, sections "captures array" and "annotations array").

pub mod read;

use anyhow::Context;
use millstream_radio::RxEvent;
use millstream_radio::block::Segment;
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
    /// When it began, by this machine's clock.
    pub began: SystemTime,
    /// Its stretches without a gap.
    pub segments: &'a [Segment],
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
    json!({
        "global": {
            "core:version": "1.0.0",
            "core:datatype": recording.datatype,
            "core:sample_rate": recording.rate_hz,
            "core:hw": recording.hardware,
            "core:recorder": concat!("millstream ", env!("CARGO_PKG_VERSION")),
        },
        "captures": captures(recording),
        "annotations": annotations(recording.segments),
    })
}

fn captures(recording: &Recording<'_>) -> Vec<Value> {
    let mut captures: Vec<Value> = recording
        .segments
        .iter()
        .map(|segment| {
            let mut capture = json!({ "core:sample_start": segment.first_sample });
            if let Some(ticks) = segment.time_ticks {
                capture["core:global_index"] = json!(ticks);
            }
            capture
        })
        .collect();
    if captures.is_empty() {
        captures.push(json!({ "core:sample_start": 0 }));
    }
    let began = humantime::format_rfc3339_micros(recording.began).to_string();
    captures[0]["core:datetime"] = json!(began);
    captures
}

fn annotations(segments: &[Segment]) -> Vec<Value> {
    let gap = |segment: &Segment| {
        let (label, comment) = describe(segment.event)?;
        Some(json!({
            "core:sample_start": segment.first_sample,
            "core:sample_count": 0,
            "core:label": label,
            "core:comment": comment,
        }))
    };
    segments.iter().filter_map(gap).collect()
}

fn describe(event: RxEvent) -> Option<(&'static str, String)> {
    match event {
        RxEvent::Overrun { samples } => {
            Some(("overrun", format!("{samples} samples missing before this one")))
        }
        RxEvent::SequenceGap { packets, samples } => {
            let comment = format!("{samples} samples in {packets} packets missing before this one");
            Some(("packets lost", comment))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gap_begins_a_capture_and_is_named() {
        let first = Segment { first_sample: 0, time_ticks: Some(1000), event: RxEvent::None };
        let event = RxEvent::SequenceGap { packets: 2, samples: 40 };
        let second = Segment { first_sample: 60, time_ticks: Some(1100), event };
        let meta = meta(&Recording {
            datatype: "ci16_le",
            rate_hz: 1e6,
            hardware: "e320",
            began: SystemTime::UNIX_EPOCH,
            segments: &[first, second],
        });
        assert_eq!(meta["captures"][0]["core:datetime"], "1970-01-01T00:00:00.000000Z");
        assert_eq!(meta["captures"][1]["core:sample_start"], 60);
        assert_eq!(meta["captures"][1]["core:global_index"], 1100);
        assert_eq!(meta["annotations"].as_array().unwrap().len(), 1);
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
            began: SystemTime::UNIX_EPOCH,
            segments: &[],
        });
        assert_eq!(meta["captures"].as_array().unwrap().len(), 1);
    }
}
