//! The source of one channel, or of several that are aligned in time.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use millstream_flow::port::NumberedName;
use millstream_flow::{
    Block, BlockError, BlockFacts, Context, Out, ParameterValue, PortVisitor, Ports, Work, keys,
};

use super::metrics::Metrics;
use super::reopen::{Comeback, OpenAgain, start_again};
use super::segments::{RecordingSegment, SampleCount, so_far};
use super::settings::{
    NOT_OPEN, StreamSwitch, StreamWish, TunableOutputs, choose_rates, opened_again,
};
use super::start::{StartSettings, StartTags};
use super::{REOPEN_POLL, SPILL_SAMPLES};
use crate::stream::RX_CHANNELS_MAX;
use crate::{
    DeviceSet, Ledger, RxArgs, RxError, RxEvent, RxMetadata, RxStreamer, StreamRate, StreamSample,
};

/// How long a stop of several channels waits for each one's samples behind a gap; else at most for
/// a packet.
const STOP_WAIT: Duration = Duration::from_millis(200);

/// The results of a source while it runs, and at its end.
pub struct SourceReport {
    /// The segments, which all channels share.
    pub segments: Receiver<RecordingSegment>,
    /// The ledger of every channel, sent at the end.
    pub ledgers: Receiver<Vec<Ledger>>,
}

/// The samples of one receive channel, or of several, aligned in time. A loss on one channel
/// removes the same moments from all others, so all have the same segments.
///
/// # Stream outputs
/// - `out`, or for several channels `out0`, `out1`, …: the samples of each, contiguous except for
///   those that the metrics count as lost. When one output is full, none gets samples. The first
///   sample, and the first after a gap, has tags: `rx_time`, by the radio's clock; after a gap also
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
/// `reopenings`, `overruns`, `duplicates`, `hostile`. Each is the sum over all channels.
pub struct RadioSource<T: StreamSample> {
    outs: Vec<Out<T>>,
    stream: Option<RxStreamer>,
    /// Holds the claims; declared after the stream, so that they are dropped last.
    devices: Option<DeviceSet>,
    comeback: Comeback,
    at: Option<u64>,
    progress: SampleCount,
    ledgers: SyncSender<Vec<Ledger>>,
    /// The buffer for samples that find no space, one stretch after another for each channel; empty
    /// in the mode that waits for space.
    spill: Vec<T>,
    metrics: Metrics,
    tunable: TunableOutputs,
    start_tags: StartTags,
    switch: StreamSwitch,
    /// The speed of the device's clock, for a tag.
    clock_speed: Option<f64>,
    /// How to open the stream with another rate.
    again: Vec<(usize, RxArgs)>,
    /// Why it has no stream any more.
    failure: Option<BlockError>,
}

impl<T: StreamSample> RadioSource<T> {
    /// Returns a source of `samples` samples of time (without end when `None`) from a stream of
    /// `devices`. A loss that extends past the last sample is cut there.
    pub fn new(
        devices: impl Into<DeviceSet>,
        stream: RxStreamer,
        samples: Option<u64>,
    ) -> (Self, SourceReport) {
        let channels = stream.members().len();
        let (progress, segments) = SampleCount::new(samples);
        let (ledgers, told) = sync_channel(1);
        let source = Self {
            outs: (0..channels).map(|_| Out::new()).collect(),
            stream: Some(stream),
            devices: Some(devices.into()),
            comeback: Comeback::new(channels),
            at: None,
            progress,
            ledgers,
            spill: Vec::new(),
            metrics: Metrics::default(),
            tunable: TunableOutputs::default(),
            start_tags: StartTags::default(),
            switch: StreamSwitch::default(),
            clock_speed: None,
            again: Vec::new(),
            failure: None,
        };
        (source, SourceReport { segments, ledgers: told })
    }

    /// Sets the start to the devices' time `at`, ticks; `None` starts at once.
    pub fn starting_at(mut self, at: Option<u64>) -> Self {
        self.at = at;
        self
    }

    /// Opens the device again by `open_again` when it stops answering, for example because of a
    /// reboot, and goes on behind a gap, all channels together. If it does not come back within
    /// `patience`, the source fails.
    ///
    /// # Errors
    /// [`RxError::BadGroup`] for several devices: their common time would have to be set at a PPS.
    pub fn reopening(mut self, open_again: OpenAgain, patience: Duration) -> Result<Self, RxError> {
        if self.devices.as_ref().is_some_and(|devices| devices.devices().len() > 1) {
            return Err(RxError::BadGroup { reason: "only one device can be opened again" });
        }
        self.comeback.set(open_again, patience);
        Ok(self)
    }

    /// Lets messages set the front ends while the stream runs, `freq_hz` and `gain_db`, of several
    /// channels `freq_hz0` and `gain_db0` and so on, and stop and start the stream (`stop` and
    /// `start`). `places` has the device and the channel of each output.
    pub fn tunable(mut self, places: Vec<(usize, usize)>) -> Self {
        self.tunable = TunableOutputs::new(places);
        self.switch.may_stop = true;
        self
    }

    /// Tags the first sample of each output with the settings of its front end.
    pub fn with_settings(mut self, outputs: Vec<StartSettings>) -> Self {
        self.start_tags.outputs = outputs;
        self
    }

    /// Tags the first sample with the speed of the device's clock, if that is not as fast as this
    /// machine's ([`crate::Device::other_clock_speed`]).
    pub fn with_clock_speed(mut self, speed: Option<f64>) -> Self {
        self.clock_speed = speed;
        self
    }

    /// Lets the message `rate_hz` change the rate of all channels while the master clocks stay as
    /// they are. `channels` are those of the stream.
    pub fn with_rates(mut self, channels: Vec<(usize, RxArgs)>) -> Self {
        self.again = channels;
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
        self.spill = vec![T::default(); SPILL_SAMPLES * self.outs.len()];
        self.outs.iter_mut().for_each(|out| *out = Out::with_min_items(0));
        self
    }

    /// Receives into the outputs when all have space, or else into the spill buffer; returns true
    /// for the latter.
    fn receive(&mut self, timeout: Duration) -> Result<(RxMetadata, bool), RxError> {
        let Some(stream) = &mut self.stream else { return Ok(Default::default()) };
        let mut places: [&mut [T]; RX_CHANNELS_MAX] = Default::default();
        let places = &mut places[..self.outs.len()];
        let mut room = usize::MAX;
        for (place, out) in places.iter_mut().zip(&mut self.outs) {
            *place = out.slice_mut();
            room = room.min(place.len());
        }
        let spills = room == 0 && !self.spill.is_empty();
        if spills {
            room = SPILL_SAMPLES;
            let spill = self.spill.chunks_exact_mut(SPILL_SAMPLES);
            places.iter_mut().zip(spill).for_each(|(place, spill)| *place = spill);
        }
        let room = self.progress.room(room);
        for place in &mut *places {
            *place = &mut std::mem::take(place)[..room];
        }
        Ok((stream.recv_all(places, timeout)?, spills))
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
        let (Some(devices), Some(stream)) = (self.devices.take(), self.stream.take()) else {
            return Err(error.into());
        };
        self.comeback.begin((devices, stream), &self.tunable.live)?;
        Ok(Work::Again(REOPEN_POLL))
    }

    /// Takes the new stream, once it is there.
    fn reopened(&mut self) -> Result<Work, BlockError> {
        let Some((devices, stream)) = self.comeback.poll(!self.switch.is_stopped)? else {
            return Ok(Work::Again(REOPEN_POLL));
        };
        self.progress.opened_again(self.tunable.tuned_again(devices.devices()));
        self.start_tags.begin_anew();
        (self.devices, self.stream) = (Some(devices), Some(stream));
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
        if let (Some(stream), Some(devices)) = (&mut self.stream, &self.devices) {
            match start_again(devices, stream) {
                // It went away meanwhile.
                Err(error) if self.comeback.is_wanted(&error) => self.lose(error).map(drop)?,
                started => drop(started?),
            }
        } else if !self.comeback.is_under_way() {
            return Err(NOT_OPEN.into());
        }
        self.progress.restart(false);
        Ok(())
    }

    fn stop(&mut self) -> Result<(), BlockError> {
        if let Some(stream) = &mut self.stream {
            // A gap that is counted and not reported yet would be part of the next one. It is
            // complete when each channel has samples behind it.
            let mut places: [&mut [T]; RX_CHANNELS_MAX] = Default::default();
            let places = &mut places[..self.outs.len()];
            let wait = if places.len() > 1 { STOP_WAIT } else { Duration::ZERO };
            match stream.recv_all(places, wait) {
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
            let device = self.devices.as_ref().and_then(|devices| devices.devices().first());
            let ticks = device.and_then(|device| device.time_ticks().ok());
            let wanted = self.progress.wanted();
            if let Some(missing) = self.comeback.stop(ticks, Instant::now(), wanted) {
                self.progress.reopen(missing);
                self.metrics.gaps.add(1);
            }
        }
        if let Some(stream) = &mut self.stream {
            stream.end();
        }
        self.follow_ledgers();
        Ok(())
    }

    /// Opens the stream with another rate.
    fn set_rate(&mut self, rate_hz: f64) -> Result<(), BlockError> {
        let (Some(present), Some(devices)) =
            (self.stream.as_ref().map(RxStreamer::rate), &mut self.devices)
        else {
            return Err(NOT_OPEN.into());
        };
        choose_rates(devices, &self.again, rate_hz, present)?;
        if let Some(mut stream) = self.stream.take() {
            stream.end();
            self.comeback.keep(&stream);
        }
        let opened = devices.rx_group(&self.again).and_then(|mut stream| {
            if !self.switch.is_stopped {
                start_again(devices, &mut stream)?;
            }
            Ok(stream)
        });
        self.stream = Some(opened_again(opened, &mut self.failure)?);
        self.tunable.live.rate = Some((rate_hz, self.again.clone()));
        self.progress.restart(true);
        Ok(())
    }

    /// Publishes the sums of the ledgers over all streams so far and all channels.
    fn follow_ledgers(&self) {
        let present = self.stream.iter().flat_map(RxStreamer::ledgers).map(so_far);
        let mut sum = Ledger::default();
        self.comeback.totals(present).for_each(|ledger| sum.merge(&ledger));
        self.metrics.follow_ledger(&sum);
    }

    /// Publishes the ledgers and the counters; what comes behind the end is in no counter.
    fn follow(&self) {
        self.follow_ledgers();
        let mut counters = *self.comeback.counters();
        self.stream.iter().for_each(|stream| counters.merge(&stream.counters()));
        self.metrics.follow_counters(&counters);
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
        let ledger = match self.stream.as_ref().map(RxStreamer::members) {
            Some([only]) => Some(only.ledger()),
            _ => None,
        };
        let mut gap = self.progress.note(meta.event.cut(past), ledger)? || reopened;
        if spilled && samples > 0 {
            if let Some(stream) = &mut self.stream {
                stream.refuse(samples);
            }
            gap |= self.progress.refuse(samples);
        } else {
            self.progress.deliver(samples, meta.time_ticks, rate);
            if let Some(speed) = self.clock_speed.take_if(|_| samples > 0) {
                self.outs.iter_mut().for_each(|out| out.tag(0, keys::CLOCK_SPEED, speed));
            }
            self.start_tags.tag(&mut self.outs, samples, rate.samples_hz());
            self.progress.tag(&mut self.outs, rate);
            self.outs.iter_mut().for_each(|out| out.produce(items));
        }
        self.metrics.gaps.add(gap.into());
        Ok(())
    }
}

impl<T: StreamSample> Ports for RadioSource<T> {
    fn ports(&mut self, ports: &mut dyn PortVisitor) {
        if let [only] = &mut self.outs[..] {
            return ports.output("out", only);
        }
        for (number, out) in self.outs.iter_mut().enumerate() {
            ports.output(&NumberedName::new("out", number), out);
        }
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
        let (meta, spilled) = match self.receive(context.may_block) {
            Ok(received) => received,
            Err(error) => return self.lose(error),
        };
        self.account(meta, spilled, context.now)?;
        self.follow();
        let Some(stream) = &self.stream else { return Ok(Work::Finished) };
        let ended = self.progress.is_over() || !stream.is_running();
        Ok(if ended { Work::Finished } else { Work::Again(Duration::ZERO) })
    }

    fn finish(&mut self) -> Result<(), BlockError> {
        self.progress.end();
        self.comeback.end()?;
        // Samples behind the last wanted one are not a loss of this source.
        if let Some(mut stream) = self.stream.take() {
            stream.end();
            self.comeback.keep(&stream);
        }
        self.follow_ledgers();
        let ledgers: Vec<_> = self.comeback.totals(std::iter::empty()).collect();
        let balance = ledgers.iter().try_for_each(Ledger::balance);
        // The receiver of the ledgers may have been dropped.
        let _ = self.ledgers.try_send(ledgers);
        Ok(balance?)
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
                let devices = self.devices.as_mut().map(DeviceSet::devices_mut);
                self.tunable.apply(devices, (name, value), &mut self.progress, &mut self.outs)
            }
        }
    }
}
