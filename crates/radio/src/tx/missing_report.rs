//! The device's progress where reports are missing: what is unknown, and its bounds.
//!
//! A missing report may have been about a packet with a wrong number. What the device passed until
//! the next report is unknown then. If it was one report, an exact count shows later by how much
//! that number was wrong: not at all, ahead, or so far back that skipped packets may have come
//! late. Of two reports without such a count between them nothing is known.

use super::ledger::TxCause;
use super::progress::DeviceProgress;

/// More than one report is missing, or they contradict each other.
pub(super) const LOST: u32 = 2;

/// What is unknown because of one missing report.
#[derive(Debug, Clone, Copy)]
pub(super) struct Doubt {
    samples: u64,
    /// Samples that may have been taken twice.
    again: u64,
}

impl DeviceProgress {
    /// Counts reports missing before the next one, or one with a fault and no packet numbers.
    pub fn miss_reports(&mut self, count: u32) {
        self.troubled = true;
        self.missed = self.missed.saturating_add(count);
    }

    /// Takes the number of the packet that the device expects, behind reports that may be missing.
    pub(super) fn reach(&mut self, place: u64, counted_bytes: u64) {
        if place < self.least {
            // Only a packet that no report told about leads there.
            self.miss_reports(LOST);
        }
        match std::mem::take(&mut self.missed) {
            0 => {}
            missed => self.resolve(place, missed, counted_bytes),
        }
    }

    /// Counts as unknown what the device passed up to packet `place`, behind `missed` missing
    /// reports.
    fn resolve(&mut self, place: u64, missed: u32, counted_bytes: u64) {
        self.end_run(self.least, counted_bytes);
        let passed = self.record.passed();
        let samples = self.pass_murky(place);
        let is_first = self.doubt.is_none() && !self.loose;
        if missed == 1 && is_first && place >= passed && self.repeats_to <= self.least {
            // A wrong number that no second report follows is that of a packet ahead, or of the one
            // before once more; or of one further back, and copies have filled the way.
            self.ledger.repeat(0, self.full);
            self.missing.blur(place);
            self.doubt = Some(Doubt { samples, again: self.full });
        } else {
            for cause in [TxCause::NetworkLoss, TxCause::LossOrOverflow] {
                let skipped = self.missing.samples(cause);
                self.ledger.doubt_lost(cause, skipped);
            }
            self.ledger.repeat(0, u64::MAX);
            self.missing.clear(place.max(passed));
            (self.doubt, self.loose, self.murky) = (None, true, self.record.sent());
        }
        self.begin_run(place);
    }

    /// Counts as unknown the packets in flight before `to`. Returns their samples.
    pub(super) fn pass_murky(&mut self, to: u64) -> u64 {
        let to = to.max(self.record.passed());
        let samples = self.record.pieces(self.record.passed()..to).map(|piece| piece.total()).sum();
        self.ledger.doubt(samples, 0);
        self.record.pass(to);
        samples
    }

    /// Takes the number of the first command that a report tells. Where none is missing, those
    /// before it have not come, or will come late with a report.
    pub fn first_command(&mut self, number: u16) {
        if self.doubt.is_none() && !self.loose {
            self.shift = self.shift.wrapping_add(number.into());
        } else {
            self.unseen = number;
        }
    }

    /// Takes by how much the device's place is ahead of its exact count.
    pub(super) fn compare(&mut self, lead: i64) {
        let unseen = std::mem::take(&mut self.unseen);
        // So far back was the packet of the missing report, at most.
        let back = self.shift.wrapping_sub(lead).saturating_add(unseen.into());
        match self.doubt.take() {
            Some(doubt) if back == 0 && unseen == 0 => {
                self.ledger.clear_doubt(doubt.samples, doubt.again);
            }
            // That of the last packet is a copy in any case.
            Some(_) if back > 1 => {
                self.stray((back as u64 - 1).min(self.record.sent()));
            }
            _ => {}
        }
        (self.shift, self.loose) = (lead, false);
    }

    /// Ends the reports: samples in flight are unknown. Returns their number.
    pub fn close(&mut self) -> u64 {
        let before = self.ledger.unknown.samples;
        if self.record.samples() > 0 || self.astray || self.missed > 0 || self.doubt.is_some() {
            self.resolve(self.record.sent(), LOST, 0);
        }
        self.ledger.unknown.samples - before
    }
}
