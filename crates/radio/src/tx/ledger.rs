//! The ledger of a transmit stream: the outcome of every sample given to it.
//!
//! Samples accepted = transmitted + in flight + the sum of losses by cause + the unknown ones,
//! which may have been transmitted. Accepted samples are counted at the caller's slices; the rest
//! follows from the record of sent packets, and from the device's numbered reports about them.
//!
//! A loss has a cause where the reports leave no other: the device passed the packet over, or
//! dropped it because it was late. Where a report is missing, the samples until the next sure point
//! are [`TxUnknown`], with bounds for the number of lost ones.

use crate::ledger::causes;
use std::fmt;

use super::pending_bursts::PendingBursts;
use super::progress::Outcomes;

causes! {
    /// Why samples were not transmitted.
    TxCause of TxLedger {
        /// Packets that were sent are not among those that the device took: the network lost them,
        /// or it delivered others twice or late, which filled the device's buffer.
        NetworkLoss = "network_loss",
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
        self.repeated.min += other.repeated.min;
        self.repeated.max = self.repeated.max.saturating_add(other.repeated.max);
        for (cause, samples) in other.losses() {
            self.book(cause, samples);
        }
    }

    /// Returns the ledger of a stream of `accepted` samples, of which `discarded` were not sent,
    /// from the outcomes of its packets, and from the late ones among them.
    pub(super) fn of(
        accepted: u64,
        discarded: u64,
        packets: &Outcomes,
        bursts: &PendingBursts,
    ) -> Self {
        let late = bursts.late();
        let Outcomes { taken, skipped, open, again, .. } = *packets;
        // A late packet may be one of the open ones.
        let (late_min, late_max) = (late.min.min(taken), late.max.min(taken));
        let samples = open + late_max - late_min;
        let lost_min = (late.min - late_min).min(open);
        // A copy may have been late, or taken without a report.
        let min = if bursts.may_hide_copies() { 0 } else { again };
        let max = if packets.is_blurred { u64::MAX } else { again };
        let mut ledger = Self {
            accepted,
            transmitted: taken - late_max,
            in_flight: accepted - taken - skipped - open - discarded,
            unknown: TxUnknown { samples, lost_min, lost_max: samples },
            repeated: TxRepeated { min, max },
            ..Self::default()
        };
        ledger.book(TxCause::NetworkLoss, skipped);
        ledger.book(TxCause::Late, late_min);
        ledger.book(TxCause::Discarded, discarded);
        ledger
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
    use crate::tx::pending_bursts::Bounds;

    fn of(accepted: u64, packets: Outcomes, min: u64, max: u64) -> TxLedger {
        TxLedger::of(accepted, 0, &packets, &PendingBursts::with_late(Bounds { min, max }))
    }

    #[test]
    fn each_sample_is_in_one_place() {
        let packets = Outcomes { taken: 60, skipped: 10, again: 7, ..Outcomes::default() };
        let ledger = of(100, packets, 6, 6);
        assert!(!ledger.is_lossless());
        assert_eq!(ledger.balance(), Ok(()));
        assert_eq!((ledger.transmitted, ledger.in_flight, ledger.lost_total()), (54, 30, 16));
        assert_eq!(ledger.repeated, TxRepeated { min: 0, max: 7 });
        let mut twice = ledger.clone();
        twice.merge(&ledger);
        assert_eq!((twice.accepted, twice.lost(TxCause::NetworkLoss)), (200, 20));
        assert_eq!(twice.balance(), Ok(()));
    }

    #[test]
    fn what_is_not_known_has_bounds() {
        let packets = Outcomes { taken: 50, open: 40, is_blurred: true, ..Outcomes::default() };
        // Of the late ones at least ten are among those that are open.
        let ledger = of(100, packets, 60, 70);
        assert_eq!(ledger.unknown, TxUnknown { samples: 40, lost_min: 10, lost_max: 40 });
        assert_eq!((ledger.transmitted, ledger.lost(TxCause::Late)), (0, 50));
        let ledger = of(100, packets, 5, 20);
        assert_eq!(ledger.unknown, TxUnknown { samples: 55, lost_min: 0, lost_max: 55 });
        assert_eq!((ledger.transmitted, ledger.balance()), (30, Ok(())));
        let table = ledger.to_string();
        assert!(table.contains("55 (0 to 55 lost)") && table.ends_with("0 or more"), "{table}");
        let mut twice = ledger.clone();
        twice.merge(&ledger);
        let repeated = TxRepeated { min: 4, max: 5 };
        twice.merge(&TxLedger { repeated, ..TxLedger::default() });
        assert_eq!((twice.unknown.samples, twice.repeated.min), (110, 4));
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
        let ledger = of(7, Outcomes { taken: 5, skipped: 2, ..Outcomes::default() }, 0, 0);
        let table = ledger.to_string();
        let lines: Vec<Vec<_>> = table.lines().map(|l| l.split_whitespace().collect()).collect();
        assert_eq!(lines, [["accepted", "7"], ["transmitted", "5"], ["network_loss", "2"]]);
    }
}
