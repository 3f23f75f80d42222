//! The books of a stream: credit, what is in flight, and where every sample went.
//!
//! Everything that a transmit stream concludes from what it sent and heard is concluded here,
//! without a port or a clock.

use millstream_wire::stream::StatusRepr;

use super::audit::Audits;
use super::flight::Flight;
use super::lates::Lates;
use super::ledger::{TxCause, TxLedger};
use super::window::{Totals, Window};

/// Packet counts travel in 40 bits.
const PACKETS_MASK: u64 = (1 << 40) - 1;

/// What a status brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// It is older than one before.
    Stale,
    /// Credit, if there is any.
    Credit { news: bool },
    /// The answer to an audit. It may bring credit too.
    Audit { news: bool, packets: u64, samples: u64, certain: bool },
}

/// What a handshake brought.
#[derive(Debug, Clone)]
pub(super) struct Opened {
    pub window: Window,
    /// The number of the last status.
    pub status_seq: u16,
}

/// The books of one stream since its handshake, and its ledger.
#[derive(Debug)]
pub(super) struct Account {
    pub window: Window,
    pub flight: Flight,
    pub audits: Audits,
    pub ledger: TxLedger,
    pub lates: Lates,
    /// Samples reported late whose packets still count as in flight.
    late_samples: u64,
}

impl Account {
    /// The books of a stream whose full packets hold so many samples.
    pub fn new(opened: Opened, full_samples: u64) -> Self {
        let Opened { window, status_seq } = opened;
        Self {
            audits: Audits::new(window.command_bytes(), status_seq),
            window,
            flight: Flight::new(),
            ledger: TxLedger::default(),
            lates: Lates::new(full_samples),
            late_samples: 0,
        }
    }

    /// Packets of `flow_bytes` each that may be sent now.
    pub fn room_packets(&self, flow_bytes: u64) -> u64 {
        if self.flight.is_full() { 0 } else { self.window.room_packets(flow_bytes) }
    }

    /// A packet with samples of the caller leaves.
    pub fn send(&mut self, flow_bytes: u64, samples: u64, ticks: Option<u64>, eob: bool) {
        self.window.send(1, flow_bytes);
        self.flight.push(1, flow_bytes, samples, ticks);
        self.audits.push(1, flow_bytes, samples);
        self.lates.packet(samples, ticks, eob);
    }

    /// A stream command leaves. Our totals before it.
    pub fn send_command(&mut self, is_resync: bool) -> Totals {
        let totals = self.window.sent();
        let flow_bytes = self.window.command_bytes();
        self.flight.push(1, flow_bytes, 0, None);
        self.audits.push(1, flow_bytes, 0);
        if is_resync {
            self.audits.resync(totals);
            self.window.note_resync();
        }
        self.window.send_command();
        totals
    }

    /// A status came.
    pub fn take(&mut self, status: &StatusRepr) -> Taken {
        let counted = self.counted(status);
        if self.audits.is_stale(status.seq) {
            // Counts only grow, so a number that does not is no reason to refuse credit.
            let news = self.window.consume(counted);
            self.pass();
            return if news { Taken::Credit { news } } else { Taken::Stale };
        }
        let Some(finding) = self.audits.take(status.seq, counted) else {
            let news = self.window.consume(counted);
            self.pass();
            return Taken::Credit { news };
        };
        let news = self.window.resynchronised(counted);
        self.pass();
        let samples = finding.lost.samples_max.min(self.ledger.transmitted);
        self.ledger.revoke(TxCause::NetworkLoss, samples);
        self.book_lates();
        Taken::Audit { news, packets: finding.packets, samples, certain: finding.certain }
    }

    /// The device reported a late packet.
    pub fn late(&mut self) {
        self.late_samples += self.lates.late();
        self.book_lates();
    }

    /// The device acknowledged a burst.
    pub fn acknowledge(&mut self, ticks: u64) {
        let too_many = self.lates.acknowledge(ticks);
        self.restore_lates(too_many);
    }

    /// The stream begins anew. The samples of which nobody knows what became.
    pub fn reopen(&mut self, opened: Opened) -> u64 {
        self.audits = Audits::new(opened.window.command_bytes(), opened.status_seq);
        self.window = opened.window;
        self.abandon()
    }

    /// No more is heard of the stream. The samples of which nobody knows what became.
    pub fn close(&mut self) -> u64 {
        let too_many = self.lates.close();
        self.restore_lates(too_many);
        let samples = self.abandon();
        self.ledger.lose(TxCause::Discarded, self.ledger.in_flight);
        samples
    }

    fn abandon(&mut self) -> u64 {
        let samples = self.flight.reset();
        self.ledger.lose(TxCause::Unaccounted, samples);
        self.late_samples = 0;
        samples
    }

    /// The device's totals. Of the packets those nearest to what was sent.
    fn counted(&self, status: &StatusRepr) -> Totals {
        let sent = self.window.sent().packets;
        let behind = sent.wrapping_sub(status.count_packets) & PACKETS_MASK;
        let ahead = behind >> 39 != 0;
        let behind = if ahead { behind | !PACKETS_MASK } else { behind };
        Totals { packets: sent.wrapping_sub(behind), bytes: status.count_bytes }
    }

    /// Books what the device has passed.
    fn pass(&mut self) {
        let samples = self.flight.pass(self.window.consumed().bytes);
        self.ledger.pass(samples);
        self.book_lates();
    }

    /// Books late samples, as soon as the device has also let go of their packets.
    fn book_lates(&mut self) {
        let samples = self.late_samples.min(self.ledger.transmitted);
        self.late_samples -= samples;
        self.ledger.revoke(TxCause::Late, samples);
    }

    /// Late samples had been booked too many.
    fn restore_lates(&mut self, samples: u64) {
        let owed = samples.min(self.late_samples);
        self.late_samples -= owed;
        let booked = (samples - owed).min(self.ledger.lost(TxCause::Late));
        self.ledger.restore(TxCause::Late, booked);
    }
}

#[cfg(test)]
#[path = "account_tests.rs"]
mod tests;
