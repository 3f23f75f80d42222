//! Where the samples of a transmission come from.

use super::Args;
use crate::playback::{Playback, PlaybackPlan};
use anyhow::Context;
use millstream_blocks::sigmf::SigmfRecording;
use millstream_flow::blocks::SampleFormat;
use std::path::Path;

/// The origin of the samples.
pub struct Source {
    /// The file, or standard input.
    pub name: String,
    /// Format of its samples.
    pub format: SampleFormat,
    /// The rate that its metadata says.
    pub rate_hz: Option<f64>,
    /// Samples of all; `None` when this is not known.
    pub samples: Option<u64>,
    /// Samples of time from the first sample to the end of the last; `None` when this is not known.
    pub duration_samples: Option<u64>,
    /// Starts to read.
    pub start: Box<dyn FnOnce() -> anyhow::Result<Playback>>,
}

impl Source {
    /// Opens the file; the reading begins with `start`.
    pub fn open(args: &Args) -> anyhow::Result<Self> {
        let repeats = Some(args.repeat).filter(|repeats| *repeats > 0);
        if args.input == Path::new("-") {
            let format = args.format.context(
                "standard input has no file extension that shows the sample format: add --format \
                 sc16 or --format cf32",
            )?;
            anyhow::ensure!(
                repeats == Some(1) && !args.timed,
                "standard input can be read only once and has no metadata, but --repeat and \
                 --timed need that: give a file"
            );
            return Ok(Self {
                name: "standard input".to_owned(),
                format,
                rate_hz: None,
                samples: None,
                duration_samples: None,
                start: Box::new(move || Playback::piped(format)),
            });
        }
        let recording = SigmfRecording::open(&args.input, args.format)?;
        let score = match args.timed {
            true => PlaybackPlan::timed(&recording, repeats)?,
            false => PlaybackPlan::joined(&recording, repeats),
        };
        Ok(Self {
            name: args.input.display().to_string(),
            format: recording.format,
            rate_hz: recording.rate_hz,
            samples: score.samples(),
            duration_samples: score.duration_samples(),
            start: Box::new(move || Playback::start(&recording, score)),
        })
    }
}
