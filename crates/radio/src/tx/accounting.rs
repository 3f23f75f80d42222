//! The accounting of a stream: credit, packets in flight, and the outcome of every sample.
//!
//! All conclusions of a transmit stream from sent packets and received reports are drawn here,
//! without a port or a clock.

use millstream_wire::chdr::PacketType;
use millstream_wire::stream::{SequenceGap, StatusRepr, StreamCondition, StreamPlace};

use super::audits::{Audit, Audits};
use super::ledger::{TxCause, TxLedger};
use super::order::{Report, ReportKind, ReportOrder};
use super::pending_bursts::PendingBursts;
use super::progress::DeviceProgress;
use super::window::{CreditWindow, Totals};
use crate::stream::StreamRate;

/// Packet counts have 40 bits in packets.
const PACKETS_MASK: u64 = (1 << 40) - 1;

/// The most packets in flight, so that 16-bit numbers distinguish them.
const PACKETS_MAX: u64 = 20_000;

/// The effect of a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatusEffect {
    /// It has come already, or later ones have replaced it.
    Stale,
    /// Credit; `news` is true when it grew.
    Credit { news: bool },
    /// The answer to a count query, perhaps with credit: the losses since the answer before it, and
    /// whether they are fully known.
    Audit { news: bool, packets: u64, samples: u64, certain: bool },
}

/// The results of a handshake.
#[derive(Debug, Clone)]
pub(super) struct Opened {
    pub window: CreditWindow,
    /// The number of the last status.
    pub status_seq: u16,
    /// The device says its place in each report.
    pub tells_place: bool,
}

/// The accounting of one stream since its handshake, and its ledger.
#[derive(Debug)]
pub(super) struct TxAccounting {
    pub window: CreditWindow,
    pub audits: Audits,
    pub lates: PendingBursts,
    pub(super) course: DeviceProgress,
    pub(super) order: ReportOrder,
    /// Samples of a full packet, and of the smallest one sent.
    pub(super) full: u64,
    pub(super) smallest: u64,
    /// The samples by which all packets together are shorter than full ones.
    pub(super) shortage: u64,
    /// Packets with time were sent: only those can be late.
    pub(super) timed: bool,
    /// The device has come to a command: it notices no gap before the first one.
    has_command: bool,
    pub(super) late_packets: u64,
    /// Those reported since the last acknowledgement.
    pub(super) late_behind: u64,
    /// The lost samples that were already reported; below, the packets.
    pub(super) told_samples: u64,
    pub(super) told_packets: u64,
}

impl TxAccounting {
    /// Returns the accounting of a stream whose full packets have `full_samples` samples.
    pub fn new(opened: Opened, full_samples: u64, rate: StreamRate) -> Self {
        let Opened { window, status_seq, tells_place } = opened;
        Self {
            audits: Audits::new(),
            course: DeviceProgress::new(full_samples, rate.ticks(1), window.capacity_bytes()),
            window,
            lates: PendingBursts::new(full_samples, rate.ticks(1)),
            order: ReportOrder::new(status_seq, tells_place),
            full: full_samples,
            smallest: full_samples,
            shortage: 0,
            timed: false,
            has_command: false,
            late_packets: 0,
            late_behind: 0,
            told_samples: 0,
            told_packets: 0,
        }
    }

    /// Returns the outcome of every sample so far.
    pub fn ledger(&self) -> &TxLedger {
        &self.course.ledger
    }

    /// Counts samples from the caller.
    pub fn accept(&mut self, samples: u64) {
        self.course.ledger.accept(samples);
    }

    /// Returns the samples in packets that the device may not have passed.
    pub fn samples_in_flight(&self) -> u64 {
        self.course.record.samples()
    }

    /// Returns whether packets in flight have times.
    pub fn has_times(&self) -> bool {
        self.course.record.has_times()
    }

    /// Returns the time later than `now` until which the device may be silent because it holds
    /// packets: those before it have not the bytes of a report.
    pub fn silent_until(&self, now: u64) -> Option<u64> {
        self.course.record.next_start(now, self.window.period().bytes)
    }

    /// Returns whether the outcome of every sent packet is known.
    pub fn is_known(&self) -> bool {
        self.course.is_settled()
    }

    /// Returns whether packets are counted as skipped that may come late.
    pub fn may_come_late(&self) -> bool {
        !self.course.missing.is_empty()
    }

    /// Returns whether no report of the device is awaited.
    pub fn is_settled(&self) -> bool {
        self.window.in_flight().packets == 0 && self.is_known()
    }

    /// Returns whether a count query is due while samples are sent.
    pub fn is_audit_due(&self) -> bool {
        let is_half_full = self.course.record.is_half_full();
        self.window.is_audit_due() || is_half_full && !self.audits.is_open()
    }

    /// Returns whether a count query would resolve samples in flight.
    pub fn is_audit_worth(&self) -> bool {
        !self.is_known() && !self.audits.is_open() && self.audits.is_due(self.course.record.sent())
    }

    /// Returns how many packets of `flow_bytes` each may be sent now.
    pub fn room_packets(&self, flow_bytes: u64) -> u64 {
        let record = &self.course.record;
        let numbers = PACKETS_MAX.saturating_sub(record.sent() - record.passed());
        if record.is_full() { 0 } else { self.window.room_packets(flow_bytes).min(numbers) }
    }

    /// Counts a sent packet with samples of the caller.
    pub fn send(&mut self, flow_bytes: u64, samples: u64, ticks: Option<u64>, eob: bool) {
        self.window.send(1, flow_bytes);
        self.course.record.push(flow_bytes, samples, ticks);
        self.lates.packet(samples, ticks, eob);
        self.smallest = self.smallest.min(samples);
        self.shortage += self.full - samples;
        self.timed |= ticks.is_some();
    }

    /// Counts a sent query, a PING of this number.
    pub fn send_audit(&mut self, number: u16) {
        self.window.send_ping();
        self.audits.push(number, self.window.sent(), self.course.record.sent());
        self.window.note_audit();
    }

    /// Takes a status.
    pub fn take(&mut self, status: &StatusRepr) -> StatusEffect {
        let counted = self.counted(status);
        let says = match status.status {
            StreamCondition::Ok => ReportKind::Ok(StreamPlace::from_info(status.error_info)),
            _ => SequenceGap::from_info(status.error_info)
                .map_or(ReportKind::Trouble, ReportKind::Gap),
        };
        // Counts only grow, so a report with an old number may still give credit.
        let mut news = self.window.consume(counted);
        if !self.order.put(Report { seq: status.seq, counted, says }) {
            return if news { StatusEffect::Credit { news } } else { StatusEffect::Stale };
        }
        let mut certain = None;
        while let Some((missing, report)) = self.order.pop() {
            if missing > 0 {
                self.course.miss_reports(missing.into());
            }
            let answered = match self.order.is_numbered() {
                true => self.examine(&report),
                false => self.believe(&report),
            };
            certain = answered.or(certain);
            let [skipped, surplus] = self.course.take_differences();
            self.window.note_surplus(surplus.packets, surplus.bytes);
            if self.window.note_skipped(skipped.packets, skipped.bytes) && skipped.packets > 0 {
                self.course.crowd(report.counted.bytes);
            }
        }
        news |= self.window.consume(counted);
        self.book_lates();
        match certain {
            Some(certain) => self.tell(news, certain),
            None => StatusEffect::Credit { news },
        }
    }

    /// Takes a report in its order. Returns whether it answered a query, and then whether
    /// everything is known.
    fn examine(&mut self, report: &Report) -> Option<bool> {
        let place = match report.says {
            ReportKind::Ok(place) => place,
            ReportKind::Gap(gap) => {
                // A device that expects number 0 has come to no command yet.
                if gap.kind == PacketType::StreamCommand && gap.expected != 0 {
                    self.note_command(gap.expected.wrapping_sub(1));
                }
                if gap.kind != PacketType::StreamCommand || self.window.counts_pings() {
                    self.course.gap(gap, report.counted.bytes);
                }
                return None;
            }
            ReportKind::Trouble => {
                self.course.miss_reports(1);
                return None;
            }
        };
        let Some(at) = self.course.place(place.expected) else {
            self.course.miss_reports(1);
            return None;
        };
        self.course.progress(at, report.counted.bytes);
        let audit = self.audits.answer(place.command)?;
        self.note_command(audit.number);
        Some(self.answered(&audit, at, report.counted))
    }

    /// Takes the number of a command that the device has come to, if none was known before.
    fn note_command(&mut self, number: u16) {
        if !std::mem::replace(&mut self.has_command, true) {
            self.course.first_command(number);
        }
    }

    /// Takes a report of a device that does not number them, or does not say its place. Missing
    /// reports stay unnoticed: only the count can be used, and no count after a reported fault.
    fn believe(&mut self, report: &Report) -> Option<bool> {
        let (counted, sent) = (report.counted, self.window.sent());
        if !matches!(report.says, ReportKind::Ok(_)) {
            self.course.miss_reports(2);
            return None;
        }
        let packets = self.course.record.sent();
        if counted.packets != sent.packets {
            let open = sent.packets.wrapping_sub(counted.packets);
            // Those not counted may all be packets of samples.
            let place = packets.checked_sub(open).filter(|_| self.course.missed == 0);
            if let Some(place) = place.filter(|place| *place > self.course.record.passed()) {
                self.course.progress(place, counted.bytes);
            }
            return None;
        }
        self.audits.clear();
        let audit = Audit::behind_all(sent, packets);
        Some(self.answered(&audit, packets, counted))
    }

    /// Handles the answer to a query, of a device that expects packet `place`. Returns whether
    /// everything is known.
    fn answered(&mut self, audit: &Audit, place: u64, counted: Totals) -> bool {
        let commands = self.window.sent().packets - self.course.record.sent();
        // Behind the query nothing was sent that could be in the count.
        let is_exact = audit.after == self.window.sent();
        let lead = place.wrapping_add(commands).wrapping_sub(counted.packets) as i64;
        self.course.settle(place, audit.sent, is_exact.then_some(lead), counted.bytes);
        let missing = is_exact.then(|| audit.after.since(counted));
        if is_exact {
            // The window has it from the count.
            self.course.take_differences();
        }
        if self.window.audited(missing) {
            self.course.crowd(counted.bytes);
        }
        self.ledger().unknown.samples == 0
    }

    /// Reports the losses since the last answer to a count query.
    fn tell(&mut self, news: bool, certain: bool) -> StatusEffect {
        let ledger = &self.course.ledger;
        let lost = ledger.lost(TxCause::NetworkLoss) + ledger.lost(TxCause::LossOrOverflow);
        let packets = self.course.skipped_packets();
        let taken = StatusEffect::Audit {
            news,
            packets: packets.saturating_sub(self.told_packets),
            samples: lost.saturating_sub(self.told_samples),
            certain,
        };
        (self.told_samples, self.told_packets) = (lost, packets);
        taken
    }

    /// Restarts the accounting with a new handshake. Returns the samples whose outcome is unknown.
    pub fn reopen(&mut self, opened: Opened) -> u64 {
        let samples = self.course.close();
        self.book_lates();
        (self.audits, self.has_command) = (Audits::new(), false);
        self.order = ReportOrder::new(opened.status_seq, opened.tells_place);
        self.course.restart(opened.window.capacity_bytes());
        self.window = opened.window;
        samples
    }

    /// Returns the device's totals; of the possible packet counts, those nearest to the sent ones.
    fn counted(&self, status: &StatusRepr) -> Totals {
        let sent = self.window.sent().packets;
        let behind = sent.wrapping_sub(status.count_packets) & PACKETS_MASK;
        let ahead = behind >> 39 != 0;
        let behind = if ahead { behind | !PACKETS_MASK } else { behind };
        Totals { packets: sent.wrapping_sub(behind), bytes: status.count_bytes }
    }
}

#[cfg(test)]
#[path = "account_tests.rs"]
mod tests;
