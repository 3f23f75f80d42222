//! Captures queued one after another in the radio: separate bursts, without a gap where they join.

use millstream_wire::regs::radio::RX_CMD_SLOTS;

use super::meta::{RxError, RxEvent};
use super::streamer::{RxStreamer, StreamState};
use super::tracker::{Arrival, PacketGap};
use crate::{Cause, RadioError};

/// A capture that waits in the radio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PendingCommand {
    pub samples: u64,
    /// The start time; `None` starts it when the capture before it has ended.
    pub at: Option<u64>,
}

impl RxStreamer {
    /// Queues a capture of `samples` samples, at the device's time `at` or, for `None`, at the end
    /// of the capture before it, without a gap. The first capture starts an idle stream.
    ///
    /// Each capture is a separate burst. The radio holds up to 32 that have not begun.
    ///
    /// # Errors
    /// [`RxError::QueueFull`], [`RxError::Endless`], [`RxError::BadLength`]; [`RxError::Radio`]
    /// when the device does not answer.
    pub fn queue_finite(&mut self, samples: u64, at: Option<u64>) -> Result<(), RxError> {
        match self.run {
            StreamState::Finite(_) => {}
            StreamState::Idle => return self.start_finite(samples, at),
            StreamState::Continuous | StreamState::Stopping(_) => return Err(RxError::Endless),
        }
        self.check_length(samples)?;
        let free = self.channel.free_slots()?;
        if free == 0 {
            return Err(RxError::QueueFull);
        }
        // The radio counts its own samples.
        let length = Some(self.path.rate.ticks(samples));
        match self.channel.start(length, at) {
            Ok(()) => {}
            Err(RadioError::Silent { .. }) if !self.was_queued(free, at)? => {
                self.channel.start(length, at)?;
            }
            Err(RadioError::Silent { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        self.chain.push_back(PendingCommand { samples, at });
        Ok(())
    }

    /// Returns whether a capture was queued although the write was not acknowledged. In doubt it
    /// was: the ledger shows whether its samples come, and none can come twice.
    fn was_queued(&self, free_before: u32, at: Option<u64>) -> Result<bool, RxError> {
        let before = self.waiting_from(self.channel.time_ticks()?);
        let free = self.channel.free_slots()?;
        let now = self.channel.time_ticks()?;
        if free < free_before || before != self.waiting_from(now) {
            return Ok(true);
        }
        // No capture began meanwhile, so the queued ones can be counted.
        let ahead = |at: u64| at.wrapping_sub(now).wrapping_sub(1) < 1 << 63;
        match (before, at) {
            (Some(waiting), Some(at)) if ahead(at) => Ok(RX_CMD_SLOTS - free > waiting),
            _ => Ok(true),
        }
    }

    /// Returns the number of captures that have not begun at the time `now`, if all their times are
    /// known.
    fn waiting_from(&self, now: u64) -> Option<u32> {
        let ahead = |at: u64| at.wrapping_sub(now).wrapping_sub(1) < 1 << 63;
        let mut waiting = u32::from(self.awaited.is_some_and(ahead));
        for capture in &self.chain {
            waiting += u32::from(ahead(capture.at?));
        }
        Some(waiting)
    }

    /// Removes the captures that had not begun when the radio was stopped. The others are still to
    /// come, each burst with its own end.
    pub(super) fn forget_what_has_not_begun(&mut self) -> Result<(), RxError> {
        if self.chain.is_empty() && self.recovery.is_none() {
            return Ok(());
        }
        let now = self.channel.time_ticks().inspect_err(|_| self.chain.clear())?;
        let has_begun = |at: u64| now.wrapping_sub(at) < 1 << 63;
        self.recovery = self.recovery.filter(|recovery| self.may_have_begun(recovery, now));
        let left = if let StreamState::Finite(left) = self.run { left } else { 0 };
        let rate = self.path.rate;
        let end = |at: u64, samples: u64| at.wrapping_add(rate.ticks(samples));
        let mut joint = self.tracker.next_ticks().map(|due| end(due, left));
        let mut begun = 0;
        for PendingCommand { samples, at } in &self.chain {
            let at = at.or(joint);
            // In doubt it has: then the wait for its end is in vain, but short.
            if !at.is_none_or(has_begun) {
                break;
            }
            begun += 1;
            joint = at.map(|at| end(at, *samples));
        }
        self.chain.truncate(begun);
        Ok(())
    }

    /// Ends the burst: the next one in the chain begins, if there is one.
    pub(super) fn burst_over(&mut self) {
        (self.awaited, self.ended) = (None, false);
        let Some(PendingCommand { samples, at }) = self.chain.pop_front() else {
            self.run = StreamState::Idle;
            return;
        };
        if !matches!(self.run, StreamState::Stopping(_)) {
            self.run = StreamState::Finite(samples);
        }
        self.awaited = at;
        // A capture without a time continues where the one before it ends.
        if at.is_some() {
            self.tracker.begin(at);
            self.expectation.begin(at);
        }
    }

    /// Returns whether a packet lies behind the end of the current capture.
    pub(super) fn is_of_a_later_capture(&self, arrival: &Arrival) -> bool {
        let StreamState::Finite(left) = self.run else { return false };
        // The newest packet of a capture is followed by the capture's own end, not by another
        // capture.
        let follows = self.awaited.is_none() && self.tracker.missing_before(arrival) == 0;
        if self.chain.is_empty() || (follows && self.tracker.has_begun() && left > 0) {
            return false;
        }
        match (arrival.ticks, self.tracker.next_ticks()) {
            (Some(ticks), Some(due)) => {
                (self.path.rate.ticks(left)..1 << 48).contains(&ticks.wrapping_sub(due))
            }
            _ => false,
        }
    }

    /// Gives up the rest of the current capture, because a packet of a later one arrived.
    pub(super) fn give_up_capture(&mut self, arrival: &Arrival) {
        let StreamState::Finite(left) = self.run else { return };
        let late = self.channel.events().late_commands();
        if self.awaited.is_some() && late != self.late_commands_seen {
            self.late_commands_seen += 1;
            self.lose_rest(left, Cause::LateCommand);
            return self.end_burst(RxEvent::LateCommand);
        }
        // Of the missing packets, those that fit into the rest of this capture.
        let spp = u64::from(self.samples_per_packet);
        let packets = self.tracker.missing_before(arrival).min(left.div_ceil(spp));
        let in_packets = left.min(packets * spp);
        // The start of a capture that never began may have been too late.
        let unsent = if self.awaited.is_some() { Cause::Unknown } else { Cause::DeviceOverrun };
        let damaged = self.tracker.damaged_in_end(in_packets);
        self.tracker.pass_over(packets, left);
        let gap = PacketGap { packets, damaged, in_packets, unsent: left - in_packets, jump: 0 };
        self.losses.book(&gap, unsent, self.port.rx.queue_drops(), &mut self.ledger);
        self.expectation.add(left);
        self.ledger.expected = self.expectation.total();
        let event = if packets > 0 {
            RxEvent::SequenceGap { packets, samples: left }
        } else {
            RxEvent::Overrun { samples: left }
        };
        self.end_burst(event);
    }
}
