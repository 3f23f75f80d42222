//! Captures queued one after another in the radio: separate bursts.

use super::core::RxCore;
use super::meta::RxEvent;
use super::state::{AwaitedStart, NewestPacket, StreamState};
use super::tracker::{Arrival, PacketGap};
use crate::Cause;

/// The cycles that the radio takes between two captures, at most.
const PAUSE_CYCLES: u64 = 3;

/// A capture that waits in the radio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PendingCommand {
    pub samples: u64,
    /// The start time; `None` starts it when the capture before it has ended.
    pub at: Option<u64>,
}

impl RxCore {
    /// Returns the number of captures that have not begun at the time `now`, if all their times are
    /// known.
    pub(super) fn waiting_from(&self, now: u64) -> Option<u32> {
        let ahead = |at: u64| at.wrapping_sub(now).wrapping_sub(1) < 1 << 63;
        let mut waiting = u32::from(self.run.awaited().is_some_and(ahead));
        for capture in &self.chain {
            waiting += u32::from(ahead(capture.at?));
        }
        Some(waiting)
    }

    /// Removes the captures that had not begun at `now`, when the radio was stopped. The others are
    /// still to come, each burst with its own end.
    pub(super) fn forget_what_has_not_begun(&mut self, now: u64) {
        let has_begun = |at: u64| now.wrapping_sub(at) < 1 << 63;
        let unbegun = self.run.restarted().filter(|run| !self.may_have_begun(run, now));
        if let Some(start) = unbegun.map(|run| run.start) {
            self.run.await_start(AwaitedStart::First(start));
        }
        let left = if let StreamState::Finite { left, .. } = self.run { left } else { 0 };
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
    }

    /// Ends the burst: the next one in the chain begins, if there is one.
    pub(super) fn burst_over(&mut self) {
        (self.newest, self.with_transmitter) = (NewestPacket::Inside, false);
        let Some(PendingCommand { samples, at }) = self.chain.pop_front() else {
            self.run = StreamState::Idle;
            return;
        };
        match self.run {
            StreamState::Stopping { .. } => self.run.await_start(at.into()),
            _ => self.run = StreamState::started(Some(samples), at),
        }
        // A capture without a time begins behind the end of the one before it.
        if at.is_some() {
            self.tracker.begin(at);
            self.expectation.begin(at);
        } else {
            self.tracker.join(PAUSE_CYCLES * u64::from(self.cycle.get()));
            self.expectation.begin(None);
        }
    }

    /// Returns whether a packet lies behind the end of the current capture.
    pub(super) fn is_of_a_later_capture(&self, arrival: &Arrival) -> bool {
        let StreamState::Finite { left, awaited } = self.run else { return false };
        // The newest packet of a capture is followed by the capture's own end, not by another
        // capture.
        let follows = awaited.is_none() && self.tracker.missing_before(arrival) == 0;
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
        let StreamState::Finite { left, awaited } = self.run else { return };
        let late = self.reports.late_commands;
        if awaited.is_some() && late != self.late_commands_seen {
            self.late_commands_seen += 1;
            self.lose_rest(left, Cause::LateCommand);
            return self.end_burst(RxEvent::LateCommand);
        }
        // Of the missing packets, those that fit into the rest of this capture.
        let spp = u64::from(self.samples_per_packet);
        let packets = self.tracker.missing_before(arrival).min(left.div_ceil(spp));
        let in_packets = left.min(packets * spp);
        // The start of a capture that never began may have been too late.
        let unsent = if awaited.is_some() { Cause::Unknown } else { Cause::DeviceOverrun };
        let damaged = self.tracker.damaged_in_end(in_packets);
        self.tracker.pass_over(packets, left);
        let gap = PacketGap { packets, damaged, in_packets, unsent: left - in_packets, jump: 0 };
        self.losses.book(&gap, unsent, self.reports.queue_drops, &mut self.ledger);
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
