//! The source of a recording, with its metadata as tags.

use super::{Annotation, Capture, SigmfError, SigmfRecording};
use millstream_flow::blocks::FileSource;
use millstream_flow::{
    Block, BlockError, Context, Gauge, MessageSpec, Metric, ParameterKind, ParameterValue,
    PortVisitor, Ports, TagTime, TagValue, Work, keys,
};
use std::path::Path;
use std::time::Duration;

/// Interval at which a source that waits at its end looks for a message.
const AT_END: Duration = Duration::from_millis(20);

/// Reads the samples of a SigMF recording, then ends.
///
/// # Stream outputs
/// - `out`: the samples; full scale of integers is 1.0. Tags: `rx_rate_hz` on the first; `rx_time`
///   on the first of every capture whose position in the signal is known, from the index and the
///   rate; `rx_freq_hz` where a capture has another frequency than the one before; `loss_cause` and
///   `loss_items` where samples are missing before one; `annotation` with the label, or else the
///   comment, of every annotation (its first 22 bytes).
///
/// # Messages
/// `position_s`: goes on at this time of the samples, seconds from the first one. The first sample
/// there has the tags `rx_time` and `rx_freq_hz`, if its time and frequency are known.
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
    /// All samples of the file.
    count: u64,
    /// A position in the file, and that of the output at the same time.
    from: (u64, u64),
    /// Whether the next sample is the first after a seek.
    has_jumped: bool,
    /// Whether the next sample is the first of a part.
    begins_later: bool,
    waits_at_end: bool,
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
        let SigmfRecording { rate_hz, captures, annotations, samples: count, .. } = source;
        Ok(Self {
            samples,
            rate_hz,
            captures,
            annotations,
            told: 0,
            read: 0,
            shown,
            count,
            from: (0, 0),
            has_jumped: false,
            begins_later: false,
            waits_at_end: false,
        })
    }

    /// Reads only a part of the file: `count` samples from `first` on, or up to its end if that
    /// comes earlier. Its first sample has the rate and the time as tags.
    ///
    /// # Errors
    /// The data file cannot be read.
    pub fn part(mut self, first: u64, count: u64) -> Result<Self, BlockError> {
        self.samples = self.samples.part(first, count)?;
        if first > 0 {
            self.from = (first, 0);
            self.told = self.captures.partition_point(|capture| capture.first_sample <= first);
            self.read = self.annotations.partition_point(|one| one.first_sample < first);
            (self.has_jumped, self.begins_later) = (true, true);
        }
        Ok(self)
    }

    /// Waits at the end of the samples for a message that goes back, in place of ending.
    #[must_use]
    pub fn waiting_at_end(mut self) -> Self {
        self.waits_at_end = true;
        self
    }

    /// Returns the position in the file of the next sample.
    fn position(&self) -> u64 {
        self.from.0 + (self.samples.output.position() - self.from.1)
    }

    fn seek(&mut self, position_s: f64) -> Result<(), BlockError> {
        let rate_hz = self.rate_hz.ok_or(
            "the recording does not contain its sample rate, so a time has no place in it: add \
             core:sample_rate to it",
        )?;
        let end_s = self.count as f64 / rate_hz;
        if !(0.0..=end_s).contains(&position_s) {
            return Err(format!("the recording has 0 to {end_s} s, but got {position_s} s").into());
        }
        let sample = ((position_s * rate_hz).round() as u64).min(self.count);
        self.samples.seek(sample)?;
        self.from = (sample, self.samples.output.position());
        self.told = self.captures.partition_point(|capture| capture.first_sample <= sample);
        self.read = self.annotations.partition_point(|one| one.first_sample < sample);
        self.has_jumped = true;
        Ok(())
    }

    /// Tags the first sample after a seek with its time. Between it and the one before, nothing is
    /// lost.
    fn tell_jump(&mut self) {
        let position = self.position();
        if std::mem::take(&mut self.begins_later)
            && let Some(rate_hz) = self.rate_hz
        {
            self.samples.output.tag(0, keys::RX_RATE_HZ, rate_hz);
        }
        let Some(capture) = self.told.checked_sub(1).and_then(|at| self.captures.get(at)) else {
            return;
        };
        if let (Some(index), Some(rate_hz)) = (capture.global_index, self.rate_hz) {
            let ticks = index + (position - capture.first_sample);
            self.samples.output.tag(0, keys::RX_TIME, TagTime::from_ticks(ticks, rate_hz));
        }
        if let Some(hz) = capture.frequency_hz {
            self.samples.output.tag(0, keys::RX_FREQ_HZ, hz);
        }
    }

    /// Tags the captures that begin in the samples of the next output.
    fn tell(&mut self) {
        let room = self.samples.output.slice_mut().len() as u64;
        if room > 0 && std::mem::take(&mut self.has_jumped) {
            self.tell_jump();
        }
        let position = self.position();
        while let Some(capture) = self.captures.get(self.told).copied() {
            let Some(index) = capture.first_sample.checked_sub(position).filter(|at| *at < room)
            else {
                break;
            };
            let missing = self.missing_before(self.told);
            let before = self.told.checked_sub(1).and_then(|before| self.captures.get(before));
            let is_tuned = before.is_some_and(|before| before.frequency_hz != capture.frequency_hz);
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
            if let Some(hz) = capture.frequency_hz.filter(|_| is_tuned) {
                output.tag(index, keys::RX_FREQ_HZ, hz);
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
        let position = self.position();
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
        Ok(match self.samples.work(context)? {
            Work::Finished if self.waits_at_end && !context.stopping => Work::Again(AT_END),
            work => work,
        })
    }

    fn messages(&self) -> Vec<MessageSpec> {
        let help = "go on at this time of the recording, seconds from its first sample";
        vec![MessageSpec::new("position_s", ParameterKind::Number, help)]
    }

    fn message(&mut self, _: &str, value: &ParameterValue) -> Result<(), BlockError> {
        self.seek(value.as_number().unwrap_or(f64::NAN))
    }

    fn metrics(&self) -> Vec<(&'static str, Metric)> {
        vec![("rate_hz", Metric::from(&self.shown))]
    }
}
