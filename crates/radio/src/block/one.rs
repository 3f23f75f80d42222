//! The source of one channel.

use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use millstream_flow::{Block, BlockError, Context, Metric, Out, Ports, Work};

use super::metrics::Metrics;
use super::reopen::{OpenAgain, Reopened, Reopening, StreamEnd, is_gone};
use super::segments::{RecordingSegment, SampleCount, so_far};
use super::{SPILL_SAMPLES, WireSample};
use crate::{Cause, Device, Ledger, RxCounters, RxError, RxMetadata, RxStreamer, StreamRate};

/// The interval of polls for a device that is being opened again.
const REOPEN_POLL: Duration = Duration::from_millis(20);

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
/// `reopenings`, `overruns`, `duplicates`, `hostile`.
#[derive(Ports)]
pub struct RadioSource<T: WireSample> {
    /// The samples.
    pub out: Out<T>,
    stream: Option<RxStreamer>,
    /// Holds the claim; declared after the stream, so that it is dropped last.
    device: Option<Device>,
    /// How to open the device again, and for how long to try.
    open_again: Option<(OpenAgain, Duration)>,
    reopening: Option<Reopening>,
    patience: Duration,
    /// The end of the samples so far.
    end: Option<StreamEnd>,
    /// The end of the samples before the device was opened again, until the next ones come.
    end_before: Option<u64>,
    /// The sums of earlier streams, and the gaps behind them.
    earlier: Ledger,
    earlier_counters: Vec<RxCounters>,
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
            device: Some(device),
            open_again: None,
            reopening: None,
            patience: Duration::ZERO,
            end: None,
            end_before: None,
            earlier: Ledger::default(),
            earlier_counters: Vec::new(),
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

    /// Opens the device again by `open_again` when it stops answering, for example because of a
    /// reboot, and goes on behind a gap. If it does not come back within `patience`, the source
    /// fails.
    pub fn reopening(mut self, open_again: OpenAgain, patience: Duration) -> Self {
        self.open_again = Some((open_again, patience));
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

    /// Begins to open the device again, if that is wanted and `error` says that it is gone.
    fn lose(&mut self, error: RxError) -> Result<Work, BlockError> {
        if !is_gone(&error) {
            return Err(error.into());
        }
        let Some((open_again, patience)) = self.open_again.take() else { return Err(error.into()) };
        let (Some(device), Some(stream)) = (self.device.take(), self.stream.take()) else {
            return Err(error.into());
        };
        self.earlier_counters.push(*stream.counters());
        self.patience = patience;
        let reopening = Reopening::start((device, stream), open_again, self.end, patience)?;
        self.reopening = Some(reopening);
        Ok(Work::Again(REOPEN_POLL))
    }

    /// Takes the new stream, once it is there.
    fn reopened(&mut self) -> Result<Work, BlockError> {
        let Some(reopening) = self.reopening.take_if(|reopening| reopening.is_over()) else {
            return Ok(Work::Again(REOPEN_POLL));
        };
        let Reopened { ledger, opened, open_again } = reopening.end()?;
        self.earlier.merge(&ledger);
        let (device, mut stream) = opened?;
        stream.start_continuous(None)?;
        (self.device, self.stream) = (Some(device), Some(stream));
        self.open_again = Some((open_again, self.patience));
        self.end_before = self.end.map(|end| end.ticks);
        self.metrics.reopened.add(1);
        Ok(Work::Again(Duration::ZERO))
    }

    /// Records the gap before the first samples of a new stream, which begin at `time_ticks`.
    /// Returns true for a gap.
    fn close_gap(&mut self, time_ticks: Option<u64>, rate: StreamRate) -> bool {
        let Some(before) = self.end_before.take() else { return false };
        let ahead = time_ticks.map_or(0, |ticks| ticks.wrapping_sub(before));
        // The clock may be set back by the network's delay.
        let missing = if ahead < 1 << 63 { rate.samples(ahead) } else { 0 };
        self.earlier.expected = self.earlier.expected.wrapping_add(missing);
        self.earlier.lose(Cause::Reopened, missing);
        self.progress.reopen(missing);
        true
    }

    /// Returns the sum of all ledgers, with that of the present stream.
    fn total(&self, present: &Ledger) -> Ledger {
        let mut sum = self.earlier.clone();
        sum.merge(present);
        sum
    }

    /// Records the result of one `recv` at `now`.
    fn account(&mut self, meta: RxMetadata, spilled: bool, now: Instant) -> Result<(), BlockError> {
        let samples = meta.samples as u64;
        let rate = self.stream.as_ref().map_or(StreamRate::of_radio(0.0), RxStreamer::rate);
        let mut reopened = false;
        if samples > 0 {
            reopened = self.close_gap(meta.time_ticks, rate);
            let end = meta.time_ticks.map(|ticks| ticks.wrapping_add(rate.ticks(samples)));
            self.end = end.map(|ticks| StreamEnd { ticks, at: now });
        }
        let ledger = self.stream.as_ref().map(RxStreamer::ledger);
        let mut gap = self.progress.note(meta.event, ledger)? || reopened;
        if spilled && samples > 0 {
            if let Some(stream) = &mut self.stream {
                stream.refuse(samples);
            }
            gap |= self.progress.refuse(samples);
        } else {
            self.progress.deliver(samples, meta.time_ticks);
            let ticks_hz = rate.ticks_hz;
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
        if self.reopening.is_some() {
            return self.reopened();
        }
        let Some(stream) = &mut self.stream else { return Ok(Work::Finished) };
        let room = self.out.slice_mut();
        let spills = room.is_empty() && !self.spill.is_empty();
        let place = if spills { &mut self.spill[..] } else { room };
        let room = self.progress.room(place.len());
        let meta = match T::recv(stream, &mut place[..room], context.may_block) {
            Ok(meta) => meta,
            Err(error) => return self.lose(error),
        };
        self.account(meta, spills, context.now)?;
        let Some(stream) = &self.stream else { return Ok(Work::Finished) };
        self.metrics.follow_ledger(&self.total(&so_far(stream.ledger())));
        self.metrics.follow_counters(self.earlier_counters.iter().chain([stream.counters()]));
        let ended = self.progress.is_over() || !stream.is_running();
        Ok(if ended { Work::Finished } else { Work::Again(Duration::ZERO) })
    }

    fn finish(&mut self) -> Result<(), BlockError> {
        self.progress.end();
        if let Some(reopening) = self.reopening.take() {
            let reopened = reopening.end()?;
            self.earlier.merge(&reopened.ledger);
        }
        let mut present = Ledger::default();
        if let Some(stream) = self.stream.take() {
            let counters = self.earlier_counters.iter().chain([stream.counters()]);
            self.metrics.follow_counters(counters);
            // Samples behind the last wanted one are not a loss of this source.
            present = stream.finish();
        }
        let ledger = self.total(&present);
        self.metrics.follow_ledger(&ledger);
        Ok(ledger.balance()?)
    }

    fn metrics(&self) -> Vec<(&'static str, Metric)> {
        self.metrics.list()
    }
}
