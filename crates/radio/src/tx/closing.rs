//! The books of late packets, and the end of the books.

use super::accounting::TxAccounting;
use super::ledger::TxCause;
use super::progress::DeviceProgress;

impl TxAccounting {
    /// The device reported a late packet.
    pub fn late(&mut self) {
        self.late_packets += 1;
        self.course.late_samples += self.lates.late();
        self.book_lates();
    }

    /// The device acknowledged a burst.
    pub fn acknowledge(&mut self, ticks: u64) {
        let too_many = self.lates.acknowledge(ticks);
        self.restore_lates(too_many);
    }

    /// No more is heard of the stream. So many reports about its packets may not have come.
    pub fn close(&mut self, reports_missed: u64) {
        let acknowledged = !self.lates.is_waiting();
        self.course.close(acknowledged);
        let waiting = if acknowledged { 0 } else { self.lates.waiting_samples() };
        let too_many = self.lates.close();
        self.book_lates();
        self.restore_lates(too_many);
        self.doubt_lates(reports_missed, waiting);
        let ledger = &mut self.course.ledger;
        ledger.lose(TxCause::Discarded, ledger.in_flight);
    }

    /// What is not certain about packets reported late: which of several copies was, how many
    /// samples it held, and whether a report is missing.
    fn doubt_lates(&mut self, reports_missed: u64, waiting: u64) {
        if !self.timed {
            return;
        }
        let ledger = &mut self.course.ledger;
        let late = ledger.lost(TxCause::Late);
        let packets = if self.course.troubled { self.late_packets } else { self.lates.ambiguous() };
        let varied = packets.saturating_mul(self.full - self.smallest).min(self.shortage);
        ledger.doubt_lost(TxCause::Late, varied);
        ledger.doubt_transmitted(varied);
        if ledger.repeated.max > 0 {
            ledger.doubt_lost(TxCause::Late, ledger.repeated.max);
            ledger.repeated.min = ledger.repeated.min.saturating_sub(late);
        }
        ledger.doubt_transmitted(reports_missed.saturating_mul(self.full));
        // The last report of a burst is missing, be it that it was transmitted or that it was late.
        ledger.doubt_transmitted(waiting);
    }

    /// Books late samples, as soon as the device has also let go of their packets.
    pub(super) fn book_lates(&mut self) {
        let DeviceProgress { ledger, late_samples, .. } = &mut self.course;
        let samples = (*late_samples).min(ledger.transmitted);
        *late_samples -= samples;
        ledger.revoke(TxCause::Late, samples);
    }

    /// Late samples had been booked too many.
    fn restore_lates(&mut self, samples: u64) {
        let DeviceProgress { ledger, late_samples, .. } = &mut self.course;
        let owed = samples.min(*late_samples);
        *late_samples -= owed;
        let booked = (samples - owed).min(ledger.lost(TxCause::Late));
        ledger.restore(TxCause::Late, booked);
    }
}
