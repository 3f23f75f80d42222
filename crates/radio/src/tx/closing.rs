//! The accounting of late packets, and its end.

use super::accounting::TxAccounting;
use super::ledger::TxCause;
use super::progress::DeviceProgress;

impl TxAccounting {
    /// Counts a late packet that the device reported.
    pub fn late(&mut self) {
        self.late_packets += 1;
        self.late_behind += 1;
        self.course.late_samples += self.lates.late();
        self.book_lates();
    }

    /// Takes the device's acknowledgement of a burst.
    pub fn acknowledge(&mut self, ticks: u64) {
        self.late_behind = 0;
        let too_many = self.lates.acknowledge(ticks);
        self.restore_lates(too_many);
    }

    /// Returns whether the end of a burst has neither been acknowledged nor reported late.
    pub fn is_unacknowledged(&self) -> bool {
        self.lates.is_unacknowledged(!self.course.troubled)
    }

    /// Closes the accounting of the stream. `reports_missed` reports about its packets may not have
    /// come.
    pub fn close(&mut self, reports_missed: u64) {
        // Behind the last acknowledgement no further report shows that one is missing. Those that
        // came may all be about the bursts behind it, and none about a packet that came last.
        let others = self.lates.packets();
        let of_last = self.late_behind.saturating_sub(others);
        let behind = self.course.stragglers().saturating_sub(of_last);
        let reports_missed = reports_missed + behind;
        self.course.close();
        let in_order = !self.course.troubled;
        let too_many = self.lates.close(in_order);
        self.book_lates();
        self.restore_lates(too_many);
        self.doubt_lates(reports_missed, self.lates.unreported_samples(in_order));
        let ledger = &mut self.course.ledger;
        ledger.lose(TxCause::Discarded, ledger.in_flight);
    }

    /// Counts as unknown what is uncertain about packets reported late: which of several copies was
    /// late, how many samples it had, and whether a report is missing.
    fn doubt_lates(&mut self, reports_missed: u64, waiting: u64) {
        if !self.timed {
            return;
        }
        let ledger = &mut self.course.ledger;
        // Copies that came late were not transmitted either.
        let late = (self.late_packets + reports_missed).saturating_mul(self.full);
        let late = late.saturating_add(waiting);
        // Where one is missing, each may be about a later burst than it seems.
        let open = self.course.troubled || reports_missed > 0;
        let packets = if open { self.late_packets } else { self.lates.ambiguous() };
        let varied = packets.saturating_mul(self.full - self.smallest).min(self.shortage);
        ledger.doubt_lost(TxCause::Late, varied);
        ledger.doubt_transmitted(varied);
        if self.course.troubled && self.late_packets > 0 {
            // One that came behind the end of its burst may have been late in another one.
            ledger.doubt_transmitted(self.full);
        }
        if ledger.repeated.max > 0 {
            // A report may be about a copy, which counted as a full packet.
            let copies = ledger.repeated.max / self.smallest.max(1);
            ledger.doubt_lost(TxCause::Late, copies.saturating_mul(self.full));
            // There is no report about copies while another one waits.
            let some = self.late_packets > 0;
            let least = ledger.repeated.min.saturating_sub(late);
            ledger.repeated.min = if some { 0 } else { least };
        }
        if waiting > 0 || reports_missed > 0 {
            // Where reports are missing, each of those that came behind the others may have been
            // late, in a burst that was acknowledged before.
            ledger.doubt_transmitted(self.course.restored);
        }
        ledger.doubt_transmitted(reports_missed.saturating_mul(self.full));
        // The last report of a burst is missing: transmitted or late.
        ledger.doubt_transmitted(waiting);
    }

    /// Counts late samples as lost, as soon as the device has also released their packets.
    pub(super) fn book_lates(&mut self) {
        let DeviceProgress { ledger, late_samples, .. } = &mut self.course;
        let samples = (*late_samples).min(ledger.transmitted);
        *late_samples -= samples;
        ledger.revoke(TxCause::Late, samples);
    }

    /// Restores samples that were wrongly counted as late.
    fn restore_lates(&mut self, samples: u64) {
        let DeviceProgress { ledger, late_samples, .. } = &mut self.course;
        let owed = samples.min(*late_samples);
        *late_samples -= owed;
        let booked = (samples - owed).min(ledger.lost(TxCause::Late));
        ledger.restore(TxCause::Late, booked);
    }
}
