//! The accounting of a stream: credit, packets in flight, and the outcome of every sample.
//!
//! All conclusions of a transmit stream from sent packets and received reports are drawn here,
//! without a port or a clock.

use millstream_wire::chdr::PacketType;
use millstream_wire::stream::{CommandOp, SequenceGap, StatusRepr, StreamCondition};

use super::audits::{Answer, Audit, Audits, untagged};
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
    pub(super) late_packets: u64,
    /// Those reported since the last acknowledgement.
    pub(super) late_behind: u64,
    /// The lost samples that were already reported; below, the packets.
    pub(super) told_samples: u64,
    pub(super) told_packets: u64,
    pub(super) last_counted: u64,
    /// By how much less than was sent the device had counted at each RESYNC, packets in all.
    pub(super) uncounted: i64,
    /// The count may lack packets: a RESYNC may have come late or behind packets that no report
    /// shows, or the first command may be missing, whose number a device does not check.
    pub(super) unsure: bool,
    /// No command came with a wrong number since the last RESYNC.
    pub(super) straight: bool,
    /// The packets sent before a RESYNC that may have overtaken the last ones, which then count as
    /// lost; later ones show whether they are.
    pub(super) overtaken: Option<u64>,
}

impl TxAccounting {
    /// Returns the accounting of a stream whose full packets have `full_samples` samples.
    pub fn new(opened: Opened, full_samples: u64, rate: StreamRate) -> Self {
        let Opened { window, status_seq } = opened;
        Self {
            audits: Audits::new(window.command_counts()),
            course: DeviceProgress::new(full_samples, rate.ticks(1), window.capacity_bytes()),
            window,
            lates: PendingBursts::new(full_samples, rate.ticks(1)),
            order: ReportOrder::new(status_seq),
            full: full_samples,
            smallest: full_samples,
            shortage: 0,
            timed: false,
            late_packets: 0,
            late_behind: 0,
            told_samples: 0,
            told_packets: 0,
            last_counted: 0,
            uncounted: 0,
            unsure: true,
            straight: false,
            overtaken: None,
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

    /// Returns the time of the first packet in flight that has one, ticks.
    pub fn first_ticks(&self) -> Option<u64> {
        self.course.record.first_ticks()
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
        let unsettled = self.course.record.is_half_full() || self.course.is_blind();
        self.window.is_audit_due() || unsettled && !self.audits.is_open()
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

    /// Counts a sent stream command. Returns the totals for a RESYNC.
    pub fn send_command(&mut self, op: CommandOp) -> Totals {
        let mut totals = self.window.sent();
        self.window.send_command(op);
        totals.bytes = totals.bytes.wrapping_add(self.audits.next_tag());
        totals
    }

    /// Returns whether the next count query should end with a RESYNC.
    pub fn wants_resync(&self) -> bool {
        self.order.is_numbered() && self.audits.wants_resync(self.course.record.sent())
    }

    /// Records a sent count query; with `resync` its last command is a RESYNC.
    pub fn send_audit(&mut self, resync: bool) {
        self.audits.push(self.window.sent(), resync, self.course.record.sent());
        self.window.note_audit();
    }

    /// Takes a status.
    pub fn take(&mut self, status: &StatusRepr) -> StatusEffect {
        let (counted, tag) = untagged(self.counted(status));
        let says = match status.status {
            StreamCondition::Ok => ReportKind::Ok,
            _ => SequenceGap::from_info(status.error_info)
                .map_or(ReportKind::Trouble, ReportKind::Gap),
        };
        // Counts only grow, so a report with an old number may still give credit.
        let mut news = tag == self.audits.tag() && self.window.consume(counted);
        if !self.order.put(Report { seq: status.seq, counted, tag, says }) {
            return if news { StatusEffect::Credit { news } } else { StatusEffect::Stale };
        }
        let mut certain = None;
        while let Some((missing, report)) = self.order.pop() {
            if missing > 0 {
                self.audits.interrupt();
                self.course.miss_reports(missing.into());
            }
            let answered = match self.order.is_numbered() {
                true => self.examine(&report, missing),
                false => self.believe(&report),
            };
            certain = answered.or(certain);
            let surplus = self.course.take_surplus();
            self.window.note_surplus(surplus.packets, surplus.bytes);
        }
        news |= tag == self.audits.tag() && self.window.consume(counted);
        self.book_lates();
        match certain {
            Some(certain) => self.tell(news, certain),
            None => StatusEffect::Credit { news },
        }
    }

    /// Takes a report in its order, behind `missed` missing ones. Returns whether it answered a
    /// count query, and then whether everything is known.
    fn examine(&mut self, report: &Report, missed: u16) -> Option<bool> {
        let counted = report.counted;
        let commands = self.window.sent().packets - self.course.record.sent();
        let turned = match self.audits.step(counted, report.tag) {
            Some(Answer::Resync(audit, missing)) => {
                let known = self.resynchronised(&audit, missing, counted, commands);
                if missed > 0 {
                    // Some of the missing reports may have come behind it.
                    self.course.miss_reports(missed.into());
                }
                Some(known)
            }
            _ => None,
        };
        if std::mem::replace(&mut self.last_counted, counted.packets) > counted.packets
            && turned.is_none()
        {
            // A RESYNC came twice or late.
            self.audits.distrust();
            self.course.miss_reports(2);
        }
        match report.says {
            ReportKind::Ok => {}
            ReportKind::Gap(gap) => {
                self.audits.interrupt();
                // A RESYNC that comes twice or late removes packets from the count.
                let command = gap.kind == PacketType::StreamCommand;
                let back = (gap.actual.wrapping_sub(gap.expected) as i16) < 0;
                self.unsure |= command && back && self.audits.tag() != 0;
                self.straight &= !command;
                if command {
                    self.audits.note_gap(counted);
                }
                self.check_count(gap, counted.packets, commands);
                if command && !self.window.counts_pings() {
                    // The count is the same with fewer or more PINGs, but not with RESYNCs.
                    if self.audits.has_resynced() {
                        self.course.miss_reports(2);
                    }
                    return turned;
                }
                self.course.gap(gap, counted);
                return turned;
            }
            ReportKind::Trouble => {
                self.audits.interrupt();
                self.course.miss_reports(1);
                return turned;
            }
        }
        match self.audits.take(counted) {
            Answer::Pings(audit, missing) => self.pings(&audit, missing, counted, commands),
            _ => {
                self.course.progress(counted.packets, commands);
                turned
            }
        }
    }

    /// Takes a report of a device that does not number them. Missing reports stay unnoticed: only
    /// the count can be used, and no count after a reported fault.
    fn believe(&mut self, report: &Report) -> Option<bool> {
        let (counted, sent) = (report.counted, self.course.record.sent());
        let commands = self.window.sent().packets - sent;
        if report.says != ReportKind::Ok {
            self.course.miss_reports(2);
        }
        if counted.packets != self.window.sent().packets {
            self.course.progress(counted.packets, commands);
            return None;
        }
        let missing = self.window.sent().since(counted);
        self.window.audited(missing);
        Some(self.all_counted(sent, missing.packets, commands, counted.bytes))
    }

    /// Handles a count of everything before a count query, with `sent` packets sent before it,
    /// except those known as missing. Returns whether everything is known.
    fn all_counted(&mut self, sent: u64, missing: u64, commands: u64, counted_bytes: u64) -> bool {
        self.audits.accept();
        self.unsure = false;
        let known = self.course.apply_counts(sent, sent, commands, counted_bytes);
        if !known {
            self.course.resolve(Some(missing), sent, commands, counted_bytes);
        }
        // The window has it from the count.
        self.course.take_surplus();
        known
    }

    /// Handles reports that may answer the PINGs of a count query: so much less was counted than
    /// was sent before it.
    fn pings(
        &mut self,
        audit: &Audit,
        missing: Totals,
        counted: Totals,
        commands: u64,
    ) -> Option<bool> {
        if self.window.audited(missing) {
            self.course.crowd(counted.bytes);
        }
        let lag = self.course.lag(missing.packets);
        let behind = u64::try_from(lag).ok().filter(|&behind| behind <= audit.sent);
        match behind {
            // A report right before the answers looks like one of them. Its count cannot agree
            // while everything else is known; otherwise only a RESYNC is certain.
            _ if self.course.is_blind() => self.audits.distrust(),
            Some(0) => {
                let missing = missing.packets;
                return Some(self.all_counted(audit.sent, missing, commands, counted.bytes));
            }
            // They are late or lost, or this is the report before. Nothing depends on it while
            // other packets are in flight.
            Some(_) => self.audits.answered(Some(audit.sent)),
            None => self.audits.distrust(),
        }
        None
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
        self.doubt_end(false);
        let samples = self.course.close(true) + self.doubt_uncounted();
        self.book_lates();
        self.audits = Audits::new(opened.window.command_counts());
        (self.last_counted, self.uncounted) = (0, 0);
        (self.unsure, self.straight) = (true, false);
        self.overtaken = None;
        self.order = ReportOrder::new(opened.status_seq);
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
