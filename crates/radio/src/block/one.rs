//! The source of one channel.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use millstream_flow::{Block, BlockError, Context, Metric, Out, Ports, Work};

use super::metrics::Metrics;
use super::segments::{RecordingSegment, SampleCount, so_far};
use super::{SPILL_SAMPLES, WireSample};
use crate::{Device, RxMetadata, RxStreamer};

/// Samples of one receive channel.
///
/// # Stream outputs
/// - `out`: the samples, contiguous except for those that the metrics count as lost. The first one,
///   and the first after a gap, has tags: `rx_time`, by the radio's clock; after a gap also
///   `loss_cause` (the name of a [`crate::Cause`]) and `loss_items`, once for each cause.
///
/// # Metrics
/// `expected`, `delivered` and one counter for each [`crate::Cause`], which balance at the end;
/// `after_end`, samples that came after the end and are in none of these; `packets`, `gaps`,
/// `overruns`, `duplicates`, `hostile`.
#[derive(Ports)]
pub struct RadioSource<T: WireSample> {
    /// The samples.
    pub out: Out<T>,
    stream: Option<RxStreamer>,
    /// Holds the claim; declared after the stream, so that it is dropped last.
    _device: Device,
    at: Option<u64>,
    progress: SampleCount,
    /// The buffer for samples that find no space; empty in the mode that waits for space.
    spill: Vec<T>,
    metrics: Metrics,
}

impl<T: WireSample> RadioSource<T> {
    /// Returns a source of `samples` samples of time (without end when `None`) from a stream of
    /// `device`, and the list of its segments. A loss at the end may extend past the last sample.
    pub fn new(
        device: Device,
        stream: RxStreamer,
        samples: Option<u64>,
    ) -> (Self, Receiver<RecordingSegment>) {
        let (progress, segments) = SampleCount::new(samples);
        let source = Self {
            out: Out::new(),
            stream: Some(stream),
            _device: device,
            at: None,
            progress,
            spill: Vec::new(),
            metrics: Metrics::default(),
        };
        (source, segments)
    }

    /// Sets the start to the device's time `at`, ticks; `None` starts at once.
    pub fn starting_at(mut self, at: Option<u64>) -> Self {
        self.at = at;
        self
    }

    /// Drops samples that find no space behind this source and counts them exactly as
    /// [`crate::Cause::ConsumerFull`]. Without this they wait, in the end in the device, which has
    /// to stop when its buffer is full.
    pub fn without_waiting(mut self) -> Self
    where
        T: Default,
    {
        self.spill = vec![T::default(); SPILL_SAMPLES];
        self.out = Out::with_min_items(0);
        self
    }

    /// Records the result of one `recv`.
    fn account(&mut self, meta: RxMetadata, spilled: bool) -> Result<(), BlockError> {
        let samples = meta.samples as u64;
        let ledger = self.stream.as_ref().map(RxStreamer::ledger);
        let mut gap = self.progress.note(meta.event, ledger)?;
        if spilled && samples > 0 {
            if let Some(stream) = &mut self.stream {
                stream.refuse(samples);
            }
            gap |= self.progress.refuse(samples);
        } else {
            self.progress.deliver(samples, meta.time_ticks);
            let ticks_hz = self.stream.as_ref().map_or(0.0, |stream| stream.rate().ticks_hz);
            self.progress.untagged().for_each(|segment| segment.tag(&mut self.out, ticks_hz));
            self.out.produce(meta.samples);
        }
        self.metrics.gaps.add(gap.into());
        Ok(())
    }
}

impl<T: WireSample> Block for RadioSource<T> {
    fn start(&mut self) -> Result<(), BlockError> {
        match &mut self.stream {
            Some(stream) => Ok(stream.start_continuous(self.at)?),
            None => Ok(()),
        }
    }

    fn work(&mut self, context: &mut Context) -> Result<Work, BlockError> {
        let Some(stream) = &mut self.stream else { return Ok(Work::Finished) };
        let room = self.out.slice_mut();
        let spills = room.is_empty() && !self.spill.is_empty();
        let place = if spills { &mut self.spill[..] } else { room };
        let room = self.progress.room(place.len());
        let meta = T::recv(stream, &mut place[..room], context.may_block)?;
        self.account(meta, spills)?;
        let Some(stream) = &self.stream else { return Ok(Work::Finished) };
        self.metrics.follow_ledger(&so_far(stream.ledger()));
        self.metrics.follow_counters([stream.counters()].into_iter());
        let ended = self.progress.is_over() || !stream.is_running();
        Ok(if ended { Work::Finished } else { Work::Again(Duration::ZERO) })
    }

    fn finish(&mut self) -> Result<(), BlockError> {
        self.progress.end();
        if let Some(stream) = self.stream.take() {
            self.metrics.follow_counters([stream.counters()].into_iter());
            // Samples behind the last wanted one are not a loss of this source.
            let ledger = stream.finish();
            self.metrics.follow_ledger(&ledger);
            ledger.balance()?;
        }
        Ok(())
    }

    fn metrics(&self) -> Vec<(&'static str, Metric)> {
        self.metrics.list()
    }
}
