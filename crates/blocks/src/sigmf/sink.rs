//! The sink of a recording.

use super::description::RecordingNotes;
use super::{SigmfError, files};
use crate::Sample;
use millstream_flow::blocks::FileSink;
use millstream_flow::{
    Block, BlockError, BlockFacts, Context, Counter, Gauge, Item, PortVisitor, Ports, Work,
};
use millstream_output::{Existing, OutputFile, part_of, update_whole};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// The least time from one update of the metadata to the next.
const UPDATE: Duration = Duration::from_secs(1);

/// How much longer than an update the time to the next one is: updates cost at most 2 %.
const UPDATE_SHARE: u32 = 50;

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
/// same folder.
///
/// Until the end both are called `NAME.part`. The metadata is there from the first samples on, and
/// is replaced as a whole at most a second after a gap, another frequency or any other tag (later,
/// if it is so long that this would take more than 2 % of the time), so what a crash leaves can be
/// opened.
///
/// A capture begins where tags report missing samples (`loss_cause`, `loss_items`), another time
/// (`rx_time`, `rx_utc`) or other settings (`rx_freq_hz`, `rx_gain_db`, `rx_antenna`,
/// `rx_bandwidth_hz`), and an annotation names each loss. A tag `rx_rate_hz` gives the rate. The
/// tags `recording`, `capture` and `annotation` of a [`SigmfSource`](super::SigmfSource) keep what
/// another recording says. Every other tag becomes an annotation: its key and its value are the
/// label and the comment, and the text of a tag `annotation` the label.
///
/// Ports: `in`.
///
/// # Metrics
/// `rate_hz`, samples per second of the recording; `tags_dropped`: tags beyond the 2²⁰ that become
/// annotations, captures or gaps.
#[derive(Debug)]
pub struct SigmfSink<T: SigmfSample> {
    data: FileSink<T>,
    meta: PathBuf,
    existing: Existing,
    notes: RecordingNotes,
    /// From the start to the first sample.
    lead: Duration,
    dropped: Counter,
    shown: Gauge,
    /// Items whose tags have been read.
    seen: u64,
    /// When the metadata may be written again, once it was written.
    next_update: Option<Instant>,
    /// Whether the written metadata lacks something.
    is_stale: bool,
}

impl<T: SigmfSample> SigmfSink<T> {
    /// Creates a recording at `path`, either of its files. `rate_hz` counts if no tag has the rate.
    ///
    /// # Errors
    /// A path with another extension.
    pub fn new(path: &Path, rate_hz: Option<f64>) -> Result<Self, SigmfError> {
        let extension = path.extension().and_then(|extension| extension.to_str());
        if !matches!(extension, Some("sigmf-meta" | "sigmf-data")) {
            let reason = "name it .sigmf-meta or .sigmf-data; a file_sink writes raw samples";
            return Err(files::not_named(path, reason));
        }
        Ok(Self {
            data: FileSink::new(&path.with_extension("sigmf-data")),
            meta: path.with_extension("sigmf-meta"),
            existing: Existing::Refuse,
            notes: RecordingNotes::new(T::DATATYPE, rate_hz),
            lead: Duration::ZERO,
            dropped: Counter::new(),
            shown: Gauge::new(),
            seen: 0,
            next_update: None,
            is_stale: true,
        })
    }

    /// Lets the new recording replace an old one of its name, when it is complete.
    #[must_use]
    pub fn overwrite(self) -> Self {
        self.existing(Existing::Replace)
    }

    /// Says what becomes of an old recording of its name.
    #[must_use]
    pub fn existing(mut self, existing: Existing) -> Self {
        (self.data, self.existing) = (self.data.existing(existing), existing);
        self
    }

    /// Writes large blocks around the page cache, see [`FileSink::direct`].
    #[must_use]
    pub fn direct(mut self) -> Self {
        self.data = self.data.direct();
        self
    }

    /// Adds the device, a description, and the time from the start of the graph to the first
    /// sample.
    #[must_use]
    pub fn describing(
        mut self,
        hardware: &str,
        description: Option<String>,
        lead: Duration,
    ) -> Self {
        self.notes.hardware = Some(hardware.to_owned());
        (self.notes.description, self.lead) = (description, lead);
        self
    }

    fn read_tags(&mut self) {
        let there = self.data.input.slice().len() as u64;
        let position = self.data.input.position();
        let Self { data, notes, dropped, seen, .. } = self;
        for (_, tag) in data.input.tags().filter(|(_, tag)| tag.offset >= *seen) {
            if !notes.note(tag) {
                dropped.add(1);
            }
        }
        self.seen = position + there;
    }

    /// Gives what is written to the system and brings the metadata up to date, if it is time to;
    /// returns when to come again.
    fn update(&mut self, now: Instant) -> Result<Option<Duration>, BlockError> {
        self.is_stale |= std::mem::take(&mut self.notes.is_new);
        if self.seen == 0 {
            return Ok(None);
        }
        let later = self.next_update.map_or(Duration::ZERO, |next| next.duration_since(now));
        if !later.is_zero() {
            return Ok(self.is_stale.then_some(later));
        }
        let began = Instant::now();
        if std::mem::take(&mut self.is_stale) {
            self.shown.set(self.notes.rate_hz().unwrap_or(f64::NAN));
            update_whole(&part_of(&self.meta), self.text()?.as_bytes())?;
        }
        self.data.flush()?;
        let took = began.elapsed();
        self.next_update = now.checked_add(UPDATE.max(took.saturating_mul(UPDATE_SHARE)));
        Ok(None)
    }

    fn text(&self) -> Result<String, BlockError> {
        Ok(serde_json::to_string_pretty(&self.notes.metadata(self.seen))?)
    }
}

impl<T: SigmfSample> Ports for SigmfSink<T> {
    fn ports(&mut self, ports: &mut dyn PortVisitor) {
        self.data.ports(ports);
    }
}

impl<T: SigmfSample> Block for SigmfSink<T> {
    fn start(&mut self) -> Result<(), BlockError> {
        self.notes.began = SystemTime::now() + self.lead;
        // The samples of an old one may be elsewhere.
        millstream_output::check(&self.meta, self.existing)?;
        // What a crash has left of another recording is kept under another name.
        drop(OutputFile::create(&self.meta, self.existing)?);
        self.data.start()
    }

    fn work(&mut self, context: &mut Context) -> Result<Work, BlockError> {
        self.read_tags();
        if self.next_update.is_none() {
            // Before the first samples: a kill may come between the two.
            self.update(context.now)?;
        }
        let work = self.data.work(context);
        if work.is_err() {
            // A full disk may still have room for it; the first error is the one to report.
            self.next_update = None;
            let _ = self.update(context.now);
        }
        let work = work?;
        let later = self.update(context.now)?;
        Ok(match (work, later) {
            (Work::Continue, Some(later)) => Work::Again(later),
            (work, _) => work,
        })
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.metric("rate_hz", &self.shown).metric("tags_dropped", &self.dropped);
    }

    fn finish(&mut self) -> Result<(), BlockError> {
        self.data.finish()?;
        // The metadata appears as a whole beside the samples; then the part of it is older.
        millstream_output::store_whole(&self.meta, self.text()?.as_bytes())?;
        let _ = std::fs::remove_file(part_of(&self.meta));
        Ok(())
    }
}
