//! The ledger of a transmit stream: where every sample given to it went.
//!
//! Samples accepted = transmitted + in flight + the sum of losses by cause. What was accepted is
//! counted at the caller's slices; the rest follows from the record of packets sent and from what
//! the device says it has consumed.
//!
//! The network's losses are exact on a path that keeps the order of packets and does not double
//! them; otherwise a packet that overtakes an audit, or is overtaken by one, is booked on the
//! wrong side of it.

use std::fmt;

/// Why samples were not transmitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TxCause {
    /// Packets that were sent never reached the device, by its own count.
    NetworkLoss,
    /// They reached it after their time, and it dropped them.
    Late,
    /// They were on their way when the stream had to be set up anew: they may have been
    /// transmitted or not.
    Unaccounted,
    /// The stream was closed before they were sent.
    Discarded,
}

impl TxCause {
    /// Every cause, in the order of a ledger's table.
    pub const ALL: [Self; 4] = [Self::NetworkLoss, Self::Late, Self::Unaccounted, Self::Discarded];

    /// A stable name for tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::NetworkLoss => "network_loss",
            Self::Late => "late",
            Self::Unaccounted => "unaccounted",
            Self::Discarded => "discarded",
        }
    }
}

impl fmt::Display for TxCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Samples of one transmit stream, by what became of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TxLedger {
    /// Samples taken from the caller.
    pub accepted: u64,
    /// Samples that the device has taken for transmission.
    pub transmitted: u64,
    /// Samples on their way, or waiting for their packet to fill; 0 once a stream is closed.
    pub in_flight: u64,
    lost: [u64; TxCause::ALL.len()],
}

/// A ledger whose two sides differ: a defect of this program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the transmit ledger does not balance: {accepted} accepted, but {transmitted} transmitted, \
     {in_flight} in flight and {lost} lost make {}", transmitted + in_flight + lost
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
}

impl TxLedger {
    /// Samples lost by `cause`.
    pub fn lost(&self, cause: TxCause) -> u64 {
        self.lost[cause as usize]
    }

    /// Samples lost by any cause.
    pub fn lost_total(&self) -> u64 {
        self.lost.iter().sum()
    }

    /// Every cause with the samples it took, also those that took none.
    pub fn losses(&self) -> impl Iterator<Item = (TxCause, u64)> + '_ {
        TxCause::ALL.into_iter().map(|cause| (cause, self.lost(cause)))
    }

    /// Checks that both sides agree.
    ///
    /// # Errors
    /// [`TxImbalance`] with both sides.
    pub fn balance(&self) -> Result<(), TxImbalance> {
        let Self { accepted, transmitted, in_flight, .. } = *self;
        let lost = self.lost_total();
        if accepted == transmitted + in_flight + lost {
            return Ok(());
        }
        Err(TxImbalance { accepted, transmitted, in_flight, lost })
    }

    /// The sums of several streams.
    pub fn merge(&mut self, other: &Self) {
        self.accepted += other.accepted;
        self.transmitted += other.transmitted;
        self.in_flight += other.in_flight;
        for (cause, samples) in other.losses() {
            self.lost[cause as usize] += samples;
        }
    }

    /// Samples came from the caller.
    pub(super) fn accept(&mut self, samples: u64) {
        self.accepted += samples;
        self.in_flight += samples;
    }

    /// The device has passed a point before which `samples` lie.
    pub(super) fn pass(&mut self, samples: u64) {
        self.in_flight -= samples;
        self.transmitted += samples;
    }

    /// Samples counted as transmitted were not.
    pub(super) fn revoke(&mut self, cause: TxCause, samples: u64) {
        self.transmitted -= samples;
        self.lost[cause as usize] += samples;
    }

    /// Samples counted as lost were transmitted after all.
    pub(super) fn restore(&mut self, cause: TxCause, samples: u64) {
        self.lost[cause as usize] -= samples;
        self.transmitted += samples;
    }

    /// Samples in flight will not be heard of.
    pub(super) fn lose(&mut self, cause: TxCause, samples: u64) {
        self.in_flight -= samples;
        self.lost[cause as usize] += samples;
    }
}

impl fmt::Display for TxLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<16} {:>16}", "accepted", self.accepted)?;
        write!(f, "{:<16} {:>16}", "transmitted", self.transmitted)?;
        if self.in_flight > 0 {
            write!(f, "\n{:<16} {:>16}", "in_flight", self.in_flight)?;
        }
        for (cause, samples) in self.losses().filter(|loss| loss.1 > 0) {
            write!(f, "\n{cause:<16} {samples:>16}")?;
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
        ledger.pass(60);
        ledger.revoke(TxCause::NetworkLoss, 10);
        ledger.revoke(TxCause::Late, 6);
        ledger.restore(TxCause::Late, 1);
        ledger.lose(TxCause::Discarded, 15);
        assert_eq!(ledger.balance(), Ok(()));
        assert_eq!((ledger.transmitted, ledger.in_flight, ledger.lost_total()), (45, 25, 30));
        let mut twice = ledger.clone();
        twice.merge(&ledger);
        assert_eq!((twice.accepted, twice.lost(TxCause::NetworkLoss)), (200, 20));
        assert_eq!(twice.balance(), Ok(()));
    }

    #[test]
    fn an_imbalance_names_both_sides() {
        let ledger = TxLedger { accepted: 10, transmitted: 3, ..TxLedger::default() };
        assert_eq!(
            ledger.balance().unwrap_err().to_string(),
            "the transmit ledger does not balance: 10 accepted, but 3 transmitted, 0 in flight \
             and 0 lost make 3"
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
