//! The source of a recording, with its metadata as tags.

use super::{Annotation, Capture, SigmfRecording, files};
use millstream_flow::blocks::FileSource;
use millstream_flow::{
    Block, BlockError, BlockFacts, Context, Gauge, ParameterKind, ParameterValue, PortVisitor,
    Ports, TagDocument, TagTime, TagValue, Work, keys,
};
use std::path::Path;
use std::time::Duration;

/// Interval at which a source that waits at its end looks for a message.
const AT_END: Duration = Duration::from_millis(20);

/// Reads the samples of a SigMF recording, then ends.
///
/// # Stream outputs
/// - `out`: the samples; full scale of integers is 1.0. Tags: `recording`, `items_per_sample` and
///   `rx_rate_hz` on the first; `capture` on the first of every capture, with `rx_time`, from its
///   index and the rate, and `rx_utc`, if they are known; `rx_freq_hz` on the first and where a
///   capture has another frequency than the one before; `loss_cause` and `loss_items` where samples
///   are missing before one; `annotation` with every annotation. Annotations of gaps are the
///   `loss_cause`, and appear once.
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
    global: Option<TagDocument>,
    /// The first capture that has not been tagged.
    next_capture: usize,
    /// The first annotation that has not been tagged.
    next_annotation: usize,
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
    /// [`SigmfError`](super::SigmfError), or an error of the data file.
    pub fn open(path: &Path) -> Result<Self, BlockError> {
        if files::of(path).is_none() {
            let reason = "name the .sigmf-meta or .sigmf-data of a recording; a file_source reads \
                          raw samples";
            return Err(files::not_named(path, reason).into());
        }
        let source = SigmfRecording::open(path, None)?;
        let samples = FileSource::of_samples(&source.data, source.format, source.samples)?;
        let shown = Gauge::new();
        shown.set(source.rate_hz.unwrap_or(f64::NAN));
        let SigmfRecording { rate_hz, captures, annotations, global, samples: count, .. } = source;
        Ok(Self {
            samples,
            rate_hz,
            captures,
            annotations,
            global,
            next_capture: 0,
            next_annotation: 0,
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
            self.next_capture =
                self.captures.partition_point(|capture| capture.first_sample <= first);
            self.next_annotation = self.annotations.partition_point(|one| one.first_sample < first);
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
        self.next_capture = self.captures.partition_point(|capture| capture.first_sample <= sample);
        self.next_annotation = self.annotations.partition_point(|one| one.first_sample < sample);
        self.has_jumped = true;
        Ok(())
    }

    /// Tags the first sample of all, or of a part.
    fn tell_recording(&mut self) {
        let output = &mut self.samples.output;
        if let Some(global) = self.global {
            output.tag(0, keys::RECORDING, global);
        }
        output.tag(0, keys::ITEMS_PER_SAMPLE, 1.0);
        if let Some(rate_hz) = self.rate_hz {
            output.tag(0, keys::RX_RATE_HZ, rate_hz);
        }
    }

    /// Tags the first sample after a seek with its time. Between it and the one before, nothing is
    /// lost.
    fn tell_jump(&mut self) {
        let position = self.position();
        if std::mem::take(&mut self.begins_later) {
            self.tell_recording();
        }
        let Some(capture) = self.next_capture.checked_sub(1).and_then(|at| self.captures.get(at))
        else {
            return;
        };
        let (capture, behind) = (*capture, position - capture.first_sample);
        self.tell_capture(0, capture, behind);
        if let Some(hz) = capture.frequency_hz {
            self.samples.output.tag(0, keys::RX_FREQ_HZ, hz);
        }
    }

    /// Tags an item, so many samples behind the beginning of its capture, with its description and
    /// time.
    fn tell_capture(&mut self, item: usize, capture: Capture, behind: u64) {
        let output = &mut self.samples.output;
        // A time that cannot be read is that of the first sample alone.
        if let Some(document) = capture.document.filter(|_| behind == 0 || capture.utc.is_some()) {
            output.tag(item, keys::CAPTURE, document);
        }
        let Some(rate_hz) = self.rate_hz else {
            if let Some(utc) = capture.utc.filter(|_| behind == 0) {
                output.tag(item, keys::RX_UTC, utc);
            }
            return;
        };
        let ticks = capture.global_index.and_then(|index| index.checked_add(behind));
        if let Some(ticks) = ticks {
            output.tag(item, keys::RX_TIME, TagTime::from_ticks(ticks, rate_hz));
        }
        if let Some(utc) = capture.utc.and_then(|utc| utc.later(behind as f64 / rate_hz)) {
            output.tag(item, keys::RX_UTC, utc);
        }
    }

    /// Tags the captures that begin in the next `room` samples.
    fn tell(&mut self, room: u64) {
        if room > 0 && std::mem::take(&mut self.has_jumped) {
            self.tell_jump();
        }
        let position = self.position();
        while let Some(capture) = self.captures.get(self.next_capture).copied() {
            let Some(index) = capture.first_sample.checked_sub(position).filter(|at| *at < room)
            else {
                break;
            };
            let missing = self.missing_before(self.next_capture).unwrap_or(0);
            let before =
                self.next_capture.checked_sub(1).and_then(|before| self.captures.get(before));
            let is_tuned = before.is_none_or(|before| before.frequency_hz != capture.frequency_hz);
            let index = index as usize;
            if self.next_capture == 0 {
                self.tell_recording();
            }
            self.tell_capture(index, capture, 0);
            if let Some(hz) = capture.frequency_hz.filter(|_| is_tuned) {
                self.samples.output.tag(index, keys::RX_FREQ_HZ, hz);
            }
            self.lose(index, capture.first_sample, missing);
            self.next_capture += 1;
        }
    }

    /// Tags an item with the causes of the samples missing before it: those that annotations name,
    /// and the rest.
    fn lose(&mut self, index: usize, first_sample: u64, missing: u64) {
        let Self { samples, annotations, .. } = self;
        let from = annotations.partition_point(|one| one.first_sample < first_sample);
        let here = annotations[from..].iter().take_while(|one| one.first_sample == first_sample);
        let mut rest = missing;
        for (one, items) in here.filter_map(|one| Some((one, one.missing?))) {
            let cause = one.document.map_or_else(|| TagValue::text(&one.text), TagValue::from);
            samples.output.tag(index, keys::LOSS_CAUSE, cause);
            samples.output.tag(index, keys::LOSS_ITEMS, items);
            rest = rest.saturating_sub(items);
        }
        if rest > 0 {
            samples.output.tag(index, keys::LOSS_CAUSE, TagValue::text("recording"));
            samples.output.tag(index, keys::LOSS_ITEMS, rest);
        }
    }

    /// Tags the annotations that begin in the next `room` samples.
    fn annotate(&mut self, room: u64) {
        let position = self.position();
        while let Some(annotation) = self.annotations.get(self.next_annotation) {
            let Some(index) = annotation.first_sample.checked_sub(position).filter(|at| *at < room)
            else {
                break;
            };
            // At a capture, a gap is tagged as one.
            let is_gap = annotation.missing.is_some()
                && self
                    .captures
                    .binary_search_by_key(&annotation.first_sample, |one| one.first_sample)
                    .is_ok();
            if !is_gap {
                let text = || TagValue::text(&annotation.text);
                let value = annotation.document.map_or_else(text, TagValue::from);
                self.samples.output.tag(index as usize, keys::ANNOTATION, value);
            }
            self.next_annotation += 1;
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
        // Only what is produced now: a seek may come before the rest.
        let room = self.samples.prepare()? as u64;
        self.tell(room);
        self.annotate(room);
        Ok(match self.samples.work(context)? {
            Work::Finished if self.waits_at_end && !context.stopping => Work::Again(AT_END),
            work => work,
        })
    }

    fn facts(&self, facts: &mut BlockFacts) {
        let help = "go on at this time of the recording, seconds from its first sample";
        facts.message("position_s", ParameterKind::Number, help).metric("rate_hz", &self.shown);
    }

    fn message(&mut self, _: &str, value: &ParameterValue) -> Result<(), BlockError> {
        self.seek(value.as_number().unwrap_or(f64::NAN))
    }
}
