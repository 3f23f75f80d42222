//! Several receive streams as one, aligned in time: each moment is delivered on all of them or on
//! none.
//!
//! ```text
//! member 0 ─▶ front ─┐   align: a member behind the others gives up      convert n samples of
//! member 1 ─▶ front ─┼─▶ what it has before the latest front     ─▶      each into its slice
//! member 2 ─▶ front ─┘   (ledger: `alignment`)
//! ```
//!
//! One thread serves all members. It waits at the port of a member without data, before which the
//! others cannot deliver. Packets wait in the receive queues meanwhile, within each one's credit.

mod align;
mod restart;

use std::time::Duration;

use num_complex::Complex32;

use super::meta::{RxCounters, RxError, RxEvent};
use super::rate::StreamRate;
use super::streamer::RxStreamer;
use crate::Ledger;
use crate::convert::StreamSample;
use crate::deadline::deadline_after;
use align::Front;

/// The time between the command and the start of a group without a start time, milliseconds.
const START_LEAD_MS: f64 = 50.0;

/// The error behind one that a member had, until all are ended.
const OUT_OF_STEP: RxError = RxError::BadGroup { reason: "one failed: end all, and start again" };

/// The result of one `recv` of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct GroupMetadata {
    /// Samples written to each of the caller's slices: aligned on all channels, without a gap.
    pub samples: usize,
    /// Time of the first sample, ticks; after a gap, without samples, the time at which all
    /// channels continue.
    pub time_ticks: Option<u64>,
    /// The burst is over on all channels.
    pub end_of_burst: bool,
    /// The event; it comes without samples. A gap counts the samples missing on *every* channel,
    /// exactly, and the packets that were lost on any.
    pub event: RxEvent,
    /// The member with the first event.
    pub channel: usize,
}

/// Receive streams of one or several devices that run together.
///
/// They start at one device time, so several devices must first be set to one time (see
/// [`crate::DeviceSet::sync_at_pps`]). When a member loses samples, the others drop the same
/// moments. Each ledger counts them under its own cause, `alignment` if the samples had come. After
/// an overrun all members restart at one time.
///
/// In the steady state nothing is allocated.
#[derive(Debug)]
pub struct RxGroup {
    members: Vec<RxStreamer>,
    /// A burst has begun, and its end has not been reported.
    running: bool,
    /// The time of the next sample, once it is known.
    due: Option<u64>,
    /// Samples of a finite capture that are still to come.
    left: Option<u64>,
    /// The events of members since the last samples.
    trouble: Option<NextGapCause>,
    /// An error to return after the samples that came before it; then [`OUT_OF_STEP`].
    failure: Option<RxError>,
    /// All members are being restarted, after so many attempts.
    restarting: Option<u32>,
}

/// The reason of the next gap.
#[derive(Debug, Clone, Copy)]
struct NextGapCause {
    channel: usize,
    event: RxEvent,
    packets: u64,
}

impl RxGroup {
    /// Returns a group of idle streams. [`crate::Device::rx_group`] does this for channels of one
    /// device.
    ///
    /// # Errors
    /// [`RxError::BadGroup`] without members, or when one runs or has other rates than the first.
    pub fn new(mut members: Vec<RxStreamer>) -> Result<Self, RxError> {
        let bad = |reason| Err(RxError::BadGroup { reason });
        let Some(first) = members.first() else { return bad("it has no member") };
        let rate = first.rate();
        if members.iter().any(|member| member.rate_hz() != rate.samples_hz()) {
            return bad("its members have different sample rates");
        }
        if members.iter().any(|member| member.rate() != rate) {
            return bad("the radios of its members count time at different rates");
        }
        if members.iter().any(|member| member.is_running() || member.core.held.is_some()) {
            return bad("a member is running already");
        }
        for member in &mut members {
            member.core.in_group = true;
            // A wrong time would take one member away from the others.
            member.core.tracker.confirm_jumps(0);
        }
        let (due, left, trouble, failure, restarting) = (None, None, None, None, None);
        Ok(Self { members, running: false, due, left, trouble, failure, restarting })
    }

    /// Returns the members, in the order of the slices.
    pub fn members(&self) -> &[RxStreamer] {
        &self.members
    }

    /// Returns the counters of the members' ports.
    pub fn counters(&self) -> impl Iterator<Item = &RxCounters> {
        self.members.iter().map(RxStreamer::counters)
    }

    /// Returns the members' ledgers; each balances.
    pub fn ledgers(&self) -> impl Iterator<Item = &Ledger> {
        self.members.iter().map(RxStreamer::ledger)
    }

    /// Counts the last `samples` that were received as lost on every channel, see
    /// [`RxStreamer::refuse`].
    ///
    /// # Panics
    /// When fewer were delivered.
    pub fn refuse(&mut self, samples: u64) {
        self.members.iter_mut().for_each(|member| member.refuse(samples));
    }

    /// Returns the sample rate, per second.
    pub fn rate_hz(&self) -> f64 {
        self.members[0].rate_hz()
    }

    /// Returns the rates of samples and of the radios' time.
    pub fn rate(&self) -> StreamRate {
        self.members[0].rate()
    }

    /// Returns whether samples or reports may still come.
    pub fn is_running(&self) -> bool {
        self.running
    }

    /// Starts all members at the device time `at`, or slightly later than now, until
    /// [`RxGroup::stop`].
    ///
    /// # Errors
    /// Those of [`RxStreamer::start_continuous`]; no member runs then.
    pub fn start_continuous(&mut self, at: Option<u64>) -> Result<(), RxError> {
        self.start(None, at)
    }

    /// Starts all members at the device time `at`, or slightly later than now, for `samples`
    /// samples each.
    ///
    /// # Errors
    /// Those of [`RxStreamer::start_finite`]; no member runs then.
    pub fn start_finite(&mut self, samples: u64, at: Option<u64>) -> Result<(), RxError> {
        self.members.iter().try_for_each(|member| member.check_length(samples))?;
        self.start(Some(samples), at)
    }

    fn start(&mut self, samples: Option<u64>, at: Option<u64>) -> Result<(), RxError> {
        if self.running {
            return Err(RxError::Running);
        }
        let at = match at {
            Some(at) => at,
            None => self.latest_ticks()?.wrapping_add(self.lead_ticks()),
        };
        let at = self.members[0].on_cycle(Some(at))?.unwrap_or(at);
        for index in 0..self.members.len() {
            if let Err(error) = self.members[index].start(samples, Some(at)) {
                self.members[..index].iter_mut().for_each(RxStreamer::end);
                return Err(error);
            }
        }
        (self.running, self.due, self.left) = (true, Some(at), samples);
        (self.trouble, self.restarting) = (None, None);
        Ok(())
    }

    /// Stops all members. Packets in flight still come; receive until the end of the burst.
    ///
    /// # Errors
    /// [`RxError::Radio`] when a device does not answer; the other members are stopped.
    pub fn stop(&mut self) -> Result<(), RxError> {
        let mut outcome = Ok(());
        self.restarting = None;
        for member in &mut self.members {
            if !member.core.run.is_idle() {
                outcome = outcome.and(member.stop());
            }
        }
        outcome
    }

    /// Receives complex floats: samples of the same moments into each slice, in the order of the
    /// members, as many as the shortest slice holds.
    ///
    /// Returns early for a gap, the end of the burst, or at the end of `timeout`.
    ///
    /// # Errors
    /// Those of [`RxStreamer::recv`]; [`RxError::NoTime`] when a device sends no time stamps.
    ///
    /// # Panics
    /// When the numbers of slices and members differ.
    pub fn recv(
        &mut self,
        outs: &mut [&mut [Complex32]],
        timeout: Duration,
    ) -> Result<GroupMetadata, RxError> {
        self.recv_as(outs, timeout)
    }

    /// Receives the wire's own 16-bit samples as `[I, Q]`, otherwise like [`RxGroup::recv`].
    ///
    /// # Errors
    /// Those of [`RxGroup::recv`].
    ///
    /// # Panics
    /// When the numbers of slices and members differ.
    pub fn recv_sc16(
        &mut self,
        outs: &mut [&mut [[i16; 2]]],
        timeout: Duration,
    ) -> Result<GroupMetadata, RxError> {
        self.recv_as(outs, timeout)
    }

    /// Receives samples of any type, otherwise like [`RxGroup::recv`].
    ///
    /// # Errors
    /// Those of [`RxGroup::recv`].
    ///
    /// # Panics
    /// When the numbers of slices and members differ.
    pub fn recv_as<T: StreamSample>(
        &mut self,
        outs: &mut [&mut [T]],
        timeout: Duration,
    ) -> Result<GroupMetadata, RxError> {
        assert_eq!(outs.len(), self.members.len(), "one slice per member");
        let room = outs.iter().map(|out| out.len()).min().unwrap_or(0);
        let mut meta = GroupMetadata::default();
        if self.failure.is_none() {
            self.failure = self.fill(outs, room, timeout, &mut meta).err();
        }
        // Samples have left the streams, so they are returned first.
        let failure = self.failure.as_mut().filter(|_| meta.samples == 0);
        let Some(failure) = failure else { return Ok(meta) };
        let failure = std::mem::replace(failure, OUT_OF_STEP);
        Err(self.lose_all(failure))
    }

    fn fill<T: StreamSample>(
        &mut self,
        outs: &mut [&mut [T]],
        room: usize,
        timeout: Duration,
        meta: &mut GroupMetadata,
    ) -> Result<(), RxError> {
        let mut until = None;
        loop {
            match self.front()? {
                Front::Samples { ticks, .. } if self.due != Some(ticks) => {
                    if meta.samples == 0 {
                        *meta = self.gap(ticks);
                    }
                    return Ok(());
                }
                Front::Samples { samples, .. } if meta.samples < room || samples == 0 => {
                    let samples = samples.min(room - meta.samples);
                    self.hand_out(outs, samples, meta)?;
                    // Later samples are not examined: the ledgers end with what the caller has.
                    if meta.end_of_burst || (meta.samples == room && room > 0) {
                        return Ok(());
                    }
                }
                Front::Ended => {
                    if meta.samples == 0 {
                        *meta = self.end_burst();
                    }
                    return Ok(());
                }
                Front::Samples { .. } => return Ok(()),
                Front::Nothing(index) => {
                    let member = &mut self.members[index];
                    let until = *until.get_or_insert_with(|| deadline_after(member.now(), timeout));
                    // A member that recovers may have a result already, which waits for the others.
                    let found = member.advance(until)? && !member.core.is_recovering();
                    let over = member.now() >= until;
                    if self.restarting.is_some() {
                        // The start is not to wait for the next call.
                        self.restart_if_wanted()?;
                    }
                    if !found && over {
                        if meta.samples == 0 {
                            meta.event = RxEvent::Timeout;
                        }
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Converts `samples` samples of every member's held packet.
    fn hand_out<T: StreamSample>(
        &mut self,
        outs: &mut [&mut [T]],
        samples: usize,
        meta: &mut GroupMetadata,
    ) -> Result<(), RxError> {
        for (member, out) in self.members.iter_mut().zip(outs) {
            member.hand_over(&mut out[meta.samples..][..samples])?;
        }
        if meta.samples == 0 {
            meta.time_ticks = self.due;
        }
        meta.samples += samples;
        let ticks = self.rate().ticks(samples as u64);
        self.due = self.due.map(|due| due.wrapping_add(ticks));
        self.left = self.left.map(|left| left.saturating_sub(samples as u64));
        // A further report about the end comes separately.
        if self.members.iter().all(RxStreamer::is_over) && self.left.is_none_or(|left| left == 0) {
            (meta.end_of_burst, self.running) = (true, false);
        }
        Ok(())
    }

    /// Continues all members at `ticks`, after a gap.
    fn gap(&mut self, ticks: u64) -> GroupMetadata {
        let ahead = self.due.map_or(0, |due| ticks.wrapping_sub(due)) as i64;
        self.due = Some(ticks);
        let (channel, event) = self.explain(ahead);
        // A jump of the clock removes nothing from the requested samples.
        if !matches!(event, RxEvent::ClockJump { .. }) {
            self.left = self.left.map(|left| left.saturating_sub(event.missing()));
        }
        GroupMetadata { time_ticks: Some(ticks), event, channel, ..GroupMetadata::default() }
    }

    /// Ends the burst on all members, perhaps early.
    fn end_burst(&mut self) -> GroupMetadata {
        self.running = false;
        let missing = self.left.take().unwrap_or(0);
        let quiet = self.trouble.is_none() && missing == 0;
        let missing = i64::try_from(self.rate().ticks(missing)).unwrap_or(i64::MAX);
        let (channel, event) = if quiet { (0, RxEvent::None) } else { self.explain(missing) };
        GroupMetadata { end_of_burst: true, event, channel, ..GroupMetadata::default() }
    }

    /// Returns the member at fault, and the event with the samples missing on all members, or with
    /// the ticks by which the clock was set back.
    fn explain(&mut self, ticks: i64) -> (usize, RxEvent) {
        let samples = self.rate().samples(u64::try_from(ticks).unwrap_or(0));
        let Some(NextGapCause { channel, event, packets }) = self.trouble.take() else {
            return (0, RxEvent::SequenceGap { packets: 0, samples });
        };
        let event = match event {
            RxEvent::Overrun { .. } => RxEvent::Overrun { samples },
            RxEvent::LateCommand => RxEvent::LateCommand,
            RxEvent::ClockJump { samples: 0, .. } => RxEvent::ClockJump { ticks, samples: 0 },
            RxEvent::ClockJump { .. } => RxEvent::ClockJump { ticks, samples },
            _ => RxEvent::SequenceGap { packets, samples },
        };
        (channel, event)
    }

    /// Stops, discards packets in flight, and returns the final ledgers.
    pub fn finish(mut self) -> Vec<Ledger> {
        // All are stopped before the wait for the first.
        let _ = self.stop();
        self.members.drain(..).map(RxStreamer::finish).collect()
    }

    /// Stops, takes packets in flight off the ports, and ends each ledger where the caller did,
    /// like [`RxGroup::finish`]; the group can be started again.
    pub fn end(&mut self) {
        // All are stopped before the wait for the first.
        let _ = self.stop();
        self.members.iter_mut().for_each(RxStreamer::end);
        (self.running, self.due, self.left) = (false, None, None);
        (self.trouble, self.failure) = (None, None);
    }

    /// Returns how far ahead of the device's time a group starts, ticks.
    fn lead_ticks(&self) -> u64 {
        (self.rate().ticks_hz * START_LEAD_MS / 1e3).ceil() as u64
    }
}
