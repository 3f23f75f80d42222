//! The source of a recording, with its metadata as tags.

use super::{Annotation, Capture, SigmfError, SigmfRecording};
use millstream_flow::blocks::FileSource;
use millstream_flow::{
    Block, BlockError, Context, Gauge, Metric, PortVisitor, Ports, TagTime, TagValue, Work, keys,
};
use std::path::Path;

/// Reads the samples of a SigMF recording, then ends.
///
/// # Stream outputs
/// - `out`: the samples; full scale of integers is 1.0. Tags: `rx_rate_hz` on the first; `rx_time`
///   on the first of every capture whose position in the signal is known, from the index and the
///   rate; `loss_cause` and `loss_items` where samples are missing before one; `annotation` with
///   the label, or else the comment, of every annotation (its first 22 bytes).
///
/// # Metrics
/// `rate_hz` of the recording.
#[derive(Debug)]
pub struct SigmfSource {
    samples: FileSource,
    rate_hz: Option<f64>,
    captures: Vec<Capture>,
    annotations: Vec<Annotation>,
    /// Captures that have been tagged.
    told: usize,
    /// Annotations that have been tagged.
    read: usize,
    shown: Gauge,
}

impl SigmfSource {
    /// Opens a recording by either of its files.
    ///
    /// # Errors
    /// [`SigmfError`], or an error of the data file.
    pub fn open(path: &Path) -> Result<Self, BlockError> {
        let extension = path.extension().and_then(|extension| extension.to_str());
        if !matches!(extension, Some("sigmf-meta" | "sigmf-data")) {
            let reason = "name the .sigmf-meta or .sigmf-data of a recording; a file_source reads \
                          raw samples";
            let path = path.to_owned();
            return Err(SigmfError::Samples { path, reason: reason.into() }.into());
        }
        let source = SigmfRecording::open(path, None)?;
        let samples = FileSource::open(&source.data, Some(source.format))?;
        let shown = Gauge::new();
        shown.set(source.rate_hz.unwrap_or(f64::NAN));
        let SigmfRecording { rate_hz, captures, annotations, .. } = source;
        Ok(Self { samples, rate_hz, captures, annotations, told: 0, read: 0, shown })
    }

    /// Tags the captures that begin in the samples of the next output.
    fn tell(&mut self) {
        let position = self.samples.output.position();
        let room = self.samples.output.slice_mut().len() as u64;
        while let Some(capture) = self.captures.get(self.told).copied() {
            let Some(index) = capture.first_sample.checked_sub(position).filter(|at| *at < room)
            else {
                break;
            };
            let missing = self.missing_before(self.told);
            let output = &mut self.samples.output;
            let index = index as usize;
            if self.told == 0
                && let Some(rate_hz) = self.rate_hz
            {
                output.tag(index, keys::RX_RATE_HZ, rate_hz);
            }
            if let (Some(ticks), Some(rate_hz)) = (capture.global_index, self.rate_hz) {
                output.tag(index, keys::RX_TIME, TagTime::from_ticks(ticks, rate_hz));
            }
            if let Some(missing) = missing {
                output.tag(index, keys::LOSS_CAUSE, TagValue::text("recording"));
                output.tag(index, keys::LOSS_ITEMS, missing);
            }
            self.told += 1;
        }
    }

    /// Tags the annotations that begin in the samples of the next output.
    fn annotate(&mut self) {
        let position = self.samples.output.position();
        let room = self.samples.output.slice_mut().len() as u64;
        while let Some(annotation) = self.annotations.get(self.read) {
            let Some(index) = annotation.first_sample.checked_sub(position).filter(|at| *at < room)
            else {
                break;
            };
            let text = TagValue::text(&annotation.text);
            self.samples.output.tag(index as usize, keys::ANNOTATION, text);
            self.read += 1;
        }
    }

    /// Returns the number of samples missing before a capture, by the indices.
    fn missing_before(&self, capture: usize) -> Option<u64> {
        let before = self.captures.get(capture.checked_sub(1)?)?;
        self.captures[capture].missing_since(before)
    }
}

impl Ports for SigmfSource {
    fn ports(&mut self, ports: &mut dyn PortVisitor) {
        self.samples.ports(ports);
    }
}

impl Block for SigmfSource {
    fn work(&mut self, context: &mut Context) -> Result<Work, BlockError> {
        self.tell();
        self.annotate();
        self.samples.work(context)
    }

    fn metrics(&self) -> Vec<(&'static str, Metric)> {
        vec![("rate_hz", Metric::from(&self.shown))]
    }
}
