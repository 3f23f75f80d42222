//! Several transmit streams as one, aligned in time.

use std::time::{Duration, Instant};

use num_complex::Complex32;

use super::ledger::TxLedger;
use super::meta::{TxCounters, TxError, TxEvent, TxMetadata, TxSent};
use super::streamer::{FINISH_TIMEOUT, TxStreamer};
use crate::Clock;
use crate::convert::StreamSample;

/// The time from the first samples to the start of a burst without a start time, milliseconds.
const START_LEAD_MS: f64 = 50.0;

/// The samples for one member before the next one is served: about one GSO batch.
const TURN_SAMPLES: usize = 16 * 1024;

/// Transmit streams of one or several devices that send together.
///
/// Every burst has time, and so has every packet: lost or late samples of one member do not shift
/// it against the others. Several devices must first be set to one time (see
/// [`crate::DeviceSet::sync_at_pps`]).
#[derive(Debug)]
pub struct TxGroup {
    members: Vec<TxStreamer>,
    /// A member failed, and the others may have more or fewer samples than it.
    failed: bool,
}

impl TxGroup {
    /// Returns a group of streams that are not in a burst. [`crate::Device::tx_group`] does this
    /// for channels of one device.
    ///
    /// # Errors
    /// [`TxError::BadGroup`] without members, or when one is in a burst or has another rate than
    /// the first.
    pub fn new(members: Vec<TxStreamer>) -> Result<Self, TxError> {
        let bad = |reason| Err(TxError::BadGroup { reason });
        let Some(first) = members.first() else { return bad("it has no member") };
        if members.iter().any(|member| member.rate_hz() != first.rate_hz()) {
            return bad("its members have different sample rates");
        }
        if members.iter().any(|member| member.rate() != first.rate()) {
            return bad("the radios of its members count time at different rates");
        }
        if members.iter().any(TxStreamer::is_in_burst) {
            return bad("a member is in a burst already");
        }
        Ok(Self { members, failed: false })
    }

    /// Returns the members, in the order of the slices.
    pub fn members(&self) -> &[TxStreamer] {
        &self.members
    }

    /// Returns the counters of the members' ports.
    pub fn counters(&self) -> impl Iterator<Item = &TxCounters> {
        self.members.iter().map(TxStreamer::counters)
    }

    /// Returns the members' ledgers; each balances.
    pub fn ledgers(&self) -> impl Iterator<Item = &TxLedger> {
        self.members.iter().map(TxStreamer::ledger)
    }

    /// Returns the sample rate, per second.
    pub fn rate_hz(&self) -> f64 {
        self.members[0].rate_hz()
    }

    /// Returns whether a burst has been started and not ended.
    pub fn is_in_burst(&self) -> bool {
        self.members.iter().any(TxStreamer::is_in_burst)
    }

    /// Sends complex floats, one slice for each member; otherwise like [`TxStreamer::send`]. All
    /// members take the same number of samples. A burst without time starts 50 ms after the first
    /// member's time.
    ///
    /// # Errors
    /// Those of [`TxStreamer::send`], after which the members may be out of step and the group
    /// sends nothing more; [`TxError::BadGroup`] then, and for slices of different lengths or in a
    /// wrong number.
    pub fn send(
        &mut self,
        samples: &[&[Complex32]],
        meta: TxMetadata,
        timeout: Duration,
    ) -> Result<TxSent, TxError> {
        self.send_as(samples, meta, timeout)
    }

    /// Sends the wire's own 16-bit samples as `[I, Q]`, otherwise like [`TxGroup::send`].
    ///
    /// # Errors
    /// Those of [`TxGroup::send`].
    pub fn send_sc16(
        &mut self,
        samples: &[&[[i16; 2]]],
        meta: TxMetadata,
        timeout: Duration,
    ) -> Result<TxSent, TxError> {
        self.send_as(samples, meta, timeout)
    }

    /// Sends samples of any type, otherwise like [`TxGroup::send`].
    ///
    /// # Errors
    /// Those of [`TxGroup::send`].
    pub fn send_as<T: StreamSample>(
        &mut self,
        samples: &[&[T]],
        meta: TxMetadata,
        timeout: Duration,
    ) -> Result<TxSent, TxError> {
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

    /// Returns the next event and its member, if there is one.
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

    /// Ends an open burst, waits until the devices have taken everything, and returns the final
    /// ledgers, in the order of the members.
    pub fn finish(mut self) -> Vec<TxLedger> {
        self.end_bursts();
        std::mem::take(&mut self.members).into_iter().map(TxStreamer::finish).collect()
    }

    /// Does the same as [`Self::finish`], but samples that a device has not taken within `timeout`
    /// are unknown, see [`TxStreamer::finish_within`].
    pub fn finish_within(mut self, timeout: Duration) -> Vec<TxLedger> {
        self.end_bursts();
        let members = std::mem::take(&mut self.members);
        members.into_iter().map(|member| member.finish_within(timeout)).collect()
    }

    /// Ends an open burst on every member, before a wait for one could let another underflow.
    fn end_bursts(&mut self) {
        if self.is_in_burst() {
            let none = vec![&[][..]; self.members.len()];
            // The end of each member tries again, and a silent device shows in the ledger.
            let _ = self.send_sc16(&none, TxMetadata::now().ending(), FINISH_TIMEOUT);
        }
    }
}

impl Drop for TxGroup {
    fn drop(&mut self) {
        self.end_bursts();
    }
}
