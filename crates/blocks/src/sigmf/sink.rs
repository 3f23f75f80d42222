//! The sink of a recording.

use super::{CaptureSegment, RecordingDescription, SigmfError, write_meta};
use crate::Sample;
use millstream_flow::blocks::FileSink;
use millstream_flow::{
    Block, BlockError, Context, Counter, Item, Metric, PortVisitor, Ports, Tag, TagValue, Work,
    keys,
};
use millstream_output::Existing;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Captures whose memory is reserved; more captures cost an allocation each time their number
/// doubles.
const STRETCHES: usize = 1024;
/// Tags that become annotations, whose memory is reserved.
const NOTES: usize = 1024;
/// The most tags that become annotations.
const NOTES_MAX: usize = 1 << 20;

/// A sample type that SigMF stores.
pub trait SigmfSample: Item + bytemuck::NoUninit {
    /// SigMF's name of the format.
    const DATATYPE: &'static str;
}

impl SigmfSample for Sample {
    const DATATYPE: &'static str = "cf32_le";
}

impl SigmfSample for [i16; 2] {
    const DATATYPE: &'static str = "ci16_le";
}

/// Writes samples to a `.sigmf-data` file and their description to the `.sigmf-meta` file in the
/// same folder, which appears at the end. A capture begins where a tag reports missing samples
/// (`loss_cause`, `loss_items`), with the time of `rx_time` as its position in the signal, and an
/// annotation names the loss. A tag `rx_rate_hz` gives the rate. Every other tag becomes an
/// annotation: its key and its value are the label and the comment, and the text of a tag
/// `annotation` the label.
///
/// Ports: `in`.
///
/// # Metrics
/// `tags_dropped`: tags beyond the 2²⁰ that become annotations.
#[derive(Debug)]
pub struct SigmfSink<T: SigmfSample> {
    data: FileSink<T>,
    meta: PathBuf,
    existing: Existing,
    rate_hz: Option<f64>,
    began: SystemTime,
    stretches: Vec<CaptureSegment>,
    notes: Vec<Tag>,
    dropped: Counter,
    /// Items whose tags have been read.
    seen: u64,
}

impl<T: SigmfSample> SigmfSink<T> {
    /// Creates a recording at `path`, either of its files.
    ///
    /// # Errors
    /// A path with another extension.
    pub fn new(path: &Path, rate_hz: Option<f64>) -> Result<Self, SigmfError> {
        let extension = path.extension().and_then(|extension| extension.to_str());
        if !matches!(extension, Some("sigmf-meta" | "sigmf-data")) {
            let reason = "name it .sigmf-meta or .sigmf-data; a file_sink writes raw samples";
            let path = path.to_owned();
            return Err(SigmfError::Samples { path, reason: reason.into() });
        }
        let mut stretches = Vec::with_capacity(STRETCHES);
        stretches.push(CaptureSegment::default());
        Ok(Self {
            data: FileSink::new(&path.with_extension("sigmf-data")),
            meta: path.with_extension("sigmf-meta"),
            existing: Existing::Refuse,
            rate_hz,
            began: SystemTime::UNIX_EPOCH,
            stretches,
            notes: Vec::with_capacity(NOTES),
            dropped: Counter::new(),
            seen: 0,
        })
    }

    /// Lets the new recording replace an old one of its name, when it is complete.
    #[must_use]
    pub fn overwrite(self) -> Self {
        self.existing(Existing::Replace)
    }

    pub(super) fn existing(mut self, existing: Existing) -> Self {
        (self.data, self.existing) = (self.data.existing(existing), existing);
        self
    }

    fn read_tags(&mut self) {
        let there = self.data.input.slice().len() as u64;
        let position = self.data.input.position();
        let Self { data, stretches, notes, dropped, rate_hz, seen, .. } = self;
        for (_, tag) in data.input.tags().filter(|(_, tag)| tag.offset >= *seen) {
            match tag.key {
                keys::RX_RATE_HZ | keys::LOSS_CAUSE | keys::LOSS_ITEMS | keys::RX_TIME => {
                    note(stretches, rate_hz, tag);
                }
                _ if notes.len() < NOTES_MAX => notes.push(tag),
                _ => dropped.add(1),
            }
        }
        self.seen = position + there;
    }
}

/// Records the contents of a tag. The tags of one item may come in any order.
fn note(stretches: &mut Vec<CaptureSegment>, rate_hz: &mut Option<f64>, tag: Tag) {
    let first_sample = tag.offset;
    let last = stretches.last_mut().filter(|last| last.first_sample == first_sample);
    match (tag.key, tag.value) {
        (keys::RX_RATE_HZ, value) => *rate_hz = value.as_f64().or(*rate_hz),
        (keys::LOSS_CAUSE, cause) => {
            let global_index = last.and_then(|last| last.global_index);
            let gap = Some((cause.to_string(), "samples".to_owned()));
            let segment = CaptureSegment { first_sample, global_index, gap, frequency_hz: None };
            stretches.push(segment);
        }
        (keys::LOSS_ITEMS, TagValue::Count(items)) => {
            if let Some((_, missing)) = last.and_then(|last| last.gap.as_mut()) {
                *missing = format!("{items} samples");
            }
        }
        (keys::RX_TIME, TagValue::Time(time)) => {
            // Counted from the clock's zero.
            let global_index = rate_hz.and_then(|rate_hz| time.to_ticks(rate_hz));
            match last {
                Some(last) => last.global_index = global_index,
                None => stretches.push(CaptureSegment {
                    first_sample,
                    global_index,
                    ..CaptureSegment::default()
                }),
            }
        }
        _ => {}
    }
}

impl<T: SigmfSample> Ports for SigmfSink<T> {
    fn ports(&mut self, ports: &mut dyn PortVisitor) {
        self.data.ports(ports);
    }
}

impl<T: SigmfSample> Block for SigmfSink<T> {
    fn start(&mut self) -> Result<(), BlockError> {
        self.began = SystemTime::now();
        // The samples of an old one may be elsewhere.
        millstream_output::check(&self.meta, self.existing)?;
        self.data.start()
    }

    fn work(&mut self, context: &mut Context) -> Result<Work, BlockError> {
        self.read_tags();
        self.data.work(context)
    }

    fn metrics(&self) -> Vec<(&'static str, Metric)> {
        vec![("tags_dropped", Metric::from(&self.dropped))]
    }

    fn finish(&mut self) -> Result<(), BlockError> {
        self.data.finish()?;
        let samples = self.data.input.position();
        let recording = RecordingDescription {
            datatype: T::DATATYPE,
            rate_hz: self.rate_hz,
            frequency_hz: None,
            hardware: None,
            description: None,
            began: self.began,
            stretches: &self.stretches,
            notes: &self.notes,
            samples,
        };
        let cannot = |error| format!("cannot write {}: {error}", self.meta.display()).into();
        write_meta(&self.meta, &recording).map_err(cannot)
    }
}
