//! The device progress where reports are missing: the corrections, and the bounds of the unknown
//! samples.

use super::ledger::{TxCause, TxLedger};
use super::progress::{DeviceProgress, REACH};

/// The counts before the first missing report.
#[derive(Debug)]
pub(super) struct MissingReport {
    pub ledger: TxLedger,
    pub passed: u64,
    pub shift: i64,
    /// Samples of skipped packets that may come late, by cause.
    pub skipped: [u64; 2],
    pub gaps: u64,
}

/// Packets that count as transmitted although a report is missing.
#[derive(Debug)]
pub(super) struct AssumedSent {
    pub before: MissingReport,
    pub end: u64,
    /// No other report contained gaps meanwhile.
    pub quiet: bool,
}

impl DeviceProgress {
    /// Counts as unknown the samples from the first missing report up to packet `to`. `missing`:
    /// how many packets and commands fewer were counted than sent in all, if known. `commands` were
    /// sent in all. Returns the samples by which these packets are shorter than full ones.
    pub fn resolve(
        &mut self,
        missing: Option<u64>,
        to: u64,
        commands: u64,
        counted_bytes: u64,
    ) -> u64 {
        // The query may have come late, behind packets that were sent after it.
        let to = to.max(self.record.passed());
        let suspect = self.suspect.take().map(|suspect| suspect.before);
        let blind = suspect.or(self.blind.take()).unwrap_or_else(|| self.save());
        self.blind = None;
        self.reports_missing = 0;
        let late = self.ledger.lost(TxCause::Late);
        let accepted = self.ledger.accepted;
        self.ledger = blind.ledger;
        self.ledger.accepted = accepted;
        // Samples reported late meanwhile are counted again from the rest.
        let late = late.saturating_sub(self.ledger.lost(TxCause::Late));
        self.late_samples += late;
        self.record.pass(blind.passed);
        let others =
            self.ledger.transmitted + self.ledger.lost_total() + self.ledger.unknown.samples;
        self.ledger.in_flight = accepted - others;

        let range = blind.passed..to.max(blind.passed);
        let (mut packets, mut samples, mut least) = (0, 0, u64::MAX);
        for piece in self.record.pieces(range.clone()) {
            packets += piece.packets;
            samples += piece.total();
            least = least.min(piece.samples);
        }
        // Any of the commands since the last count query may be among the uncounted ones.
        let commands_since = commands.saturating_sub(self.commands) as i64;
        let net = missing.map(|missing| (missing as i64).wrapping_sub(blind.shift));
        let net = net.map(|net| net.saturating_sub(commands_since));
        let lost = net.map_or(0, |net| net.clamp(0, packets as i64)) as u64;
        // Packets that an earlier count query missed may have come since.
        self.ledger.unknown.lost_min = 0;
        self.ledger.doubt(samples, if lost > 0 { lost * least } else { 0 });
        self.record.pass(range.end);
        for (cause, skipped) in
            [TxCause::NetworkLoss, TxCause::LossOrOverflow].iter().zip(blind.skipped)
        {
            self.ledger.doubt_lost(*cause, skipped);
        }
        // The packets taken again are the surplus of the count, and one for each that was lost.
        let again = net.map(|net| (packets as i64).saturating_sub(net.min(packets as i64)) as u64);
        let again = again.filter(|&again| again < REACH as u64);
        self.ledger.repeat(0, again.map_or(u64::MAX, |again| again * self.full));
        self.missing.clear(range.end);
        self.begin_run(range.end);
        (self.audited, self.commands) = (range.end, commands);
        self.shift = missing.map_or(0, |missing| missing as i64);
        self.crowd(counted_bytes);
        (packets * self.full).saturating_sub(samples)
    }

    /// Counts the lost samples as unknown that the last run may contain, whose end is unknown.
    /// `acknowledged`: the last packet has been taken, and none twice.
    pub fn doubt_end(&mut self, acknowledged: bool) {
        let sent = self.record.sent();
        // No run before this one contains it, so this one does.
        if acknowledged && self.missing.contains(sent.wrapping_sub(1)) {
            self.end_run(sent, 0);
            self.begin_run(sent);
        }
        let passed = self.record.passed();
        let reached = if passed > self.repeats_to { passed } else { self.start };
        let floor = self.record.oldest().max(self.missing.floor()).clamp(reached, sent);
        self.stray(floor - reached);
        let mut again = self.record.pieces(floor..sent).map(|piece| piece.total()).sum();
        let ledger = &mut self.ledger;
        self.missing.take(floor..sent, |piece, cause| {
            ledger.doubt_lost(cause, piece.total());
            again -= piece.total();
        });
        self.ledger.repeat(0, again);
    }

    /// Ends the reports: samples in flight, and assumed as transmitted, are unknown.
    /// `acknowledged`: the end of the last burst has been transmitted. Returns the samples
    /// concerned.
    pub fn close(&mut self, acknowledged: bool) -> u64 {
        let before = self.ledger.unknown.samples;
        let suspect = self.suspect.as_ref();
        if !self.is_settled() || suspect.is_some_and(|one| !(acknowledged && one.quiet)) {
            self.resolve(None, self.record.sent(), 0, 0);
        }
        self.ledger.unknown.samples.saturating_sub(before)
    }

    pub(super) fn save(&self) -> MissingReport {
        let skipped = [TxCause::NetworkLoss, TxCause::LossOrOverflow];
        MissingReport {
            ledger: self.ledger.clone(),
            passed: self.record.passed(),
            shift: self.shift,
            gaps: self.gaps,
            skipped: skipped.map(|cause| self.missing.samples(cause)),
        }
    }
}
