//! The metadata of a SigMF recording, as text and as JSON.

use millstream_blocks::sigmf::SigmfRecording;
use serde_json::Value;
use std::fmt::Write;

/// Captures and annotations listed in the text; `--json` has all.
const LISTED_MAX: usize = 20;

crate::results! {
    /// The metadata of a SigMF recording.
    pub struct FoundMetadata {
        /// The whole of it.
        metadata: Value,
        /// Samples that are missing at its gaps.
        missing_samples: u64,
    }
}

/// Metadata of a recording that [`SigmfRecording::open`] has read.
pub struct Metadata<'a> {
    /// The recording.
    pub source: &'a SigmfRecording,
    /// The whole of its metadata.
    pub json: Value,
}

impl Metadata<'_> {
    /// The metadata as text.
    pub fn words(&self) -> String {
        let mut text = String::new();
        for (key, value) in self.json["global"].as_object().into_iter().flatten() {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let _ = writeln!(text, "{:<12} {}", plain(key), plain(&value));
        }
        let times = self.json["captures"].as_array().map_or(&[][..], Vec::as_slice);
        list(&mut text, "captures", self.source.captures.len(), |at| {
            let capture = self.source.captures[at];
            let mut line = format!("from sample {}", capture.first_sample);
            if let Some(index) = capture.global_index {
                let _ = write!(line, ", {index} of the signal");
            }
            let same = |one: &&Value| {
                one["core:sample_start"].as_f64() == Some(capture.first_sample as f64)
            };
            if let Some(hz) = capture.frequency_hz {
                let _ = write!(line, ", {hz} Hz");
            }
            if let Some(time) =
                times.iter().find(same).and_then(|one| one["core:datetime"].as_str())
            {
                let _ = write!(line, ", {}", plain(time));
            }
            if let Some(missing) = self.missing(at) {
                let _ = write!(line, ", {missing} samples missing before it");
            }
            line
        });
        let notes = &self.source.annotations;
        list(&mut text, "annotations", notes.len(), |at| {
            let note = &notes[at];
            let mut line = format!("at sample {}", note.first_sample);
            if let Some(samples) = note.samples.filter(|samples| *samples > 0) {
                let _ = write!(line, ", {samples} samples");
            }
            let _ = write!(line, ": {}", plain(&note.text));
            // A gap has its number in the line of its capture, too.
            if let Some(comment) = &note.comment {
                let _ = write!(line, ": {}", plain(comment));
            }
            line
        });
        text
    }

    /// The metadata for the document.
    pub fn document(&self) -> FoundMetadata {
        let gaps = (0..self.source.captures.len()).filter_map(|at| self.missing(at));
        let missing_samples = gaps.fold(0, u64::saturating_add);
        FoundMetadata { metadata: self.json.clone(), missing_samples }
    }

    /// Samples that are missing before a capture.
    fn missing(&self, capture: usize) -> Option<u64> {
        let captures = &self.source.captures;
        captures[capture].missing_since(captures.get(capture.checked_sub(1)?)?)
    }
}

fn list(text: &mut String, name: &str, count: usize, line: impl Fn(usize) -> String) {
    let _ = writeln!(text, "{name:<12} {count}");
    for at in 0..count.min(LISTED_MAX) {
        let _ = writeln!(text, "             {}", line(at));
    }
    if count > LISTED_MAX {
        let _ = writeln!(text, "             and {} more: --json has all", count - LISTED_MAX);
    }
}

/// Makes foreign text safe: it must not control a terminal.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{FFFD}' } else { c }).collect()
}
