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
//! The device expects a packet behind each report, its *place*: so the end of the last run is known
//! from any report, and from the answer to a query that all before it was taken or skipped. This is
//! complete while no report is missing; see [`super::missing_report`].

use std::ops::Range;

use millstream_wire::chdr::PacketType;
use millstream_wire::stream::SequenceGap;

use super::ledger::{TxCause, TxLedger};
use super::missing::Missing;
use super::missing_report::{Doubt, LOST};
use super::record::{PacketLog, Piece};

/// The range of packets that 16-bit numbers distinguish, with a margin.
const REACH: i64 = 30_000;

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
    /// The device has come to this packet in the current run, and expects it or a later one.
    pub(super) least: u64,
    /// The end of the run is unknown so far, and it began with packets that had been resolved.
    pub(super) astray: bool,
    /// The packets passed when it began. Before this the run repeats packets, or takes late ones.
    pub(super) repeats_to: u64,
    /// The lead of the device's place in our order over its count, packets and commands.
    pub(super) shift: i64,
    /// That is unknown.
    pub(super) loose: bool,
    /// It is more, up to this: so many commands may have been lost before the first one that came.
    pub(super) unseen: u16,
    /// Reports missing before the next one.
    pub(super) missed: u32,
    pub(super) doubt: Option<Doubt>,
    /// Packets before this one may have been taken although they seem skipped.
    pub(super) murky: u64,
    /// Skipped packets that the window has not yet included.
    pub(super) deficit: OverWindow,
    /// Bytes in the device's buffer that the window has not yet included.
    pub(super) surplus: OverWindow,
    /// Until the device has counted this much, copies or late packets may have filled its buffer.
    pub(super) crowded: Option<u64>,
    pub(super) window_bytes: u64,
    pub(super) skipped: u64,
    /// Packets taken after the device had passed all before this number, and that number.
    pub(super) behind: (u64, u64),
    /// Samples of packets that came after they had been skipped.
    pub(super) restored: u64,
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
            least: 0,
            astray: false,
            repeats_to: 0,
            shift: 0,
            loose: false,
            unseen: 0,
            missed: 0,
            doubt: None,
            murky: 0,
            deficit: OverWindow::default(),
            surplus: OverWindow::default(),
            crowded: None,
            window_bytes,
            skipped: 0,
            behind: (0, 0),
            restored: 0,
            troubled: false,
        }
    }

    /// Restarts the stream with the same ledger.
    pub fn restart(&mut self, window_bytes: u64) {
        let (record, ledger) = (self.record.renewed(), std::mem::take(&mut self.ledger));
        let (fresh, restored) = (Self::new(self.full, 1, window_bytes), self.restored);
        *self = Self { record, ledger, restored, troubled: true, ..fresh };
    }

    /// Returns whether every sent sample is resolved.
    pub fn is_settled(&self) -> bool {
        let all = self.record.samples() == 0 && !self.astray;
        all && self.missed == 0 && self.doubt.is_none()
    }

    /// Returns how many packets came behind all others, late or again.
    pub fn stragglers(&self) -> u64 {
        if self.behind.1 == self.record.sent() { self.behind.0 } else { 0 }
    }

    /// Returns the packets that were skipped, including those that came late.
    pub fn skipped_packets(&self) -> u64 {
        self.skipped
    }

    /// Takes the skipped packets and the surplus that the window has not yet included.
    pub fn take_differences(&mut self) -> [OverWindow; 2] {
        [std::mem::take(&mut self.deficit), std::mem::take(&mut self.surplus)]
    }

    /// Returns the packet that the device expects, by the low bits of its number; `None` for one
    /// that was never sent.
    pub fn place(&self, expected: u16) -> Option<u64> {
        let place = u64::try_from(near(expected, self.record.passed())).ok();
        place.filter(|place| *place <= self.record.sent())
    }

    /// Takes the packet that the device expects.
    pub fn progress(&mut self, place: u64, counted_bytes: u64) {
        self.reach(place, counted_bytes);
        self.least = place;
        if place > self.record.passed() {
            self.pass(place);
        }
    }

    /// Handles a packet with a wrong number that the device took.
    pub fn gap(&mut self, gap: SequenceGap, counted_bytes: u64) {
        self.troubled = true;
        let step = i64::from(gap.actual.wrapping_sub(gap.expected) as i16);
        if gap.kind == PacketType::StreamCommand {
            self.shift = self.shift.wrapping_add(step);
            return;
        }
        let sent = self.record.sent() as i64;
        let due = near(gap.expected, self.record.passed());
        let came = due + step;
        if !(0..=sent).contains(&due) || !(0..sent).contains(&came) || sent - came.min(due) > REACH
        {
            return self.miss_reports(LOST);
        }
        let (due, came) = (due as u64, came as u64);
        self.reach(due, counted_bytes);
        self.end_run(due, counted_bytes);
        self.shift = self.shift.wrapping_add(step);
        self.skip(came, counted_bytes);
        self.begin_run(came);
        self.least = came + 1;
        if came == self.record.passed() {
            self.pass(came + 1);
        }
    }

    /// Handles a query that found the device at packet `place`, with `sent` sent before it. Those
    /// between are lost. `lead`: by how much the place is ahead of the device's count, if that is
    /// exact.
    pub fn settle(&mut self, place: u64, sent: u64, lead: Option<i64>, counted_bytes: u64) {
        self.reach(place, counted_bytes);
        self.end_run(place, counted_bytes);
        self.skip(sent, counted_bytes);
        self.begin_run(place);
        self.astray = false;
        lead.into_iter().for_each(|lead| self.compare(lead));
    }

    /// Records that the packets may have exceeded the device's buffer. Packets that were skipped,
    /// and came late since, may have found it full.
    pub fn overcommitted(&mut self) {
        let skipped = self.missing.samples(TxCause::NetworkLoss);
        self.ledger.rename(TxCause::NetworkLoss, TxCause::LossOrOverflow, skipped);
        self.missing.rename(TxCause::LossOrOverflow);
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
        (self.start, self.least, self.repeats_to) = (first, first, self.record.passed());
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
        let (mut surplus, mut again) = (OverWindow::default(), 0);
        for piece in self.record.pieces(floor..range.end) {
            surplus.packets += piece.packets;
            surplus.bytes += piece.packets * piece.flow_bytes;
            again += piece.total();
        }
        let (ledger, restored) = (&mut self.ledger, &mut self.restored);
        self.missing.take(floor..range.end, |piece: Piece, cause| {
            ledger.restore(cause, piece.total());
            *restored += piece.total();
            again -= piece.total();
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
        self.pass_murky(to.min(self.murky));
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
            self.deficit.packets += piece.packets;
            self.deficit.bytes += piece.packets * piece.flow_bytes;
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
