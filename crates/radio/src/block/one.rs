//! The source of one channel.

use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use millstream_flow::{
    Block, BlockError, BlockFacts, Context, Out, ParameterValue, Ports, Work, keys,
};

use super::metrics::Metrics;
use super::reopen::{Comeback, OpenAgain};
use super::segments::{RecordingSegment, SampleCount, so_far};
use super::settings::{
    NOT_OPEN, StreamSwitch, StreamWish, TunableOutputs, choose_rate, opened_again,
};
use super::start::{StartSettings, StartTags};
use super::{REOPEN_POLL, SPILL_SAMPLES};
use crate::{
    Device, Ledger, RxArgs, RxError, RxEvent, RxMetadata, RxStreamer, StreamRate, StreamSample,
};

/// Samples of one receive channel.
///
/// # Stream outputs
/// - `out`: the samples, contiguous except for those that the metrics count as lost. The first one,
///   and the first after a gap, has tags: `rx_time`, by the radio's clock; after a gap also
///   `loss_cause` (the name of a [`crate::Cause`]) and `loss_items`, once for each cause. The first
///   one of all and the first one after a stop by a message have `rx_time` and `rx_rate_hz`. The
///   first one of all, and the first one after the device was opened again, have the settings of
///   the start: `rx_freq_hz`, `rx_gain_db`, `rx_antenna` and `rx_bandwidth_hz`. The first one that
///   surely comes from the frequency to which a message has tuned has `rx_time` and `rx_freq_hz`;
///   the first one behind a message that sets the gain has `rx_gain_db`. Where the radio's clock
///   does not run as fast as this machine's, the first one has `clock_speed`.
///
/// # Metrics
/// `expected`, `delivered` and one counter for each [`crate::Cause`], which balance at the end;
/// `after_end`, samples that came after the end and are in none of these; `packets`, `gaps`,
/// `reopenings`, `overruns`, `duplicates`, `hostile`.
#[derive(Ports)]
pub struct RadioSource<T: StreamSample> {
    /// The samples.
    pub out: Out<T>,
    stream: Option<RxStreamer>,
    /// Holds the claim; declared after the stream, so that it is dropped last.
    device: Option<Device>,
    comeback: Comeback<(Device, RxStreamer)>,
    at: Option<u64>,
    progress: SampleCount,
    /// The buffer for samples that find no space; empty in the mode that waits for space.
    spill: Vec<T>,
    metrics: Metrics,
    tunable: TunableOutputs,
    start_tags: StartTags,
    switch: StreamSwitch,
    /// The speed of the device's clock, for a tag.
    clock_speed: Option<f64>,
    /// How to open the stream with another rate.
    again: Option<RxArgs>,
    /// Why it has no stream any more.
    failure: Option<BlockError>,
}

impl<T: StreamSample> RadioSource<T> {
    /// Returns a source of `samples` samples of time (without end when `None`) from a stream of
    /// `device`, and the list of its segments. A loss that extends past the
    /// last sample is cut there.
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
            comeback: Comeback::new(1),
            at: None,
            progress,
            spill: Vec::new(),
            metrics: Metrics::default(),
            tunable: TunableOutputs::default(),
            start_tags: StartTags::default(),
            switch: StreamSwitch::default(),
            clock_speed: None,
            again: None,
            failure: None,
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
        self.comeback.set(open_again, patience);
        self
    }

    /// Lets messages set the front end of this channel of the device while the stream runs
    /// (`freq_hz` and `gain_db`), and stop and start the stream (`stop` and `start`).
    pub fn tunable(mut self, channel: usize) -> Self {
        self.tunable = TunableOutputs::one(channel);
        self.switch.may_stop = true;
        self
    }

    /// Tags the first sample with the settings of the front end.
    pub fn with_settings(mut self, settings: StartSettings) -> Self {
        self.start_tags.outputs = vec![settings];
        self
    }

    /// Tags the first sample with the speed of the device's clock, if that is not as fast as this
    /// machine's ([`Device::other_clock_speed`]).
    pub fn with_clock_speed(mut self, speed: Option<f64>) -> Self {
        self.clock_speed = speed;
        self
    }

    /// Lets the message `rate_hz` change the rate while the master clock stays as it is. `args` are
    /// those of the stream.
    pub fn with_rates(mut self, args: RxArgs) -> Self {
        self.again = Some(args);
        self.switch.may_change_rate = true;
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

    /// Counts the samples that are lost with `error`, and begins to open the device again, if that
    /// is wanted and the error says that it is gone.
    fn lose(&mut self, error: RxError) -> Result<Work, BlockError> {
        let (event, now) = (error.lost(), Instant::now());
        self.account(RxMetadata { event, ..Default::default() }, false, now)?;
        self.comeback.pass(event.missing(), now);
        if !self.comeback.is_wanted(&error) {
            return Err(error.into());
        }
        let (Some(device), Some(stream)) = (self.device.take(), self.stream.take()) else {
            return Err(error.into());
        };
        self.comeback.begin((device, stream), &self.tunable.live)?;
        Ok(Work::Again(REOPEN_POLL))
    }

    /// Takes the new stream, once it is there.
    fn reopened(&mut self) -> Result<Work, BlockError> {
        let Some((device, stream)) = self.comeback.poll(!self.switch.is_stopped)? else {
            return Ok(Work::Again(REOPEN_POLL));
        };
        let tuned = self.tunable.tuned_again(std::slice::from_ref(&device));
        self.progress.opened_again(tuned);
        self.start_tags.begin_anew();
        (self.device, self.stream) = (Some(device), Some(stream));
        self.metrics.reopened.add(1);
        Ok(Work::Again(Duration::ZERO))
    }

    /// Stops the stream, or starts it, as a message wants. Neither loses a sample. While the device
    /// is being opened, the wish is kept for the new stream.
    fn switch(&mut self, runs: bool) -> Result<(), BlockError> {
        if runs != self.switch.is_stopped {
            return Ok(());
        }
        if runs {
            self.go_on()?
        } else {
            self.stop()?
        }
        self.switch.is_stopped = !runs;
        Ok(())
    }

    fn go_on(&mut self) -> Result<(), BlockError> {
        self.comeback.go_on(Instant::now());
        if let Some(stream) = &mut self.stream {
            match stream.start_continuous(None) {
                // It went away meanwhile.
                Err(error) if self.comeback.is_wanted(&error) => self.lose(error).map(drop)?,
                started => started?,
            }
        } else if !self.comeback.is_under_way() {
            return Err(NOT_OPEN.into());
        }
        self.progress.restart(false);
        Ok(())
    }

    fn stop(&mut self) -> Result<(), BlockError> {
        if let Some(stream) = &mut self.stream {
            // A gap that is counted and not reported yet would be part of the next one.
            match stream.recv_as(&mut [] as &mut [T], Duration::ZERO) {
                Ok(meta) if meta.event == RxEvent::Timeout => {}
                Ok(meta) => self.account(meta, false, Instant::now())?,
                // It is gone: what it would have sent until now is lost.
                Err(error) if self.comeback.is_wanted(&error) => self.lose(error).map(drop)?,
                Err(_) => {}
            }
        } else if !self.comeback.is_under_way() {
            return Err(NOT_OPEN.into());
        }
        if self.comeback.has_gap() || self.comeback.is_under_way() {
            let ticks = self.device.as_ref().and_then(|device| device.time_ticks().ok());
            let wanted = self.progress.wanted();
            if let Some(missing) = self.comeback.stop(ticks, Instant::now(), wanted) {
                self.progress.reopen(missing);
                self.metrics.gaps.add(1);
            }
        }
        if let Some(stream) = &mut self.stream {
            stream.end();
        }
        let ledger = self.stream.as_ref().map(|stream| stream.ledger().clone());
        self.follow(ledger);
        Ok(())
    }

    /// Opens the stream with another rate.
    fn set_rate(&mut self, rate_hz: f64) -> Result<(), BlockError> {
        let present = self.stream.as_ref().map(RxStreamer::rate).ok_or(NOT_OPEN)?;
        let (Some(args), Some(device)) = (self.again, &mut self.device) else {
            return Err(NOT_OPEN.into());
        };
        choose_rate(device, args.channel, rate_hz, present)?;
        if let Some(stream) = self.stream.take() {
            let counters = *stream.counters();
            self.comeback.keep([counters], &[stream.finish()]);
        }
        let opened = device.rx_stream(args).map_err(RxError::from).and_then(|mut stream| {
            if !self.switch.is_stopped {
                stream.start_continuous(None)?;
            }
            Ok(stream)
        });
        self.stream = Some(opened_again(opened, &mut self.failure)?);
        self.tunable.live.rate = Some((rate_hz, vec![(0, args)]));
        self.progress.restart(true);
        Ok(())
    }

    /// Publishes the sum of all ledgers, with that of the present stream.
    fn follow(&self, present: Option<Ledger>) -> Ledger {
        let sum = self.comeback.totals(present.into_iter()).next().unwrap_or_default();
        self.metrics.follow_ledger(&sum);
        sum
    }

    /// Records the result of one `recv` at `now`.
    fn account(&mut self, meta: RxMetadata, spilled: bool, now: Instant) -> Result<(), BlockError> {
        let rate = self.stream.as_ref().map_or(StreamRate::of_radio(0.0), RxStreamer::rate);
        let mut reopened = false;
        // Samples that are missing behind the start are a gap of their own.
        let lost = meta.event.missing();
        let begin = meta.time_ticks.map(|ticks| ticks.wrapping_sub(rate.ticks(lost)));
        let wanted = self.progress.wanted();
        if meta.samples > 0 || lost > 0 && begin.is_some() {
            if let Some(missing) = self.comeback.close_gap(begin, rate, wanted) {
                self.progress.reopen(missing);
                reopened = true;
            }
        }
        // What lies behind the end was not asked for.
        let items = self.progress.room(meta.samples);
        let (samples, past) = (items as u64, lost.saturating_sub(self.progress.wanted()));
        if let Some(stream) = &mut self.stream {
            stream.end_before(meta.samples as u64 - samples, past);
        }
        if samples > 0 {
            let end = meta.time_ticks.map(|ticks| ticks.wrapping_add(rate.ticks(samples)));
            self.comeback.note_end(end, rate, now);
        }
        let ledger = self.stream.as_ref().map(RxStreamer::ledger);
        let mut gap = self.progress.note(meta.event.cut(past), ledger)? || reopened;
        if spilled && samples > 0 {
            if let Some(stream) = &mut self.stream {
                stream.refuse(samples);
            }
            gap |= self.progress.refuse(samples);
        } else {
            self.progress.deliver(samples, meta.time_ticks, rate);
            if let Some(speed) = self.clock_speed.take_if(|_| samples > 0) {
                self.out.tag(0, keys::CLOCK_SPEED, speed);
            }
            let outs = std::slice::from_mut(&mut self.out);
            self.start_tags.tag(outs, samples, rate.samples_hz());
            self.progress.tag(std::slice::from_mut(&mut self.out), rate);
            self.out.produce(items);
        }
        self.metrics.gaps.add(gap.into());
        Ok(())
    }
}

impl<T: StreamSample> Block for RadioSource<T> {
    fn start(&mut self) -> Result<(), BlockError> {
        match &mut self.stream {
            Some(stream) => Ok(stream.start_continuous(self.at)?),
            None => Ok(()),
        }
    }

    fn work(&mut self, context: &mut Context) -> Result<Work, BlockError> {
        if self.comeback.is_under_way() {
            return self.reopened();
        }
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        if self.switch.is_stopped {
            return Ok(Work::Again(REOPEN_POLL));
        }
        let Some(stream) = &mut self.stream else { return Ok(Work::Finished) };
        let room = self.out.slice_mut();
        let spills = room.is_empty() && !self.spill.is_empty();
        let place = if spills { &mut self.spill[..] } else { room };
        let room = self.progress.room(place.len());
        let meta = match stream.recv_as(&mut place[..room], context.may_block) {
            Ok(meta) => meta,
            Err(error) => return self.lose(error),
        };
        self.account(meta, spills, context.now)?;
        let Some(stream) = &self.stream else { return Ok(Work::Finished) };
        self.follow(Some(so_far(stream.ledger())));
        self.metrics.follow_counters(self.comeback.counters().chain([stream.counters()]));
        let ended = self.progress.is_over() || !stream.is_running();
        Ok(if ended { Work::Finished } else { Work::Again(Duration::ZERO) })
    }

    fn finish(&mut self) -> Result<(), BlockError> {
        self.progress.end();
        self.comeback.end()?;
        let mut present = None;
        if let Some(stream) = self.stream.take() {
            self.metrics.follow_counters(self.comeback.counters().chain([stream.counters()]));
            // Samples behind the last wanted one are not a loss of this source.
            present = Some(stream.finish());
        }
        let ledger = self.follow(present);
        Ok(ledger.balance()?)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.metrics.extend(self.metrics.list());
        facts.messages.extend(self.tunable.messages().into_iter().chain(self.switch.messages()));
    }

    fn message(&mut self, name: &str, value: &ParameterValue) -> Result<(), BlockError> {
        match self.switch.read(name, value) {
            Some(StreamWish::Run(runs)) => self.switch(runs),
            Some(StreamWish::Rate(rate_hz)) => self.set_rate(rate_hz),
            None => {
                let device = self.device.as_mut().map(std::slice::from_mut);
                let outs = std::slice::from_mut(&mut self.out);
                self.tunable.apply(device, (name, value), &mut self.progress, outs)
            }
        }
    }
}
