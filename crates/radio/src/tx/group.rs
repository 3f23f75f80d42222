//! Several transmit streams as one: the same moments on all of them.

use std::time::{Duration, Instant};

use num_complex::Complex32;

use super::ledger::TxLedger;
use super::meta::{TxCounters, TxError, TxEvent, TxMetadata, TxSent};
use super::streamer::TxStreamer;
use crate::convert::Sample;

/// Time from the first samples to the start of a burst that is not told when, milliseconds.
const START_LEAD_MS: f64 = 50.0;

/// Samples given to one member before it is the turn of the next: about one train.
const TURN_SAMPLES: usize = 16 * 1024;

/// Transmit streams of one or several devices that send together.
///
/// Every burst has time, and so has every packet: what one member loses on the way or sends too
/// late does not shift it against the others. Several devices must agree on the time first (see
/// [`crate::DeviceSet::sync_at_pps`]).
#[derive(Debug)]
pub struct TxGroup {
    members: Vec<TxStreamer>,
}

impl TxGroup {
    /// A group of streams that are not in a burst. [`crate::Device::tx_group`] does this for
    /// channels of one device.
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
        if members.iter().any(TxStreamer::is_in_burst) {
            return bad("a member is in a burst already");
        }
        Ok(Self { members })
    }

    /// The members, in the order of the slices.
    pub fn members(&self) -> &[TxStreamer] {
        &self.members
    }

    /// What was counted at the members' ports.
    pub fn counters(&self) -> impl Iterator<Item = &TxCounters> {
        self.members.iter().map(TxStreamer::counters)
    }

    /// The members' ledgers; each balances.
    pub fn ledgers(&self) -> impl Iterator<Item = &TxLedger> {
        self.members.iter().map(TxStreamer::ledger)
    }

    /// Samples, and ticks, per second.
    pub fn rate_hz(&self) -> f64 {
        self.members[0].rate_hz()
    }

    /// Whether a burst has been started and not ended.
    pub fn is_in_burst(&self) -> bool {
        self.members.iter().any(TxStreamer::is_in_burst)
    }

    /// Sends complex floats, one slice for each member; otherwise like [`TxStreamer::send`]. All
    /// members take the same number of samples. A burst without time starts 50 ms ahead of the
    /// first member's.
    ///
    /// # Errors
    /// Those of [`TxStreamer::send`]; [`TxError::BadGroup`] for slices of different lengths or of
    /// another number than there are members.
    pub fn send(
        &mut self,
        samples: &[&[Complex32]],
        meta: TxMetadata,
        timeout: Duration,
    ) -> Result<TxSent, TxError> {
        self.send_with(samples, meta, timeout, TxStreamer::send)
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
        self.send_with(samples, meta, timeout, TxStreamer::send_sc16)
    }

    fn send_with<T: Sample>(
        &mut self,
        samples: &[&[T]],
        meta: TxMetadata,
        timeout: Duration,
        send: impl Fn(&mut TxStreamer, &[T], TxMetadata, Duration) -> Result<TxSent, TxError>,
    ) -> Result<TxSent, TxError> {
        let length = self.length_of(samples)?;
        let mut time_ticks = self.start_of(&meta, length)?;
        let mut sent = TxSent::default();
        let mut until = None;
        loop {
            let left = length - sent.samples;
            let ready = self.members.iter().map(TxStreamer::ready_samples).min().unwrap_or(0);
            let count = left.min(ready).min(TURN_SAMPLES);
            let last = count == left && ready > 0;
            if count > 0 || last {
                let end_of_burst = meta.end_of_burst && last;
                let turn = TxMetadata { time_ticks: time_ticks.take(), end_of_burst };
                for (member, samples) in self.members.iter_mut().zip(samples) {
                    let range = sent.samples..sent.samples + count;
                    let taken = send(member, &samples[range], turn, Duration::ZERO)?;
                    debug_assert_eq!(taken, TxSent { samples: count, end_of_burst });
                }
                sent.samples += count;
                sent.end_of_burst = end_of_burst;
            }
            if last {
                return Ok(sent);
            }
            if count == 0 && !self.wait(timeout, &mut until)? {
                return Ok(sent);
            }
        }
    }

    /// Waits until the member with the least room has some. False when the time is up.
    fn wait(&mut self, timeout: Duration, until: &mut Option<Instant>) -> Result<bool, TxError> {
        let now = Instant::now();
        let until = *until.get_or_insert(now + timeout.min(super::send::YEAR));
        let member = self.members.iter_mut().min_by_key(|member| member.ready_samples());
        let Some(member) = member else { return Ok(false) };
        member.wait(until.saturating_duration_since(now), |member| member.ready_samples() > 0)
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

    /// The time of the first sample: a burst that starts needs one.
    fn start_of(&self, meta: &TxMetadata, length: usize) -> Result<Option<u64>, TxError> {
        if meta.time_ticks.is_some() || length == 0 || self.is_in_burst() {
            return Ok(meta.time_ticks);
        }
        let lead = (self.rate_hz() * START_LEAD_MS / 1e3).ceil() as u64;
        Ok(Some(self.members[0].time_ticks()?.wrapping_add(lead)))
    }

    /// The next event and the member that it happened to, if there is one.
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
    pub fn finish(self) -> Vec<TxLedger> {
        self.members.into_iter().map(TxStreamer::finish).collect()
    }
}
