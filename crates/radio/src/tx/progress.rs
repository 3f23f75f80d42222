//! The device's progress through the packets: those that it took, skipped, or took twice.
//!
//! The device reports each data packet whose number is not one more than the last one's, with the
//! expected number and the number that came. So between two such reports it took packets one by
//! one, a *run*, and all runs together are all packets that it took. The end of the last run
//! follows from its count of packets:
//! ```text
//! due 5, came 7     due 9, came 5     due 6, came 9        counted
//!   ──── run 7, 8 ─────▶ run 5 ───────────▶ run 9, 10, …, counted + shift
//!   5, 6 are skipped     5 came late        nothing is new
//! ```
//!
//! This is complete while no report is missing. Behind a missing one the progress is *blind*:
//! everything counted from there on is provisional until a count query. If one report is missing
//! and the sums agree, it contained no gap, because a single jump changes the sums. Otherwise the
//! samples since the first missing report are unknown.

use std::ops::Range;

use millstream_wire::chdr::PacketType;
use millstream_wire::stream::SequenceGap;

use super::ledger::{TxCause, TxLedger};
use super::missing::Missing;
use super::missing_report::{AssumedSent, MissingReport};
use super::record::{PacketLog, Piece};
use super::window::Totals;

/// The range of packets that 16-bit numbers distinguish, with a margin.
pub(super) const REACH: i64 = 30_000;

/// More than one report is missing, or they contradict each other.
const LOST: u32 = 2;

/// The progress of the device since the handshake, and the ledger.
#[derive(Debug)]
pub(super) struct DeviceProgress {
    pub record: PacketLog,
    pub ledger: TxLedger,
    /// Samples reported late whose packets still count as in flight.
    pub late_samples: u64,
    /// Samples of a full packet.
    pub(super) full: u64,
    pub(super) missing: Missing,
    /// The first packet of the current run.
    pub(super) start: u64,
    /// The end of the run is unknown so far, and it began with packets that had been resolved.
    pub(super) astray: bool,
    /// The packets passed when it began. Before this the run repeats packets, or takes late ones.
    pub(super) repeats_to: u64,
    /// The lead of the device's position in our order over its count, packets and commands.
    pub(super) shift: i64,
    pub(super) blind: Option<MissingReport>,
    /// Reports missing since then.
    pub(super) reports_missing: u32,
    /// Packets that count as transmitted because the sums agree, although a report is missing: a
    /// copy may have replaced a packet at the end.
    pub(super) suspect: Option<AssumedSent>,
    /// The position at which the device's count was corrected; it may wait for a packet before
    /// that.
    pub(super) loose: Option<u64>,
    /// Its count then, if reports were missing.
    pub(super) loose_count: Option<u64>,
    /// Packets sent before the last count query: the window has their credit back.
    pub(super) audited: u64,
    /// Commands sent before it.
    pub(super) commands: u64,
    /// Bytes in the device's buffer that the window has not yet included.
    pub(super) surplus: OverWindow,
    /// Until the device has counted this much, copies or late packets may have filled its buffer.
    pub(super) crowded: Option<u64>,
    pub(super) window_bytes: u64,
    pub(super) skipped: u64,
    /// Packets taken after the device had passed all before this number, and that number.
    pub(super) behind: (u64, u64),
    pub(super) gaps: u64,
    /// Numbers were missed or wrong at least once.
    pub troubled: bool,
}

/// Packets beyond the capacity of the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct OverWindow {
    pub packets: u64,
    pub bytes: u64,
}

impl DeviceProgress {
    /// Returns the progress of a stream with full packets of `full` samples, to a device whose
    /// buffer has `window_bytes`; a sample lasts `ticks_per_sample`.
    pub fn new(full: u64, ticks_per_sample: u64, window_bytes: u64) -> Self {
        Self {
            record: PacketLog::new(ticks_per_sample),
            ledger: TxLedger::default(),
            late_samples: 0,
            full,
            missing: Missing::new(),
            start: 0,
            astray: false,
            repeats_to: 0,
            shift: 0,
            blind: None,
            reports_missing: 0,
            suspect: None,
            loose: None,
            loose_count: None,
            audited: 0,
            commands: 0,
            surplus: OverWindow::default(),
            crowded: None,
            window_bytes,
            skipped: 0,
            behind: (0, 0),
            gaps: 0,
            troubled: false,
        }
    }

    /// Restarts the stream with the same ledger.
    pub fn restart(&mut self, window_bytes: u64) {
        let (record, ledger) = (self.record.renewed(), std::mem::take(&mut self.ledger));
        let fresh = Self::new(self.full, 1, window_bytes);
        *self = Self { record, ledger, troubled: true, ..fresh };
    }

    /// Returns whether every sent sample is resolved.
    pub fn is_settled(&self) -> bool {
        let sent = self.record.sent();
        let unsuspected = self.suspect.as_ref().is_none_or(|suspect| suspect.end == sent);
        self.record.samples() == 0 && !self.astray && self.blind.is_none() && unsuspected
    }

    /// Returns whether a report is missing since the last count query.
    pub fn is_blind(&self) -> bool {
        self.blind.is_some()
    }

    /// Returns how many packets and commands fewer the device has counted than its position;
    /// `missing` fewer than all sent ones.
    pub fn lag(&self, missing: u64) -> i64 {
        (missing as i64).wrapping_sub(self.shift)
    }

    /// Returns how many packets came behind all others, late or again.
    pub fn stragglers(&self) -> u64 {
        if self.behind.1 == self.record.sent() { self.behind.0 } else { 0 }
    }

    /// Returns the packets that were skipped, including those that came late.
    pub fn skipped_packets(&self) -> u64 {
        self.skipped
    }

    /// Takes the surplus that the window has not yet included.
    pub fn take_surplus(&mut self) -> OverWindow {
        std::mem::take(&mut self.surplus)
    }

    /// Counts reports missing before the next one, or one with a fault and no packet numbers.
    pub fn miss_reports(&mut self, count: u32) {
        self.troubled = true;
        self.reports_missing = self.reports_missing.saturating_add(count);
        if self.blind.is_none() {
            self.blind = Some(self.save());
        }
    }

    /// Takes the device's count of packets and commands, of which at most `commands` were commands.
    pub fn progress(&mut self, counted: u64, commands: u64) {
        let place = (counted as i64).wrapping_add(self.shift).wrapping_sub(commands as i64);
        let (passed, sent) = (self.record.passed() as i64, self.record.sent() as i64);
        if self.blind.is_none() && place > passed && place <= sent {
            self.pass(place as u64);
        }
    }

    /// Returns how many packets more the device had taken, when it expected the number `expected`,
    /// than its count says; `None` where its position is unknown.
    pub fn lacks(&self, expected: u16, counted: u64, commands: u64) -> Option<i64> {
        let place = (counted as i64).wrapping_add(self.shift).wrapping_sub(commands as i64);
        let known = self.loose.is_none() && place >= self.start as i64;
        known.then(|| near(expected, place as u64).wrapping_sub(place)).filter(|lacks| *lacks >= 0)
    }

    /// Handles a packet with a wrong number that the device took. It had counted `counted` before.
    pub fn gap(&mut self, gap: SequenceGap, counted: Totals) {
        let counted_bytes = counted.bytes;
        self.troubled = true;
        let step = i64::from(gap.actual.wrapping_sub(gap.expected) as i16);
        if gap.kind == PacketType::StreamCommand {
            self.shift = self.shift.wrapping_add(step);
            return;
        }
        self.gaps += 1;
        let sent = self.record.sent() as i64;
        let due = near(gap.expected, self.record.passed());
        let came = due + step;
        if self.loose.is_some() && self.blind.is_some() {
            // The missing report may have had the device's expected number.
            self.miss_reports(LOST);
        }
        // It had passed more packets when its count was corrected: the correction came late, and
        // the missing reports may have been about these.
        let came_since = self.loose_count.take().map(|count| counted.packets.wrapping_sub(count));
        let is_ahead = |(base, since): (u64, u64)| due > base.wrapping_add(since) as i64;
        if self.loose.zip(came_since).is_some_and(is_ahead) {
            self.miss_reports(LOST);
        }
        let base = self.loose.take().filter(|&base| due < base as i64);
        let due = if base.is_some() { due.max(self.start as i64) } else { due };
        if !(0..=sent).contains(&due) || !(0..sent).contains(&came) || sent - came.min(due) > REACH
        {
            return self.miss_reports(LOST);
        }
        let (due, came) = (due as u64, came as u64);
        if due < self.start {
            self.miss_reports(LOST);
        }
        self.end_run(due, counted_bytes);
        self.shift = match base {
            Some(base) => self.shift.wrapping_add(came as i64 - base as i64),
            None => self.shift.wrapping_add_unsigned(came).wrapping_sub_unsigned(due),
        };
        self.skip(came, counted_bytes);
        self.begin_run(came);
    }

    /// Handles a count query that found the device at packet `place`, with `sent` sent before the
    /// query. Those between are lost. Returns false when reports are missing whose gaps the sums
    /// may hide.
    pub fn apply_counts(
        &mut self,
        place: u64,
        sent: u64,
        commands: u64,
        counted_bytes: u64,
    ) -> bool {
        // Where the count was corrected and nothing has come since, the run has not advanced.
        let place = if self.loose.is_some_and(|base| place <= base) { self.start } else { place };
        // Two missing reports may agree with the sums where each alone would not.
        let doubtful = self.loose.is_some() || self.suspect.is_some();
        let uncertain = self.reports_missing >= LOST || self.blind.is_some() && doubtful;
        if uncertain || self.start > place {
            return false;
        }
        self.end_run(place, counted_bytes);
        let confirmed = |suspect: &AssumedSent| place > suspect.end;
        if let Some(before) = self.blind.take() {
            let quiet = before.gaps == self.gaps;
            self.suspect = Some(AssumedSent { before, end: place, quiet });
        } else if self.suspect.as_ref().is_some_and(confirmed) {
            self.suspect = None;
        }
        self.reports_missing = 0;
        self.skip(sent, counted_bytes);
        self.begin_run(place);
        self.astray = false;
        (self.audited, self.commands) = (sent, commands);
        true
    }

    /// Records that the packets may have exceeded the device's buffer. Packets that were skipped,
    /// and came late since, may have found it full.
    pub fn overcommitted(&mut self) {
        let skipped = self.missing.samples(TxCause::NetworkLoss);
        self.ledger.rename(TxCause::NetworkLoss, TxCause::LossOrOverflow, skipped);
        self.missing.rename(TxCause::LossOrOverflow);
    }

    /// Records that the device's count was corrected at packet `sent`, while it waits for packet
    /// `place`, if that is known.
    pub fn set_right(&mut self, sent: u64, place: Option<u64>, counted_bytes: u64) {
        match place.filter(|_| self.loose.is_none()) {
            Some(place) => self.shift = (place as i64).wrapping_sub_unsigned(sent),
            None => (self.shift, self.loose) = (0, Some(sent)),
        }
        if self.crowded.is_some() {
            self.crowd(counted_bytes);
        }
    }

    /// Records that the device has passed the packets before `to`, or takes that back.
    fn pass(&mut self, to: u64) {
        let before = self.record.samples();
        self.record.pass(to);
        let after = self.record.samples();
        match before.checked_sub(after) {
            Some(passed) => self.ledger.pass(passed),
            None => self.late_samples += self.ledger.unpass(after - before),
        }
    }

    pub(super) fn begin_run(&mut self, first: u64) {
        (self.start, self.repeats_to) = (first, self.record.passed());
        self.astray = first < self.repeats_to;
    }

    /// Ends the current run before packet `end`.
    pub(super) fn end_run(&mut self, end: u64, counted_bytes: u64) {
        let repeated = self.start..end.min(self.repeats_to);
        if !repeated.is_empty() {
            self.repeat(repeated, counted_bytes);
        }
        let reached = self.repeats_to.max(end);
        if reached != self.record.passed() {
            self.pass(reached);
        }
    }

    /// Handles resolved packets that were taken: late, or again.
    fn repeat(&mut self, range: Range<u64>, counted_bytes: u64) {
        let before = if self.behind.1 == self.repeats_to { self.behind.0 } else { 0 };
        self.behind = (before + (range.end - range.start), self.repeats_to);
        let floor = self.record.oldest().max(self.missing.floor()).clamp(range.start, range.end);
        self.stray(floor - range.start);
        let audited = self.audited;
        let (mut surplus, mut again) = (OverWindow::default(), 0);
        for piece in self.record.pieces(floor..range.end) {
            surplus.packets += piece.packets;
            surplus.bytes += piece.packets * piece.flow_bytes;
            again += piece.total();
        }
        let ledger = &mut self.ledger;
        self.missing.take(floor..range.end, |piece: Piece, cause| {
            ledger.restore(cause, piece.total());
            again -= piece.total();
            if piece.first >= audited {
                surplus.packets -= piece.packets;
                surplus.bytes -= piece.packets * piece.flow_bytes;
            }
        });
        self.ledger.repeat(again, again);
        self.surplus.packets += surplus.packets;
        self.surplus.bytes += surplus.bytes;
        self.crowd(counted_bytes);
    }

    /// Handles taken packets for which it is no longer known whether they had been skipped.
    pub(super) fn stray(&mut self, packets: u64) {
        let mut samples = packets * self.full;
        self.ledger.repeat(0, samples);
        let unknown = &mut self.ledger.unknown;
        unknown.lost_min = unknown.lost_min.saturating_sub(samples);
        for cause in [TxCause::NetworkLoss, TxCause::LossOrOverflow] {
            let lost = self.ledger.lost(cause).min(samples);
            self.ledger.doubt_lost(cause, lost);
            samples -= lost;
        }
    }

    /// Counts the packets in flight before `to` as skipped.
    fn skip(&mut self, to: u64, counted_bytes: u64) {
        let from = self.record.passed();
        if to <= from {
            return;
        }
        let crowded = |until: u64| (until.wrapping_sub(counted_bytes) as i64) > 0;
        self.crowded = self.crowded.filter(|&until| crowded(until));
        let cause = match self.crowded {
            Some(_) => TxCause::LossOrOverflow,
            None => TxCause::NetworkLoss,
        };
        for piece in self.record.pieces(from..to) {
            self.skipped += piece.packets;
            self.ledger.lose(cause, piece.total());
            self.missing.push(piece, cause);
        }
        self.record.pass(to);
    }

    pub(super) fn crowd(&mut self, counted_bytes: u64) {
        // The packets behind it in the buffer, and one that just did not fit.
        self.crowded = Some(counted_bytes.wrapping_add(2 * self.window_bytes));
        self.overcommitted();
    }
}

/// Returns the number nearest to `place` with these low bits.
fn near(low: u16, place: u64) -> i64 {
    place as i64 + i64::from(low.wrapping_sub(place as u16) as i16)
}
