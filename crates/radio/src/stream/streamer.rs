//! The receive stream of one channel, or of several that are aligned in time: each moment is
//! delivered on all of them or on none.
//!
//! ```text
//! member 0 ─▶ front ─┐   align: a member behind the others gives up      convert n samples of
//! member 1 ─▶ front ─┼─▶ what it has before the latest front     ─▶      each into its slice
//! member 2 ─▶ front ─┘   (ledger: `alignment`)
//! ```
//!
//! One thread serves all members. It waits at the port of a member without data, before which the
//! others cannot deliver. Packets wait in the receive queues meanwhile, within each one's credit.

use std::time::Duration;

use super::arrival::{PendingReport, UnreadSamples};
use super::member::{RxMember, RxStart, SAMPLE_BYTES};
use super::meta::{RxCounters, RxError, RxEvent, RxMetadata};
use super::rate::StreamRate;
use super::recovery::{Halt, check_attempts};
use crate::convert::StreamSample;
use crate::deadline::deadline_after;
use crate::{Cause, Ledger};

/// The time between the command and the start of a group without a start time, milliseconds.
const START_LEAD_MS: f64 = 50.0;

/// The starts of a group that are tried before one that may be late is kept; each has twice the
/// lead of the one before.
const START_ATTEMPTS: u32 = 4;

/// The most channels of one stream.
pub const RX_CHANNELS_MAX: usize = 32;

/// The error behind one that a member had, until all are ended.
const OUT_OF_STEP: RxError = RxError::BadGroup { reason: "one failed: end all, and start again" };

/// A receive stream of one channel, or of several channels of one or several devices.
///
/// Several start at one device time, so several devices must first be set to one time (see
/// [`crate::DeviceSet::sync_at_pps`]). When a channel loses samples, the others drop the same
/// moments. Each ledger counts them under its own cause, `alignment` if the samples had come. After
/// an overrun all restart at one time.
///
/// In the steady state nothing is allocated.
#[derive(Debug)]
pub struct RxStreamer {
    members: Vec<RxMember>,
    // The rest is about several channels; a single one has its state itself.
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

/// The next result of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Front {
    /// Samples of every member, from this time on.
    Samples { ticks: u64, samples: usize },
    /// This member has no data yet.
    Nothing(usize),
    /// The burst is over on all members.
    Ended,
}

/// The next data of a member.
enum MemberNext {
    Samples(UnreadSamples),
    Trouble(PendingReport),
    Nothing,
    Ended,
}

/// A moment of a member's stream: the number of times its clock was set back, and its time, ticks.
type Moment = (u64, u64);

impl RxStreamer {
    /// Returns the stream of idle channels. [`crate::Device::rx_group`] does this for channels of
    /// one device.
    ///
    /// # Errors
    /// [`RxError::BadGroup`] for no channel and for more than [`RX_CHANNELS_MAX`], or when one has
    /// other rates than the first.
    pub fn new(mut members: Vec<RxMember>) -> Result<Self, RxError> {
        let bad = |reason| Err(RxError::BadGroup { reason });
        let Some(first) = members.first() else { return bad("it has no channel") };
        let rate = first.rate();
        if members.len() > RX_CHANNELS_MAX {
            return bad("32 channels at most can be received as one");
        }
        if members.iter().any(|member| member.rate().samples_hz() != rate.samples_hz()) {
            return bad("its channels have different sample rates");
        }
        if members.iter().any(|member| member.rate() != rate) {
            return bad("the radios of its channels count time at different rates");
        }
        if members.len() > 1 {
            members.iter_mut().for_each(|member| member.core.join_group());
        }
        Ok(Self::of(members))
    }

    /// Returns the stream of an idle channel.
    pub fn one(member: RxMember) -> Self {
        Self::of(vec![member])
    }

    fn of(members: Vec<RxMember>) -> Self {
        let (due, left, trouble, failure, restarting) = (None, None, None, None, None);
        Self { members, running: false, due, left, trouble, failure, restarting }
    }

    /// Returns the channels, in the order of the slices.
    pub fn members(&self) -> &[RxMember] {
        &self.members
    }

    /// Returns the outcome of every sample so far, summed over the channels.
    pub fn ledger(&self) -> Ledger {
        let mut sum = Ledger::default();
        self.ledgers().for_each(|ledger| sum.merge(ledger));
        sum
    }

    /// Returns the channels' ledgers; each balances.
    pub fn ledgers(&self) -> impl Iterator<Item = &Ledger> {
        self.members.iter().map(RxMember::ledger)
    }

    /// Returns the counters of the ports, summed over the channels.
    pub fn counters(&self) -> RxCounters {
        let mut sum = RxCounters::default();
        self.members.iter().for_each(|member| sum.merge(member.counters()));
        sum
    }

    /// Counts the last `samples` that were received as lost on every channel, because the caller
    /// cannot store them.
    ///
    /// # Panics
    /// When fewer were delivered.
    pub fn refuse(&mut self, samples: u64) {
        self.members.iter_mut().for_each(|member| member.refuse(samples));
    }

    /// Ends the ledger of every channel earlier: the caller asked neither for the last `received`
    /// samples that it received, nor for the last `lost` ones of the newest gap.
    pub(crate) fn end_before(&mut self, received: u64, lost: u64) {
        self.members.iter_mut().for_each(|member| member.end_before(received, lost));
    }

    /// Returns the samples of a full packet.
    pub fn samples_per_packet(&self) -> u32 {
        self.members[0].samples_per_packet()
    }

    /// Returns the sample rate, per second, when the stream was opened.
    pub fn rate_hz(&self) -> f64 {
        self.rate().samples_hz()
    }

    /// Returns the rates of samples and of the radios' time when the stream was opened.
    pub fn rate(&self) -> StreamRate {
        self.members[0].rate()
    }

    /// Returns whether anything may still come: samples of a burst that has not ended, or the
    /// report of its end or of an error.
    pub fn is_running(&self) -> bool {
        match &self.members[..] {
            [only] => only.is_running(),
            _ => self.running,
        }
    }

    /// Starts reception until [`RxStreamer::stop`], at the device's time `at`; or at once, several
    /// channels slightly later than now. A radio that makes several samples in a cycle starts with
    /// its first cycle then.
    ///
    /// # Errors
    /// [`RxError::Running`]; [`RxError::Radio`] when a device does not answer. No channel runs
    /// then.
    pub fn start_continuous(&mut self, at: Option<u64>) -> Result<(), RxError> {
        self.start(None, at)
    }

    /// Starts reception of `samples` samples on each channel, like
    /// [`RxStreamer::start_continuous`].
    ///
    /// # Errors
    /// Those of [`RxStreamer::start_continuous`]; [`RxError::BadLength`].
    pub fn start_finite(&mut self, samples: u64, at: Option<u64>) -> Result<(), RxError> {
        self.start(Some(samples), at)
    }

    fn start(&mut self, samples: Option<u64>, at: Option<u64>) -> Result<(), RxError> {
        self.check_length(samples)?;
        if let [only] = &mut self.members[..] {
            return only.start(samples, RxStart::At(at));
        }
        if self.running {
            return Err(RxError::Running);
        }
        let at = match at {
            Some(at) => self.start_all(samples, at)?,
            None => self.start_ahead(samples)?,
        };
        (self.running, self.due, self.left) = (true, Some(at), samples);
        (self.trouble, self.restarting) = (None, None);
        Ok(())
    }

    /// Starts all members at the next common moment, and returns it.
    fn start_ahead(&mut self, samples: Option<u64>) -> Result<u64, RxError> {
        let mut lead = (self.rate().ticks_hz * START_LEAD_MS / 1e3).ceil() as u64;
        for _ in 0..START_ATTEMPTS {
            let at = self.latest_ticks()?.wrapping_add(lead);
            let at = self.start_all(samples, at)?;
            // The radios have answered to the starts: they have them. Before their time?
            if at.wrapping_sub(self.latest_ticks()?) < 1 << 63 {
                return Ok(at);
            }
            // This thread had no CPU, or the network was slow. Some may be late: all again.
            self.members.iter_mut().for_each(RxMember::end);
            lead *= 2;
        }
        let at = self.latest_ticks()?.wrapping_add(lead);
        self.start_all(samples, at)
    }

    /// Starts all members at a time, ticks; returns it as the radios' cycles have it.
    fn start_all(&mut self, samples: Option<u64>, at: u64) -> Result<u64, RxError> {
        let at = self.members[0].on_cycle(Some(at))?.unwrap_or(at);
        for index in 0..self.members.len() {
            if let Err(error) = self.members[index].start(samples, RxStart::At(Some(at))) {
                self.members[..index].iter_mut().for_each(RxMember::end);
                return Err(error);
            }
        }
        Ok(at)
    }

    /// Starts reception of `samples` samples, or until [`RxStreamer::stop`], with the next sample
    /// that the transmitter of the same channel sends, or at once while it transmits. Until then
    /// nothing comes, however long that takes.
    ///
    /// # Errors
    /// [`RxError::Running`], [`RxError::BadLength`]; [`RxError::BadGroup`] for several channels;
    /// [`RxError::Radio`] when the device does not answer, and for an image older than UHD 4.10,
    /// which has no such start.
    pub fn start_with_transmitter(&mut self, samples: Option<u64>) -> Result<(), RxError> {
        self.check_length(samples)?;
        self.only()?.start(samples, RxStart::WithTransmitter)
    }

    /// Queues a capture of `samples` samples, at the device's time `at` or, for `None`, as soon as
    /// the capture before it has ended. The first capture starts an idle stream.
    ///
    /// Each capture is a separate burst. Between two of them the radio needs three cycles of its
    /// clock, and misses their samples: three, or one where a sample takes two cycles or more. So a
    /// capture timed at the end of the one before is late; leave it that time. The radio holds up
    /// to 32 that have not begun.
    ///
    /// # Errors
    /// [`RxError::QueueFull`], [`RxError::Endless`], [`RxError::BadLength`];
    /// [`RxError::BadGroup`] for several channels; [`RxError::Radio`] when the device does not
    /// answer.
    pub fn queue_finite(&mut self, samples: u64, at: Option<u64>) -> Result<(), RxError> {
        self.check_length(Some(samples))?;
        self.only()?.queue_finite(samples, at)
    }

    /// Checks that a capture of `samples` samples is possible.
    fn check_length(&self, samples: Option<u64>) -> Result<(), RxError> {
        let Some(samples) = samples else { return Ok(()) };
        self.members.iter().try_for_each(|member| member.check_length(samples))
    }

    fn only(&mut self) -> Result<&mut RxMember, RxError> {
        let reason = "this is possible for one channel only";
        match &mut self.members[..] {
            [only] => Ok(only),
            _ => Err(RxError::BadGroup { reason }),
        }
    }

    /// Stops reception. Packets in flight still come; receive until the end of the burst, or with
    /// queued captures until the stream [is not running](RxStreamer::is_running).
    ///
    /// # Errors
    /// [`RxError::Radio`] when a device does not answer; the other channels are stopped.
    pub fn stop(&mut self) -> Result<(), RxError> {
        if let [only] = &mut self.members[..] {
            return only.stop();
        }
        let mut outcome = Ok(());
        self.restarting = None;
        for member in &mut self.members {
            if !member.core.run().is_idle() {
                outcome = outcome.and(member.stop());
            }
        }
        outcome
    }

    /// Stops, takes packets in flight off the port, and returns the final ledger, summed over the
    /// channels. The ledger ends where the caller did: later samples are [`Ledger::after_end`], and
    /// not lost.
    pub fn finish(mut self) -> Ledger {
        self.end();
        self.ledger()
    }

    /// Stops, takes packets in flight off the port, and ends the ledgers where the caller did, like
    /// [`RxStreamer::finish`]; the stream can be started again.
    pub fn end(&mut self) {
        if self.members.len() > 1 {
            // All are stopped before the wait for the first.
            let _ = self.stop();
        }
        self.members.iter_mut().for_each(RxMember::end);
        (self.running, self.due, self.left) = (false, None, None);
        (self.trouble, self.failure) = (None, None);
    }

    /// Receives the samples of the only channel, see [`RxStreamer::recv_all`].
    ///
    /// # Errors
    /// Those of [`RxStreamer::recv_all`].
    ///
    /// # Panics
    /// When there are several channels.
    pub fn recv<T: StreamSample>(
        &mut self,
        out: &mut [T],
        timeout: Duration,
    ) -> Result<RxMetadata, RxError> {
        self.recv_all(&mut [out], timeout)
    }

    /// Receives samples of the same moments into each slice, in the order of the channels, as many
    /// as the shortest slice holds: floats, which are the wire's samples times the stream's scale,
    /// or the wire's own 16-bit samples as `[I, Q]`.
    ///
    /// Returns early for a gap, the end of a burst, or at the end of `timeout`. Samples of one call
    /// are contiguous in time. An event is returned separately, before the samples behind it, and
    /// an error after what came before it. A restart behind an overrun needs several answers of the
    /// device; where `timeout` ends before, the next call goes on with it.
    ///
    /// # Errors
    /// [`RxError::DeviceSilent`] when a device stopped answering, [`RxError::SamplesStopped`],
    /// [`RxError::NotRestarted`], [`RxError::Radio`] when the system refuses. Of several channels,
    /// none goes on behind an error until [`RxStreamer::end`] and a new start;
    /// [`RxError::NoTime`] when a device sends no time stamps to align them by.
    ///
    /// # Panics
    /// When the numbers of slices and channels differ.
    pub fn recv_all<T: StreamSample>(
        &mut self,
        outs: &mut [&mut [T]],
        timeout: Duration,
    ) -> Result<RxMetadata, RxError> {
        assert_eq!(outs.len(), self.members.len(), "one slice per channel");
        if let ([only], [out]) = (&mut self.members[..], &mut *outs) {
            return only.recv(out, timeout);
        }
        let room = outs.iter().map(|out| out.len()).min().unwrap_or(0);
        let mut meta = RxMetadata::default();
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
        meta: &mut RxMetadata,
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
        meta: &mut RxMetadata,
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
        if self.members.iter().all(RxMember::is_over) && self.left.is_none_or(|left| left == 0) {
            (meta.end_of_burst, self.running) = (true, false);
        }
        Ok(())
    }

    /// Continues all members at `ticks`, after a gap.
    fn gap(&mut self, ticks: u64) -> RxMetadata {
        let ahead = self.due.map_or(0, |due| ticks.wrapping_sub(due)) as i64;
        self.due = Some(ticks);
        let (channel, event) = self.explain(ahead);
        // A jump of the clock removes nothing from the requested samples.
        if !matches!(event, RxEvent::ClockJump { .. }) {
            self.left = self.left.map(|left| left.saturating_sub(event.missing()));
        }
        RxMetadata { time_ticks: Some(ticks), event, channel, ..RxMetadata::default() }
    }

    /// Ends the burst on all members, perhaps early.
    fn end_burst(&mut self) -> RxMetadata {
        self.running = false;
        let missing = self.left.take().unwrap_or(0);
        let quiet = self.trouble.is_none() && missing == 0;
        let missing = i64::try_from(self.rate().ticks(missing)).unwrap_or(i64::MAX);
        let (channel, event) = if quiet { (0, RxEvent::None) } else { self.explain(missing) };
        RxMetadata { end_of_burst: true, event, channel, ..RxMetadata::default() }
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

    // Aligning

    /// Drops samples that only some members have, until all are at the same moment or one has no
    /// data.
    fn front(&mut self) -> Result<Front, RxError> {
        loop {
            if self.restarting.is_some() {
                self.restart_if_wanted()?;
            }
            if let Some(index) = self.members.iter().position(|member| member.core.is_recovering())
            {
                return Ok(Front::Nothing(index));
            }
            let (mut latest, mut samples) = (None::<Moment>, usize::MAX);
            let (mut aligned, mut ended) = (true, 0);
            for index in 0..self.members.len() {
                let Some(next) = self.next_of(index)? else { return Ok(Front::Nothing(index)) };
                let MemberNext::Samples(held) = next else {
                    ended += 1;
                    continue;
                };
                let member = &self.members[index];
                let ticks = held.ticks.ok_or(RxError::NoTime { address: member.path.device })?;
                let moment = (member.core.epoch(), ticks);
                aligned &= latest.is_none_or(|latest| latest == moment);
                latest = Some(latest.map_or(moment, |latest| later_moment(latest, moment)));
                samples = samples.min((held.end - held.at) / SAMPLE_BYTES);
            }
            match latest {
                None => return Ok(Front::Ended),
                Some(_) if ended > 0 => self.give_up_all()?,
                Some((_, ticks)) if aligned => return Ok(Front::Samples { ticks, samples }),
                Some(latest) => self.give_up_until(latest)?,
            }
            // Dropping samples may free the last packet of an overrun burst.
            self.restart_if_wanted()?;
        }
    }

    /// Returns the next data of a member, or `None` when it has to wait. Records events on the way.
    fn next_of(&mut self, index: usize) -> Result<Option<MemberNext>, RxError> {
        loop {
            let next = self.members[index].next()?;
            self.restart_if_wanted()?;
            match next {
                MemberNext::Trouble(pending) => self.note(index, pending.event),
                MemberNext::Nothing => return Ok(None),
                next => return Ok(Some(next)),
            }
        }
    }

    /// Records the first reason of the next gap, and every lost packet. A jump of the clock has
    /// priority over lost packets, an overrun over both, and a late command over all of them.
    fn note(&mut self, channel: usize, event: RxEvent) {
        let weight = |event: &RxEvent| match event {
            RxEvent::LateCommand => 4,
            RxEvent::Overrun { .. } => 3,
            RxEvent::ClockJump { .. } => 2,
            RxEvent::SequenceGap { .. } => 1,
            RxEvent::None | RxEvent::Timeout => 0,
        };
        if weight(&event) == 0 {
            return;
        }
        let trouble = self.trouble.get_or_insert(NextGapCause { channel, event, packets: 0 });
        if weight(&event) > weight(&trouble.event) {
            (trouble.channel, trouble.event) = (channel, event);
        }
        if let RxEvent::SequenceGap { packets, .. } = event {
            trouble.packets += packets;
        }
    }

    /// Counts on every member what is lost because the samples of one have stopped.
    fn lose_all(&mut self, failure: RxError) -> RxError {
        if let RxError::SamplesStopped { samples, .. } = failure {
            let others = self.members.iter_mut().filter(|member| !member.core.has_stopped());
            others.for_each(|member| member.core.lose_due(samples));
        }
        failure
    }

    /// Drops the rest of all members, because one has ended.
    fn give_up_all(&mut self) -> Result<(), RxError> {
        for member in &mut self.members {
            if member.core.run().is_continuous() {
                member.stop()?;
            }
            if let Some(held) = member.core.held() {
                member.give_up(held, usize::MAX)?;
            }
        }
        Ok(())
    }

    fn give_up_until(&mut self, latest: Moment) -> Result<(), RxError> {
        for member in &mut self.members {
            let Some(held) = member.core.held() else { continue };
            let Some(ticks) = held.ticks else { continue };
            if (member.core.epoch(), ticks) == latest {
                continue;
            }
            // Behind by an epoch, the whole packet has another time.
            let behind = if member.core.epoch() == latest.0 {
                latest.1.wrapping_sub(ticks)
            } else {
                u64::MAX
            };
            // A member between two samples of the others gives up one more.
            let samples =
                member.path.rate.samples(behind.saturating_add(member.path.rate.ticks(1) - 1));
            member.give_up(held, usize::try_from(samples).unwrap_or(usize::MAX))?;
        }
        Ok(())
    }

    // Restarting: each member runs the stages of its own recovery, so no call waits longer than its
    // time-out.
    //
    // member 0: time ─▶ stop ─▶ time ─┐                  ┌─▶ start ─▶ samples
    // member 1: time ─▶ stop ─▶ time ─┴─ one start time ─┴─▶ start ─▶ samples

    /// Goes on with the restart of all members if one of them wants it; the recovery of each member
    /// is completed before that.
    fn restart_if_wanted(&mut self) -> Result<(), RxError> {
        if self.members.iter().any(|member| member.core.is_recovering()) {
            return Ok(());
        }
        let wanted = self.members.iter().filter_map(|member| member.core.recovery().wanted()).max();
        match wanted.max(self.restarting) {
            Some(attempts) => self.restart(attempts),
            None => Ok(()),
        }
    }

    fn restart(&mut self, attempts: u32) -> Result<(), RxError> {
        // A member that is not halted by now could not be: another attempt.
        let is_halted = |member: &RxMember| member.core.recovery().halted().is_some();
        let all = self.members.iter().all(is_halted);
        let attempts = attempts + u32::from(self.restarting.is_some() && !all);
        self.restarting = None;
        if self.members.iter().any(|member| !member.core.run().is_continuous()) {
            // The burst ends anyway, and no member may wait for a start.
            let mut stopped = Ok(());
            for member in &mut self.members {
                if is_halted(member) || member.core.recovery().wanted().is_some() {
                    stopped = stopped.and(member.stop());
                }
            }
            return stopped;
        }
        if let Err(error) = check_attempts(attempts) {
            self.members.iter_mut().for_each(|member| member.core.abandon());
            return Err(error);
        }
        if all {
            self.start_again(attempts);
            return Ok(());
        }
        self.restarting = Some(attempts);
        for member in self.members.iter_mut().filter(|member| !is_halted(member)) {
            member.core.halt(attempts);
        }
        Ok(())
    }

    /// Begins the start of all members, which have stopped.
    fn start_again(&mut self, attempts: u32) {
        let halts = || self.members.iter().filter_map(|member| member.core.recovery().halted());
        let Some(first) = halts().next() else { return };
        let before = halts().map(|halt| halt.before).fold(first.before, earlier);
        let now = halts().map(|halt| halt.behind).fold(first.behind, later);
        // All members have samples at the same times.
        let core = &self.members[0].core;
        let start = core.restart_at(now.wrapping_sub(before), now, first.behind, attempts);
        for member in &mut self.members {
            // A member that overran by itself has reported that before it acknowledged the stop.
            member.look();
            let halt: Halt = member.core.recovery().halted().unwrap_or(first);
            member.core.begin_start(halt, start, attempts + 1);
        }
    }

    /// Returns the time of the device that is furthest ahead, ticks.
    fn latest_ticks(&self) -> Result<u64, RxError> {
        let mut latest = self.members[0].channel.time_ticks()?;
        for member in &self.members[1..] {
            if member.path.device != self.members[0].path.device {
                latest = latest.max(member.channel.time_ticks()?);
            }
        }
        Ok(latest)
    }
}

impl Drop for RxStreamer {
    fn drop(&mut self) {
        self.end();
    }
}

impl RxMember {
    fn next(&mut self) -> Result<MemberNext, RxError> {
        loop {
            if let Some(pending) = self.core.take_pending() {
                return Ok(MemberNext::Trouble(pending));
            }
            if let Some(held) = self.core.held() {
                return Ok(MemberNext::Samples(held));
            }
            if self.core.run().is_idle() {
                return Ok(MemberNext::Ended);
            }
            if !self.inspect_batch()? {
                return Ok(MemberNext::Nothing);
            }
        }
    }

    /// Drops up to `samples` samples of the current packet, because another member lacks them.
    fn give_up(&mut self, held: UnreadSamples, samples: usize) -> Result<(), RxError> {
        let samples = samples.min((held.end - held.at) / SAMPLE_BYTES);
        self.core.books_mut().discard(Cause::Alignment, samples as u64);
        self.pass(held, samples).map(drop)
    }

    /// Converts samples of the current packet into all of `out`.
    fn hand_over<T: StreamSample>(&mut self, out: &mut [T]) -> Result<(), RxError> {
        let Some(held) = self.core.held() else { return Ok(()) };
        self.hand_out(held, out, &mut RxMetadata::default())
    }

    /// Returns whether the burst is over, and reported completely.
    fn is_over(&self) -> bool {
        !self.is_running() && self.core.held().is_none()
    }
}

/// Returns the later of two moments. Within an epoch, time wraps modulo 2⁶⁴.
fn later_moment(a: Moment, b: Moment) -> Moment {
    let b_is_later = if a.0 == b.0 { b.1.wrapping_sub(a.1) < 1 << 63 } else { b.0 > a.0 };
    if b_is_later { b } else { a }
}

/// Returns the earlier one of two times, which wrap modulo 2⁶⁴.
fn earlier(one: u64, other: u64) -> u64 {
    if other.wrapping_sub(one) < 1 << 63 { one } else { other }
}

/// Returns the later one.
fn later(one: u64, other: u64) -> u64 {
    if other.wrapping_sub(one) < 1 << 63 { other } else { one }
}
