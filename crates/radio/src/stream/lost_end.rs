//! The ends of bursts that did not come.

use super::core::RxCore;
use super::meta::RxEvent;
use super::rate::StreamRate;
use super::state::NewestPacket;
use super::tracker::PacketGap;
use crate::Cause;

impl RxCore {
    /// Counts samples of a finite capture that will not come.
    pub(super) fn lose_rest(&mut self, samples: u64, cause: Cause) {
        self.expectation.add(samples);
        self.ledger.expected = self.expectation.total();
        self.ledger.lose(cause, samples);
    }

    /// Counts the end of a finite capture as lost: its packets are lost, or the device stopped
    /// before it sent them.
    pub(super) fn lose_tail(&mut self, samples: u64) {
        let spp = u64::from(self.samples_per_packet);
        let packets = samples.div_ceil(spp);
        let damaged = self.tracker.damaged_in_end(samples);
        let mut gap = PacketGap { packets, damaged, in_packets: samples, ..PacketGap::default() };
        let mut unknown = 0;
        let (overrun, due) = (self.new_overrun(), self.tracker.next_ticks());
        if let Some(sent) = sent_before(overrun, due, samples, self.path.rate) {
            let in_packets = if sent > self.surely_sent_samples() { 0 } else { sent };
            unknown = sent - in_packets;
            gap = PacketGap {
                packets: sent.div_ceil(spp),
                in_packets,
                unsent: samples - sent,
                ..gap
            };
        } else if !self.tracker.has_begun() && self.run.awaited().is_some() {
            // The start may have been too late, and the report of that lost.
            (gap.in_packets, unknown) = (0, samples);
        } else if samples > self.surely_sent_samples() {
            // Without credit the device keeps the last ones.
            (gap.in_packets, unknown) = (0, samples);
        }
        let drops = self.reports.queue_drops;
        self.losses.book(&gap, Cause::DeviceOverrun, drops, &mut self.ledger);
        self.ledger.lose(Cause::Unknown, unknown);
        self.expectation.add(samples);
        self.ledger.expected = self.expectation.total();
        self.tracker.lose_end(packets, samples);
        let event = if gap.unsent > 0 {
            RxEvent::Overrun { samples }
        } else {
            RxEvent::SequenceGap { packets, samples }
        };
        self.end_burst(event);
    }

    /// Gives up the run that may have begun by the device's time `now`, ticks: its packets come
    /// behind the new set-up of the stream. Returns whether it has.
    pub(crate) fn lose_run(&mut self, now: u64) -> bool {
        if self.has_run_begun(now) != Some(true) {
            return false;
        }
        self.run_settled = true;
        // The next packets are of that run, followed by its end.
        match self.newest {
            NewestPacket::EndOfLastRun => self.newest = NewestPacket::EndOfRun,
            NewestPacket::Inside | NewestPacket::EndOfRun => self.ends_due += 1,
        }
        self.lost_run = true;
        true
    }

    /// Keeps in mind that a restart lies ahead of the device's time `now`, ticks: a false time may
    /// have put it there. Its run may begin while the stream is set up.
    pub(super) fn note_start_ahead(&mut self, now: u64) {
        let is_ahead = self.has_run_begun(now) == Some(false);
        if let Some(run) = self.run.restarted_mut() {
            run.was_ahead |= is_ahead;
        }
    }

    /// Returns whether the run of a restart has begun by `now`; `None` if none is awaited that may.
    fn has_run_begun(&self, now: u64) -> Option<bool> {
        let is_late = self.reports.late_commands != self.late_commands_seen;
        let run = self.run.restarted().filter(|_| !self.run_settled && !is_late)?;
        Some(self.has_begun(run, now))
    }

    /// Returns the most samples that the device can have sent since the newest packet that came: a
    /// window of credit for each set-up of the stream, and for each of its totals that this host
    /// took over.
    pub(super) fn window_samples(&self) -> u64 {
        self.windows_samples(1 + self.setups + self.reopened)
    }

    /// Returns the samples for which the device had credit behind the newest packet that came.
    pub(super) fn surely_sent_samples(&self) -> u64 {
        let packets = self.credit.unreported_packets();
        let unreported = packets.saturating_mul(self.samples_per_packet.into());
        self.windows_samples(1 + self.setups).saturating_sub(unreported)
    }

    fn windows_samples(&self, windows: u64) -> u64 {
        let packets = self.credit.window_packets().saturating_mul(windows);
        packets.saturating_mul(self.samples_per_packet.into())
    }
}

/// Returns the samples before the device's overrun, of `missing` samples from `due` on, if the
/// device reported its time.
pub(super) fn sent_before(
    overrun: Option<u64>,
    due: Option<u64>,
    missing: u64,
    rate: StreamRate,
) -> Option<u64> {
    let sent = rate.samples(overrun?.wrapping_sub(due?));
    (sent <= missing).then_some(sent)
}
