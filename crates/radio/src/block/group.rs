//! The source of several channels, aligned in time.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use millstream_flow::{Block, BlockError, BlockFacts, Context, Out, ParameterValue, Ports, Work};

use super::metrics::Metrics;
use super::reopen::{Comeback, OpenGroupAgain, start_group};
use super::segments::{GroupReport, SampleCount, so_far};
use super::settings::{
    NOT_OPEN, StreamSwitch, StreamWish, TunableOutputs, choose_rates, opened_again,
};
use super::start::{StartSettings, StartTags};
use super::{REOPEN_POLL, SPILL_SAMPLES};
use crate::{
    DeviceSet, GroupMetadata, Ledger, RxArgs, RxError, RxEvent, RxGroup, StreamRate, StreamSample,
};

/// How long a stop waits for each channel's samples behind a gap; else at most for a packet.
const STOP_WAIT: Duration = Duration::from_millis(200);

/// The most channels of one source.
pub const CHANNELS_MAX: usize = 32;

/// The samples of several receive channels, aligned in time. A loss on one channel removes the same
/// moments from all others, so all have the same segments.
///
/// # Stream outputs
/// - `out0`, `out1`, …: the samples of each member of the group. When one output is full, none gets
///   samples. Tags as of [`super::RadioSource`].
///
/// # Metrics
/// Those of [`super::RadioSource`], each the sum over all channels.
#[derive(Ports)]
pub struct GroupSource<T: StreamSample> {
    #[port("out")]
    outs: Vec<Out<T>>,
    group: Option<RxGroup>,
    /// Holds the claims; declared after the group, so that they are dropped last.
    devices: Option<DeviceSet>,
    comeback: Comeback<(DeviceSet, RxGroup)>,
    at: Option<u64>,
    progress: SampleCount,
    ledgers: SyncSender<Vec<Ledger>>,
    /// The buffer for samples that find no space, one stretch after another for each channel.
    spill: Vec<T>,
    metrics: Metrics,
    tunable: TunableOutputs,
    start_tags: StartTags,
    switch: StreamSwitch,
    /// How to open the group with another rate.
    again: Vec<(usize, RxArgs)>,
    /// Why it has no group any more.
    failure: Option<BlockError>,
}

impl<T: StreamSample + Default> GroupSource<T> {
    /// Returns a source of `samples` samples of time (without end when `None`) from streams of
    /// `devices`. Samples without space behind this source are lost, see
    /// [`super::RadioSource::without_waiting`].
    ///
    /// # Errors
    /// [`RxError::BadGroup`] for more than [`CHANNELS_MAX`] channels.
    pub fn new(
        devices: DeviceSet,
        group: RxGroup,
        samples: Option<u64>,
    ) -> Result<(Self, GroupReport), RxError> {
        let channels = group.members().len();
        if channels > CHANNELS_MAX {
            return Err(RxError::BadGroup { reason: "one source takes 32 channels at most" });
        }
        let (progress, segments) = SampleCount::new(samples);
        let (ledgers, told) = sync_channel(1);
        let source = Self {
            outs: (0..channels).map(|_| Out::with_min_items(0)).collect(),
            group: Some(group),
            devices: Some(devices),
            comeback: Comeback::new(channels),
            at: None,
            progress,
            ledgers,
            spill: vec![T::default(); SPILL_SAMPLES * channels],
            metrics: Metrics::default(),
            tunable: TunableOutputs::default(),
            start_tags: StartTags::default(),
            switch: StreamSwitch::default(),
            again: Vec::new(),
            failure: None,
        };
        Ok((source, GroupReport { segments, ledgers: told }))
    }

    /// Sets the start to the devices' time `at`, ticks; `None` starts at once.
    pub fn starting_at(mut self, at: Option<u64>) -> Self {
        self.at = at;
        self
    }

    /// Lets messages set the front ends while the streams run: `freq_hz0` and `gain_db0` those of
    /// the first output, and so on. `places` has the device and the channel of each output. The
    /// messages `stop` and `start` stop and start all channels together.
    pub fn tunable(mut self, places: Vec<(usize, usize)>) -> Self {
        self.tunable = TunableOutputs::several(places);
        self.switch.may_stop = true;
        self
    }

    /// Tags the first sample of each output with the settings of its front end.
    pub fn with_settings(mut self, outputs: Vec<StartSettings>) -> Self {
        self.start_tags.outputs = outputs;
        self
    }

    /// Lets the message `rate_hz` change the rate of all channels while the master clocks stay as
    /// they are. `channels` are those of the group.
    pub fn with_rates(mut self, channels: Vec<(usize, RxArgs)>) -> Self {
        self.again = channels;
        self.switch.may_change_rate = true;
        self
    }

    /// As [`super::RadioSource::reopening`]: the channels go on together behind one gap.
    ///
    /// # Errors
    /// [`RxError::BadGroup`] for several devices: their common time would have to be set at a PPS.
    pub fn reopening(
        mut self,
        open_again: OpenGroupAgain,
        patience: Duration,
    ) -> Result<Self, RxError> {
        if self.devices.as_ref().is_some_and(|devices| devices.devices().len() > 1) {
            return Err(RxError::BadGroup { reason: "only one device can be opened again" });
        }
        self.comeback.set(open_again, patience);
        Ok(self)
    }
}

impl<T: StreamSample> GroupSource<T> {
    /// Receives into the outputs when all have space, or else into the spill buffer; returns true
    /// for the latter.
    fn receive(&mut self, timeout: Duration) -> Result<(GroupMetadata, bool), RxError> {
        let Some(group) = &mut self.group else { return Ok(Default::default()) };
        let channels = self.outs.len();
        let mut places: [&mut [T]; CHANNELS_MAX] = Default::default();
        let mut room = usize::MAX;
        for (place, out) in places.iter_mut().zip(&mut self.outs) {
            *place = out.slice_mut();
            room = room.min(place.len());
        }
        let spills = room == 0;
        if spills {
            room = SPILL_SAMPLES;
            let spill = self.spill.chunks_exact_mut(SPILL_SAMPLES);
            places.iter_mut().zip(spill).for_each(|(place, spill)| *place = spill);
        }
        let room = self.progress.room(room);
        let places = &mut places[..channels];
        for place in &mut *places {
            *place = &mut std::mem::take(place)[..room];
        }
        Ok((group.recv_as(places, timeout)?, spills))
    }

    /// As [`super::RadioSource`] does.
    fn lose(&mut self, error: RxError) -> Result<Work, BlockError> {
        let (event, now) = (error.lost(), Instant::now());
        self.account(GroupMetadata { event, ..Default::default() }, false, now)?;
        self.comeback.pass(event.missing(), now);
        if !self.comeback.is_wanted(&error) {
            return Err(error.into());
        }
        let (Some(devices), Some(group)) = (self.devices.take(), self.group.take()) else {
            return Err(error.into());
        };
        self.comeback.begin((devices, group), &self.tunable.live)?;
        Ok(Work::Again(REOPEN_POLL))
    }

    /// Takes the new group, once it is there.
    fn reopened(&mut self) -> Result<Work, BlockError> {
        let Some((devices, group)) = self.comeback.poll(!self.switch.is_stopped)? else {
            return Ok(Work::Again(REOPEN_POLL));
        };
        self.progress.opened_again(self.tunable.tuned_again(devices.devices()));
        self.start_tags.begin_anew();
        (self.devices, self.group) = (Some(devices), Some(group));
        self.metrics.reopened.add(1);
        Ok(Work::Again(Duration::ZERO))
    }

    /// Stops the streams, or starts them, as a message wants. Neither loses a sample. While the
    /// device is being opened, the wish is kept for the new streams.
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
        if let (Some(group), Some(devices)) = (&mut self.group, &self.devices) {
            match start_group(devices, group) {
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
        if let Some(group) = &mut self.group {
            // A gap that is counted and not reported yet would be part of the next one. It is
            // complete when each channel has samples behind it.
            let mut places: [&mut [T]; CHANNELS_MAX] = Default::default();
            match group.recv_as(&mut places[..self.outs.len()], STOP_WAIT) {
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
        let mut ledgers = Vec::new();
        if let Some(group) = &mut self.group {
            group.end();
            ledgers.extend(group.ledgers().cloned());
        }
        self.follow(self.comeback.totals(ledgers.into_iter()));
        Ok(())
    }

    /// Opens the group with another rate.
    fn set_rate(&mut self, rate_hz: f64) -> Result<(), BlockError> {
        let (Some(present), Some(devices)) =
            (self.group.as_ref().map(RxGroup::rate), &mut self.devices)
        else {
            return Err(NOT_OPEN.into());
        };
        choose_rates(devices, &self.again, rate_hz, present)?;
        if let Some(group) = self.group.take() {
            let counters: Vec<_> = group.counters().copied().collect();
            self.comeback.keep(counters, &group.finish());
        }
        let opened = devices.rx_group(&self.again).and_then(|mut group| {
            if !self.switch.is_stopped {
                start_group(devices, &mut group)?;
            }
            Ok(group)
        });
        self.group = Some(opened_again(opened, &mut self.failure)?);
        self.tunable.live.rate = Some((rate_hz, self.again.clone()));
        self.progress.restart(true);
        Ok(())
    }

    /// Records the result of one `recv` at `now`.
    fn account(
        &mut self,
        meta: GroupMetadata,
        spilled: bool,
        now: Instant,
    ) -> Result<(), BlockError> {
        let rate = self.group.as_ref().map_or(StreamRate::of_radio(0.0), RxGroup::rate);
        let mut gap = false;
        // Samples that are missing behind the start are a gap of their own.
        let wanted = self.progress.wanted();
        if meta.time_ticks.is_some() {
            if let Some(missing) = self.comeback.close_gap(meta.time_ticks, rate, wanted) {
                self.progress.reopen(missing);
                gap = true;
            }
        }
        // What lies behind the end was not asked for.
        let items = self.progress.room(meta.samples);
        let samples = items as u64;
        let past = meta.event.missing().saturating_sub(self.progress.wanted());
        if let Some(group) = &mut self.group {
            group.end_before(meta.samples as u64 - samples, past);
        }
        if samples > 0 {
            let end = meta.time_ticks.map(|ticks| ticks.wrapping_add(rate.ticks(samples)));
            self.comeback.note_end(end, rate, now);
        }
        gap |= self.progress.note(meta.event.cut(past), None)?;
        if spilled && samples > 0 {
            if let Some(group) = &mut self.group {
                group.refuse(samples);
            }
            gap |= self.progress.refuse(samples);
        } else {
            self.progress.deliver(samples, meta.time_ticks, rate);
            self.start_tags.tag(&mut self.outs, samples, rate.samples_hz());
            self.progress.tag(&mut self.outs, rate);
            self.outs.iter_mut().for_each(|out| out.produce(items));
        }
        self.metrics.gaps.add(gap.into());
        Ok(())
    }

    /// Publishes the sum over all channels.
    fn follow(&self, ledgers: impl Iterator<Item = Ledger>) {
        let mut sum = Ledger::default();
        ledgers.for_each(|ledger| sum.merge(&ledger));
        self.metrics.follow_ledger(&sum);
    }
}

impl<T: StreamSample> Block for GroupSource<T> {
    fn start(&mut self) -> Result<(), BlockError> {
        match &mut self.group {
            Some(group) => Ok(group.start_continuous(self.at)?),
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
        let Some(group) = &self.group else { return Ok(Work::Finished) };
        self.follow(self.comeback.totals(group.ledgers().map(so_far)));
        self.metrics.follow_counters(self.comeback.counters().chain(group.counters()));
        let ended = self.progress.is_over() || !group.is_running();
        Ok(if ended { Work::Finished } else { Work::Again(Duration::ZERO) })
    }

    fn finish(&mut self) -> Result<(), BlockError> {
        self.progress.end();
        self.comeback.end()?;
        let mut present = Vec::new();
        if let Some(group) = self.group.take() {
            self.metrics.follow_counters(self.comeback.counters().chain(group.counters()));
            present = group.finish();
        }
        let ledgers: Vec<_> = self.comeback.totals(present.into_iter()).collect();
        self.follow(ledgers.iter().cloned());
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
