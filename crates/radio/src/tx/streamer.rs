//! The transmit stream of one channel, or of several that take the same moments.

use std::time::{Duration, Instant};

use super::ledger::TxLedger;
use super::member::{FINISH_TIMEOUT, TxMember};
use super::meta::{TxCounters, TxError, TxEvent, TxMetadata, TxSent};
use crate::convert::StreamSample;
use crate::stream::StreamRate;
use crate::{Clock, RadioError};

/// The most channels of one stream.
pub const TX_CHANNELS_MAX: usize = 32;

/// The time from the first samples to the start of a burst of several channels without a start
/// time, milliseconds.
const START_LEAD_MS: f64 = 50.0;

/// The samples for one member before the next one is served: about one train.
const TURN_SAMPLES: usize = 16 * 1024;

/// The interval of polls for events of several channels.
const POLL: Duration = Duration::from_millis(5);

/// A transmit stream of one channel, or of several channels of one or several devices.
///
/// Every burst of several channels has time, and so has every packet: lost or late samples of one
/// do not shift it against the others. Several devices must first be set to one time (see
/// [`crate::DeviceSet::sync_at_pps`]).
#[derive(Debug)]
pub struct TxStreamer {
    members: Vec<TxMember>,
    /// A member failed, and the others may have more or fewer samples than it.
    failed: bool,
}

impl TxStreamer {
    /// Returns the stream of channels that are not in a burst. [`crate::Device::tx_group`] does
    /// this for channels of one device.
    ///
    /// # Errors
    /// [`TxError::BadGroup`] for no channel and for more than [`TX_CHANNELS_MAX`], or when one has
    /// other rates than the first.
    pub fn new(members: Vec<TxMember>) -> Result<Self, TxError> {
        let bad = |reason| Err(TxError::BadGroup { reason });
        let Some(first) = members.first() else { return bad("it has no channel") };
        if members.len() > TX_CHANNELS_MAX {
            return bad("32 channels at most can transmit as one");
        }
        let rate = first.rate();
        if members.iter().any(|member| member.rate().samples_hz() != rate.samples_hz()) {
            return bad("its channels have different sample rates");
        }
        if members.iter().any(|member| member.rate() != rate) {
            return bad("the radios of its channels count time at different rates");
        }
        Ok(Self { members, failed: false })
    }

    /// Returns the stream of a channel that is not in a burst.
    pub fn one(member: TxMember) -> Self {
        Self { members: vec![member], failed: false }
    }

    /// Returns the channels, in the order of the slices.
    pub fn members(&self) -> &[TxMember] {
        &self.members
    }

    /// Returns the outcome of every sample so far, summed over the channels.
    pub fn ledger(&self) -> TxLedger {
        TxLedger::sum(self.ledgers())
    }

    /// Returns the channels' ledgers; each balances.
    pub fn ledgers(&self) -> impl Iterator<Item = &TxLedger> {
        self.members.iter().map(TxMember::ledger)
    }

    /// Returns the counters of the ports, summed over the channels.
    pub fn counters(&self) -> TxCounters {
        let mut sum = TxCounters::default();
        self.members.iter().for_each(|member| sum.merge(member.counters()));
        sum
    }

    /// Returns the samples of a full packet.
    pub fn samples_per_packet(&self) -> usize {
        self.members[0].samples_per_packet
    }

    /// Returns the sample rate, per second, when the stream was opened.
    pub fn rate_hz(&self) -> f64 {
        self.rate().samples_hz()
    }

    /// Returns the rates of samples and of the radio's time when the stream was opened.
    pub fn rate(&self) -> StreamRate {
        self.members[0].rate()
    }

    /// Reads the time of the first channel's device, ticks.
    ///
    /// # Errors
    /// Those of [`crate::control::Control::read`].
    pub fn time_ticks(&self) -> Result<u64, RadioError> {
        self.members[0].time_ticks()
    }

    /// Returns whether a burst has been started and not ended.
    pub fn is_in_burst(&self) -> bool {
        self.members.iter().any(TxMember::is_in_burst)
    }

    /// Sends the same samples to every channel: floats, times the stream's scale and rounded to the
    /// wire's 16 bits, or the wire's own samples as `[I, Q]`.
    ///
    /// Any number of samples is allowed. Packets are filled across calls, so the division of a
    /// burst into calls changes neither the packets nor their times; samples that do not fill a
    /// packet wait for the next call, the end of the burst or [`TxStreamer::flush`].
    ///
    /// In a burst with time every packet has a time, so a lost packet leaves a gap, and later ones
    /// are on time. A burst of several channels without time starts 50 ms after the first one's
    /// time.
    ///
    /// Waits up to `timeout` for space in the device; with `Duration::ZERO` takes the samples for
    /// which there is space. The end of the burst counts only when all samples were taken. A call
    /// that finds a device silent for longer than [`super::RECOVERY_MAX`] checks by control reads
    /// whether it is alive, which may take some seconds more than `timeout` until the error.
    ///
    /// # Errors
    /// [`TxError::DeviceSilent`] when the device stopped answering; [`TxError::Radio`] when the
    /// system refuses. Samples taken until then are in the ledger. Behind an error, several
    /// channels may be out of step and send nothing more: [`TxError::BadGroup`].
    pub fn send<T: StreamSample>(
        &mut self,
        samples: &[T],
        meta: TxMetadata,
        timeout: Duration,
    ) -> Result<TxSent, TxError> {
        let channels = self.members.len();
        self.send_all(&[samples; TX_CHANNELS_MAX][..channels], meta, timeout)
    }

    /// Sends one slice to each channel, otherwise like [`TxStreamer::send`]. All take the same
    /// number of samples.
    ///
    /// # Errors
    /// Those of [`TxStreamer::send`]; [`TxError::BadGroup`] for slices of different lengths or in a
    /// wrong number.
    pub fn send_all<T: StreamSample>(
        &mut self,
        samples: &[&[T]],
        meta: TxMetadata,
        timeout: Duration,
    ) -> Result<TxSent, TxError> {
        if let ([only], [samples]) = (&mut self.members[..], samples) {
            return only.send(samples, meta, timeout);
        }
        let length = self.length_of(samples)?;
        if self.failed {
            let reason = "an earlier send failed on one of them: finish them, and open new ones";
            return Err(TxError::BadGroup { reason });
        }
        self.send_in_step(samples, length, meta, timeout).inspect_err(|_| self.failed = true)
    }

    fn send_in_step<T: StreamSample>(
        &mut self,
        samples: &[&[T]],
        length: usize,
        meta: TxMetadata,
        timeout: Duration,
    ) -> Result<TxSent, TxError> {
        let mut sent = TxSent::default();
        if length == 0 && !meta.end_of_burst {
            return Ok(sent);
        }
        let (mut begun, mut until) = (length == 0, None);
        loop {
            let ready =
                self.members.iter().map(|member| member.core.ready_samples()).min().unwrap_or(0);
            if ready == 0 {
                if !self.wait(timeout, &mut until)? {
                    return Ok(sent);
                }
                continue;
            }
            if !begun {
                self.begin(&meta)?;
                begun = true;
                // An incomplete packet may have been sent, which took credit.
                continue;
            }
            let left = length - sent.samples;
            let count = left.min(ready).min(TURN_SAMPLES);
            let end_of_burst = meta.end_of_burst && count == left;
            let range = sent.samples..sent.samples + count;
            for (member, samples) in self.members.iter_mut().zip(samples) {
                let taken = member.send_ready(&samples[range.clone()], end_of_burst)?;
                debug_assert_eq!(taken, count, "the members are in step");
            }
            sent = TxSent { samples: range.end, end_of_burst };
            if count == left {
                return Ok(sent);
            }
        }
    }

    /// Waits until every member has credit for samples. Returns false at the time-out.
    fn wait(&mut self, timeout: Duration, until: &mut Option<Instant>) -> Result<bool, TxError> {
        let until = *until.get_or_insert_with(|| self.clock().deadline(timeout));
        loop {
            for member in &mut self.members {
                member.poll()?;
            }
            let now = self.clock().now();
            let mut sleep = Duration::MAX;
            let mut closed = None;
            // All at once, so that windows closed by loss open at the same time.
            for member in self.members.iter_mut().filter(|member| member.core.ready_samples() == 0)
            {
                member.recover(now)?;
                sleep = sleep.min(member.core.sleep(now, until));
                closed = Some(member);
            }
            let Some(member) = closed else { return Ok(true) };
            if now >= until {
                return Ok(false);
            }
            member.receive(sleep)?;
        }
    }

    /// Returns the clock of the members.
    fn clock(&self) -> Clock {
        self.members.first().map_or(Clock::MACHINE, |member| member.path.clock)
    }

    fn length_of<T>(&self, samples: &[&[T]]) -> Result<usize, TxError> {
        let bad = |reason| Err(TxError::BadGroup { reason });
        if samples.len() != self.members.len() {
            return bad("there must be one slice of samples for each member");
        }
        let length = samples.first().map_or(0, |samples| samples.len());
        if samples.iter().any(|samples| samples.len() != length) {
            return bad("the slices of samples have different lengths");
        }
        Ok(length)
    }

    /// Starts a burst, which needs a time, or continues one.
    fn begin(&mut self, meta: &TxMetadata) -> Result<(), TxError> {
        let mut time_ticks = meta.time_ticks;
        if time_ticks.is_none() && !self.is_in_burst() {
            let ticks_hz = self.members[0].rate().ticks_hz;
            let lead = (ticks_hz * START_LEAD_MS / 1e3).ceil() as u64;
            time_ticks = Some(self.members[0].time_ticks()?.wrapping_add(lead));
        }
        self.members.iter_mut().try_for_each(|member| member.begin(time_ticks))
    }

    /// Sends samples that wait for their packet to fill, in a short packet.
    ///
    /// A radio that takes several samples in a cycle gets whole cycles: the samples of an
    /// incomplete one wait on, and all do while the device has no space for another packet.
    ///
    /// # Errors
    /// [`TxError::Radio`] when the system refuses.
    pub fn flush(&mut self) -> Result<(), TxError> {
        self.members.iter_mut().try_for_each(TxMember::flush)
    }

    /// Waits until the devices have taken everything that was sent, and the ledgers have the
    /// packets that did not arrive. Returns false at the time-out.
    ///
    /// # Errors
    /// [`TxError::DeviceSilent`], [`TxError::Radio`].
    pub fn drain(&mut self, timeout: Duration) -> Result<bool, TxError> {
        let until = self.clock().deadline(timeout);
        let mut all = true;
        for member in &mut self.members {
            all &= member.drain(member.path.clock.left(until))?;
        }
        Ok(all)
    }

    /// Ends an open burst, after waiting up to `timeout` for room.
    ///
    /// # Errors
    /// Those of [`TxStreamer::send`].
    pub fn end_burst(&mut self, timeout: Duration) -> Result<(), TxError> {
        if !self.is_in_burst() {
            return Ok(());
        }
        self.send::<[i16; 2]>(&[], TxMetadata::now().ending(), timeout).map(drop)
    }

    /// Returns the next event and the position of its channel, if there is one.
    ///
    /// # Errors
    /// [`TxError::Radio`] when the system refuses.
    pub fn poll_event(&mut self) -> Result<Option<(usize, TxEvent)>, TxError> {
        for (index, member) in self.members.iter_mut().enumerate() {
            if let Some(event) = member.poll_event()? {
                return Ok(Some((index, event)));
            }
        }
        Ok(None)
    }

    /// Returns the next event and the position of its channel, waiting for one up to `timeout`.
    ///
    /// # Errors
    /// [`TxError::DeviceSilent`], [`TxError::Radio`].
    pub fn next_event(&mut self, timeout: Duration) -> Result<Option<(usize, TxEvent)>, TxError> {
        if let [only] = &mut self.members[..] {
            return Ok(only.next_event(timeout)?.map(|event| (0, event)));
        }
        let until = self.clock().deadline(timeout);
        loop {
            let event = self.poll_event()?;
            let left = self.clock().left(until);
            if event.is_some() || left.is_zero() {
                return Ok(event);
            }
            std::thread::sleep(left.min(POLL));
        }
    }

    /// Ends an open burst, waits until the device has taken everything, and returns the final
    /// ledger, summed over the channels.
    ///
    /// A burst whose time is still to come is waited for. Samples that a lost device may not have
    /// taken are unknown.
    pub fn finish(mut self) -> TxLedger {
        self.end(None);
        self.ledger()
    }

    /// Does the same as [`Self::finish`] with a time limit for each channel, for bursts whose time
    /// is far away: samples that the device has not taken within `timeout` are unknown.
    pub fn finish_within(mut self, timeout: Duration) -> TxLedger {
        self.end(Some(timeout));
        self.ledger()
    }

    /// Does the same as [`Self::finish_within`], or as [`Self::finish`] for `None`, and leaves the
    /// ledgers to be read.
    pub fn end(&mut self, timeout: Option<Duration>) {
        self.end_bursts();
        for member in &mut self.members {
            let timeout = timeout.unwrap_or_else(|| member.finish_time());
            member.end(timeout);
        }
    }

    /// Ends an open burst on every one of several members, before a wait for one could let another
    /// underflow.
    fn end_bursts(&mut self) {
        if self.members.len() > 1 {
            // The end of each member tries again, and a silent device shows in the ledger.
            let _ = self.end_burst(FINISH_TIMEOUT);
        }
    }
}

impl Drop for TxStreamer {
    fn drop(&mut self) {
        if self.is_in_burst() || self.ledger().in_flight > 0 {
            self.end(Some(FINISH_TIMEOUT));
        }
    }
}
