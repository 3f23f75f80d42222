//! The ledger of a transmit stream: the outcome of every sample given to it.
//!
//! Samples accepted = transmitted + in flight + the sum of losses by cause + the unknown ones,
//! which may have been transmitted. Accepted samples are counted at the caller's slices; the rest
//! follows from the record of sent packets, from the device's counts of consumed ones, and from the
//! sequence errors that it reports.
//!
//! The device's reports are complete as long as none is lost, which their numbers show. When some
//! are, the samples concerned are [`TxUnknown`], with bounds for the number of lost ones.

use crate::ledger::causes;
use std::fmt;

causes! {
    /// Why samples were not transmitted.
    TxCause of TxLedger {
        /// Packets that were sent never reached the device, and no more were sent than fit its
        /// buffer.
        NetworkLoss = "network_loss",
        /// Packets that were sent are not among those that the device took out of its buffer, and
        /// the network had sent some twice or so late that the buffer may have been full.
        LossOrOverflow = "loss_or_overflow",
        /// They reached it after their time, and it dropped them.
        Late = "late",
        /// The stream was closed before they were sent.
        Discarded = "discarded",
    }
}

/// Samples that may have been transmitted or lost.
///
/// Between `lost_min` and `lost_max` of them were lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TxUnknown {
    /// Their number.
    pub samples: u64,
    /// The least number of lost ones.
    pub lost_min: u64,
    /// The largest number of lost ones.
    pub lost_max: u64,
}

/// Samples that were transmitted again, because the network duplicated their packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TxRepeated {
    /// The least number.
    pub min: u64,
    /// The largest number; [`u64::MAX`] without a bound.
    pub max: u64,
}

/// The samples of one transmit stream, by outcome.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TxLedger {
    /// Samples taken from the caller.
    pub accepted: u64,
    /// Samples that the device has taken for transmission, each counted once. They leave a little
    /// later: if it restarts meanwhile, the last packets that its blocks hold are not transmitted.
    pub transmitted: u64,
    /// Samples in flight, or waiting for their packet to fill; 0 once a stream is closed.
    pub in_flight: u64,
    /// Samples that may have been transmitted or lost.
    pub unknown: TxUnknown,
    /// Samples transmitted more than once. They are not part of any sum.
    pub repeated: TxRepeated,
    lost: [u64; TxCause::ALL.len()],
}

/// A ledger whose two sides differ: a defect of this program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the transmit ledger does not balance: {accepted} samples were accepted, but {transmitted} \
     transmitted, {in_flight} in flight, {lost} lost and {unknown} unknown make {}. This is a \
     defect of Millstream",
    transmitted + in_flight + lost + unknown
)]
#[non_exhaustive]
pub struct TxImbalance {
    /// Samples accepted.
    pub accepted: u64,
    /// Samples transmitted.
    pub transmitted: u64,
    /// Samples in flight.
    pub in_flight: u64,
    /// Samples lost by any cause.
    pub lost: u64,
    /// Samples that may have been transmitted or lost.
    pub unknown: u64,
}

impl TxLedger {
    /// Returns whether every sample was or will be transmitted for certain.
    pub fn is_lossless(&self) -> bool {
        self.lost_total() == 0 && self.unknown.samples == 0
    }

    /// Checks that both sides agree.
    ///
    /// # Errors
    /// [`TxImbalance`] with both sides.
    pub fn balance(&self) -> Result<(), TxImbalance> {
        let Self { accepted, transmitted, in_flight, .. } = *self;
        let (lost, unknown) = (self.lost_total(), self.unknown.samples);
        if accepted == transmitted + in_flight + lost + unknown {
            return Ok(());
        }
        Err(TxImbalance { accepted, transmitted, in_flight, lost, unknown })
    }

    /// Returns the sum over several streams.
    pub fn sum<'a>(ledgers: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut sum = Self::default();
        ledgers.into_iter().for_each(|ledger| sum.merge(ledger));
        sum
    }

    /// Adds the counts of another stream.
    pub fn merge(&mut self, other: &Self) {
        self.accepted += other.accepted;
        self.transmitted += other.transmitted;
        self.in_flight += other.in_flight;
        self.unknown.samples += other.unknown.samples;
        self.unknown.lost_min += other.unknown.lost_min;
        self.unknown.lost_max += other.unknown.lost_max;
        let min = self.repeated.min + other.repeated.min;
        self.repeat(0, other.repeated.max);
        self.repeated.min = min;
        for (cause, samples) in other.losses() {
            self.book(cause, samples);
        }
    }

    /// Counts samples from the caller.
    pub(super) fn accept(&mut self, samples: u64) {
        self.accepted += samples;
        self.in_flight += samples;
    }

    /// Counts `samples` that lie before a point passed by the device.
    pub(super) fn pass(&mut self, samples: u64) {
        self.in_flight -= samples;
        self.transmitted += samples;
    }

    /// Takes back samples counted as passed. Returns the samples that cannot be taken back because
    /// they were revoked.
    pub(super) fn unpass(&mut self, samples: u64) -> u64 {
        let short = samples.saturating_sub(self.transmitted);
        let late = &mut self.lost[TxCause::Late as usize];
        *late -= short.min(*late);
        self.transmitted -= samples - short;
        self.in_flight += samples;
        short
    }

    /// Counts transmitted samples as lost.
    pub(super) fn revoke(&mut self, cause: TxCause, samples: u64) {
        self.transmitted -= samples;
        self.book(cause, samples);
    }

    /// Counts lost samples, as many as there are, as transmitted.
    pub(super) fn restore(&mut self, cause: TxCause, samples: u64) {
        let samples = samples.min(self.lost[cause as usize]);
        self.lost[cause as usize] -= samples;
        self.transmitted += samples;
    }

    /// Counts samples in flight as lost.
    pub(super) fn lose(&mut self, cause: TxCause, samples: u64) {
        self.in_flight -= samples;
        self.book(cause, samples);
    }

    /// Moves lost samples, as many as there are, to another cause.
    pub(super) fn rename(&mut self, from: TxCause, to: TxCause, samples: u64) {
        let samples = samples.min(self.lost(from));
        self.lost[from as usize] -= samples;
        self.book(to, samples);
    }

    /// Counts samples in flight as unknown; at least `lost_min` of them were lost.
    pub(super) fn doubt(&mut self, samples: u64, lost_min: u64) {
        self.in_flight -= samples;
        self.add_unknown(samples, lost_min);
    }

    /// Counts unknown samples, as many as there are, as transmitted, and none of them twice.
    pub(super) fn clear_doubt(&mut self, samples: u64, again: u64) {
        let samples = samples.min(self.unknown.samples - self.unknown.lost_min);
        self.unknown.samples -= samples;
        self.unknown.lost_max = self.unknown.lost_max.saturating_sub(samples);
        self.transmitted += samples;
        if self.repeated.max != u64::MAX {
            self.repeated.max = self.repeated.max.saturating_sub(again).max(self.repeated.min);
        }
    }

    /// Counts transmitted samples, as many as there are, as unknown.
    pub(super) fn doubt_transmitted(&mut self, samples: u64) {
        let samples = samples.min(self.transmitted);
        self.transmitted -= samples;
        self.add_unknown(samples, 0);
    }

    /// Counts lost samples, as many as there are, as unknown.
    pub(super) fn doubt_lost(&mut self, cause: TxCause, samples: u64) {
        let lost = &mut self.lost[cause as usize];
        let samples = samples.min(*lost);
        *lost -= samples;
        self.add_unknown(samples, 0);
    }

    /// Counts samples that were transmitted again; [`u64::MAX`] without a bound.
    pub(super) fn repeat(&mut self, min: u64, max: u64) {
        self.repeated.min += min;
        self.repeated.max = self.repeated.max.saturating_add(max);
        if self.repeated.max == u64::MAX {
            // The device's count is unknown, and what followed from it before may be wrong.
            self.repeated.min = 0;
        }
    }

    fn add_unknown(&mut self, samples: u64, lost_min: u64) {
        self.unknown.samples += samples;
        self.unknown.lost_min += lost_min;
        self.unknown.lost_max += samples;
    }
}

impl fmt::Display for TxLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<16} {:>16}", "accepted", self.accepted)?;
        write!(f, "{:<16} {:>16}", "transmitted", self.transmitted)?;
        if self.in_flight > 0 {
            write!(f, "\n{:<16} {:>16}", "in_flight", self.in_flight)?;
        }
        self.write_losses(f)?;
        if self.unknown.samples > 0 {
            let TxUnknown { samples, lost_min, lost_max } = self.unknown;
            write!(f, "\n{:<16} {samples:>16} ({lost_min} to {lost_max} lost)", "unknown")?;
        }
        match self.repeated {
            TxRepeated { max: 0, .. } => {}
            TxRepeated { min, max } if min == max => write!(f, "\n{:<16} {min:>16}", "repeated")?,
            TxRepeated { min, max: u64::MAX } => {
                write!(f, "\n{:<16} {min:>16} or more", "repeated")?;
            }
            TxRepeated { min, max } => write!(f, "\n{:<16} {min:>16} to {max}", "repeated")?,
        }
        match self.balance() {
            Ok(()) => Ok(()),
            Err(_) => write!(f, "\nDOES NOT BALANCE"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sample_is_in_one_place() {
        let mut ledger = TxLedger::default();
        ledger.accept(100);
        ledger.pass(70);
        assert_eq!(ledger.unpass(10), 0);
        ledger.revoke(TxCause::NetworkLoss, 10);
        ledger.revoke(TxCause::Late, 6);
        ledger.restore(TxCause::Late, 1);
        ledger.rename(TxCause::NetworkLoss, TxCause::LossOrOverflow, 3);
        ledger.lose(TxCause::Discarded, 15);
        assert!(!ledger.is_lossless());
        assert_eq!(ledger.balance(), Ok(()));
        assert_eq!((ledger.transmitted, ledger.in_flight, ledger.lost_total()), (45, 25, 30));
        let mut twice = ledger.clone();
        twice.merge(&ledger);
        assert_eq!((twice.accepted, twice.lost(TxCause::NetworkLoss)), (200, 14));
        assert_eq!(twice.balance(), Ok(()));
        // All of it was transmitted or late, and is then taken back.
        assert_eq!((ledger.unpass(50), ledger.lost(TxCause::Late), ledger.in_flight), (5, 0, 75));
        assert_eq!(ledger.balance(), Ok(()));
    }

    #[test]
    fn what_is_not_known_has_bounds() {
        let mut ledger = TxLedger::default();
        ledger.accept(100);
        ledger.doubt(40, 10);
        ledger.pass(30);
        ledger.revoke(TxCause::Late, 5);
        ledger.doubt_lost(TxCause::Late, 9);
        ledger.doubt_transmitted(20);
        ledger.lose(TxCause::NetworkLoss, 30);
        ledger.repeat(3, u64::MAX);
        assert_eq!(ledger.unknown, TxUnknown { samples: 65, lost_min: 10, lost_max: 65 });
        assert_eq!((ledger.transmitted, ledger.balance()), (5, Ok(())));
        let table = ledger.to_string();
        assert!(table.contains("65 (10 to 65 lost)") && table.ends_with("0 or more"), "{table}");
        let mut twice = ledger.clone();
        twice.merge(&ledger);
        assert_eq!((twice.unknown.samples, twice.repeated.min), (130, 0));
        let repeated = TxRepeated { min: 4, max: 5 };
        twice.merge(&TxLedger { repeated, ..TxLedger::default() });
        assert_eq!(twice.repeated.min, 4, "what another stream knows stays known");
        assert_eq!((twice.repeated.max, twice.balance()), (u64::MAX, Ok(())));
    }

    #[test]
    fn an_imbalance_names_both_sides() {
        let ledger = TxLedger { accepted: 10, transmitted: 3, ..TxLedger::default() };
        assert_eq!(
            ledger.balance().unwrap_err().to_string(),
            "the transmit ledger does not balance: 10 samples were accepted, but 3 transmitted, 0 \
             in flight, 0 lost and 0 unknown make 3. This is a defect of Millstream"
        );
        assert!(ledger.to_string().ends_with("DOES NOT BALANCE"));
    }

    #[test]
    fn the_table_shows_only_causes_that_took_samples() {
        let mut ledger = TxLedger::default();
        ledger.accept(7);
        ledger.pass(7);
        ledger.revoke(TxCause::NetworkLoss, 2);
        let table = ledger.to_string();
        let lines: Vec<Vec<_>> = table.lines().map(|l| l.split_whitespace().collect()).collect();
        assert_eq!(lines, [["accepted", "7"], ["transmitted", "5"], ["network_loss", "2"]]);
    }
}
