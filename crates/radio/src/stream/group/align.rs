//! Aligns the members at the same moment.

use super::{NextGapCause, RxGroup};
use crate::Cause;
use crate::convert::StreamSample;
use crate::stream::core::{Pending, UnreadSamples};
use crate::stream::meta::{RxError, RxEvent};
use crate::stream::streamer::{RxStreamer, SAMPLE_BYTES};

/// The next result of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Front {
    /// Samples of every member, from this time on.
    Samples { ticks: u64, samples: usize },
    /// This member has no data yet.
    Nothing(usize),
    /// The burst is over on all members.
    Ended,
}

/// The next data of a member.
enum Next {
    Samples(UnreadSamples),
    Trouble(Pending),
    Nothing,
    Ended,
}

/// A moment of a member's stream: the number of times its clock was set back, and its time, ticks.
type Moment = (u64, u64);

impl RxGroup {
    /// Drops samples that only some members have, until all are at the same moment or one has no
    /// data.
    pub(super) fn front(&mut self) -> Result<Front, RxError> {
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
                let Next::Samples(held) = next else {
                    ended += 1;
                    continue;
                };
                let member = &self.members[index];
                let ticks = held.ticks.ok_or(RxError::NoTime { address: member.path.device })?;
                let moment = (member.core.epoch, ticks);
                aligned &= latest.is_none_or(|latest| latest == moment);
                latest = Some(latest.map_or(moment, |latest| later(latest, moment)));
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
    fn next_of(&mut self, index: usize) -> Result<Option<Next>, RxError> {
        loop {
            let next = self.members[index].next()?;
            self.restart_if_wanted()?;
            match next {
                Next::Trouble(pending) => self.note(index, pending.event),
                Next::Nothing => return Ok(None),
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
    pub(super) fn lose_all(&mut self, failure: RxError) -> RxError {
        if let RxError::SamplesStopped { samples, .. } = failure {
            let others = self.members.iter_mut().filter(|member| !member.core.has_stopped());
            others.for_each(|member| member.core.lose_due(samples));
        }
        failure
    }

    /// Ends the ledger of every channel earlier, see [`RxStreamer::end_before`].
    pub(crate) fn end_before(&mut self, received: u64, lost: u64) {
        self.members.iter_mut().for_each(|member| member.end_before(received, lost));
    }

    /// Drops the rest of all members, because one has ended.
    fn give_up_all(&mut self) -> Result<(), RxError> {
        for member in &mut self.members {
            if member.core.run.is_continuous() {
                member.stop()?;
            }
            if let Some(held) = member.core.held {
                member.give_up(held, usize::MAX)?;
            }
        }
        Ok(())
    }

    fn give_up_until(&mut self, latest: Moment) -> Result<(), RxError> {
        for member in &mut self.members {
            let Some(held) = member.core.held else { continue };
            let Some(ticks) = held.ticks else { continue };
            if (member.core.epoch, ticks) == latest {
                continue;
            }
            // Behind by an epoch, the whole packet has another time.
            let behind =
                if member.core.epoch == latest.0 { latest.1.wrapping_sub(ticks) } else { u64::MAX };
            // A member between two samples of the others gives up one more.
            let samples =
                member.path.rate.samples(behind.saturating_add(member.path.rate.ticks(1) - 1));
            member.give_up(held, usize::try_from(samples).unwrap_or(usize::MAX))?;
        }
        Ok(())
    }
}

impl RxStreamer {
    fn next(&mut self) -> Result<Next, RxError> {
        loop {
            if let Some(pending) = self.core.take_pending() {
                return Ok(Next::Trouble(pending));
            }
            if let Some(held) = self.core.held {
                return Ok(Next::Samples(held));
            }
            if self.core.run.is_idle() {
                return Ok(Next::Ended);
            }
            if !self.inspect_batch()? {
                return Ok(Next::Nothing);
            }
        }
    }

    /// Drops up to `samples` samples of the current packet, because another member lacks them.
    fn give_up(&mut self, held: UnreadSamples, samples: usize) -> Result<(), RxError> {
        let samples = samples.min((held.end - held.at) / SAMPLE_BYTES);
        self.core.ledger.discard(Cause::Alignment, samples as u64);
        self.pass(held, samples).map(drop)
    }

    /// Converts samples of the current packet into all of `out`.
    pub(super) fn hand_over<T: StreamSample>(&mut self, out: &mut [T]) -> Result<(), RxError> {
        let Some(held) = self.core.held else { return Ok(()) };
        self.hand_out(held, out, &mut super::super::meta::RxMetadata::default())
    }

    /// Returns whether the burst is over, and reported completely.
    pub(super) fn is_over(&self) -> bool {
        !self.is_running() && self.core.held.is_none()
    }
}

/// Returns the later of two moments. Within an epoch, time wraps modulo 2⁶⁴.
fn later(a: Moment, b: Moment) -> Moment {
    let b_is_later = if a.0 == b.0 { b.1.wrapping_sub(a.1) < 1 << 63 } else { b.0 > a.0 };
    if b_is_later { b } else { a }
}
