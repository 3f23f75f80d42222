//! The ledger: the outcome of every sample of a stream.
//!
//! For each stream, samples expected = delivered + held + the sum of losses by cause. The expected
//! number follows from time stamps (or from the length of a finite capture), the delivered one from
//! counting copies into the caller's buffers, so the two sides are independent and must agree.
//! Samples that came after the caller had ended the stream are counted separately: they are neither
//! expected nor lost.

use std::fmt;

/// Declares the causes of a ledger, each with its stable name for tables and JSON, and the ledger's
/// queries by cause. The ledger has a field `lost`, an array.
macro_rules! causes {
    ($(#[$about:meta])* $causes:ident of $ledger:ident {
        $($(#[$doc:meta])* $cause:ident = $name:literal,)+
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $causes {
            $($(#[$doc])* $cause,)+
        }

        impl $causes {
            /// Every cause, in the order of a ledger's table.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$cause),+];

            /// Returns a stable name for tables and JSON.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$cause => $name,)+
                }
            }
        }

        impl std::fmt::Display for $causes {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl $ledger {
            /// Returns the samples lost by `cause`.
            pub fn lost(&self, cause: $causes) -> u64 {
                self.lost[cause as usize]
            }

            /// Returns the samples lost by any cause.
            pub fn lost_total(&self) -> u64 {
                self.lost.iter().fold(0, |sum, lost| sum.wrapping_add(*lost))
            }

            /// Every cause with its lost samples, also those with zero.
            pub fn losses(&self) -> impl Iterator<Item = ($causes, u64)> + '_ {
                $causes::ALL.into_iter().map(|cause| (cause, self.lost(cause)))
            }

            /// Returns the causes with lost samples, by their names.
            pub fn lost_by_name(&self) -> std::collections::BTreeMap<&'static str, u64> {
                let losses = self.losses().filter(|loss| loss.1 > 0);
                losses.map(|(cause, samples)| (cause.name(), samples)).collect()
            }

            /// Counts samples as lost, modulo 2⁶⁴.
            fn book(&mut self, cause: $causes, samples: u64) {
                let lost = &mut self.lost[cause as usize];
                *lost = lost.wrapping_add(samples);
            }

            /// Writes the rows of a table for the causes with lost samples.
            fn write_losses(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut losses = self.losses().filter(|loss| loss.1 > 0);
                losses.try_for_each(|(cause, samples)| write!(f, "\n{cause:<16} {samples:>16}"))
            }
        }
    };
}
pub(crate) use causes;

causes! {
    /// Why samples were lost.
    Cause of Ledger {
        /// The device could not send them in time and stopped: its buffer was full. This includes
        /// the time until it restarted, by its clock.
        DeviceOverrun = "device_overrun",
        /// The device's time stamps jump forward although all its packets arrived: its clock was
        /// set, or it dropped samples without a message. A clock that was set back, or by more than
        /// 2⁴⁸ ticks, loses no samples: it is only an event.
        ClockJump = "clock_jump",
        /// Packets that the device sent did not reach this machine's socket before they were given
        /// up; [`crate::RxCounters::late`] counts those that came after that. At the end of a
        /// capture up to a window of credit counts here, too, if the device may have kept it
        /// because the network took reports of credit: nothing shows that.
        NetworkLoss = "network_loss",
        /// More than one thing happened in their gap, or it has no known explanation: nothing shows
        /// which took them. Their number is exact.
        Unknown = "unknown",
        /// The receive queue on this machine was full.
        HostQueueDrop = "host_queue_drop",
        /// Packets arrived that could not be decoded.
        Malformed = "malformed",
        /// The device discarded the command, because it came after its own start time.
        LateCommand = "late_command",
        /// Another channel of the group lost these moments, so this one dropped them too.
        Alignment = "alignment",
        /// They arrived, but the consumer had no space; of a recording, the disk was too slow.
        ConsumerFull = "consumer_full",
        /// The device had stopped answering, and was opened again. Their number follows from this
        /// machine's clock.
        Reopened = "reopened",
    }
}

/// The samples of one stream, by outcome, modulo 2⁶⁴.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Samples that the stream should have had so far.
    pub expected: u64,
    /// Samples copied to the consumer.
    pub delivered: u64,
    /// Samples that have arrived and wait in the current packet; 0 once a stream is closed.
    pub held: u64,
    /// Samples of the time after the caller's end: neither expected nor lost.
    pub after_end: u64,
    lost: [u64; Cause::ALL.len()],
}

/// A ledger whose two sides differ: a defect of this program or a device with inconsistent time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the ledger does not balance: {expected} samples were expected, but {delivered} delivered, \
    {held} held and {lost} lost make {}. Millstream has a defect, or the device's times are wrong",
    delivered.wrapping_add(*held).wrapping_add(*lost)
)]
#[non_exhaustive]
pub struct Imbalance {
    /// Samples expected.
    pub expected: u64,
    /// Samples delivered.
    pub delivered: u64,
    /// Samples held.
    pub held: u64,
    /// Samples lost by any cause.
    pub lost: u64,
}

impl Ledger {
    /// Checks that both sides agree.
    ///
    /// # Errors
    /// [`Imbalance`] with both sides.
    pub fn balance(&self) -> Result<(), Imbalance> {
        let Self { expected, delivered, held, .. } = *self;
        let lost = self.lost_total();
        if expected == delivered.wrapping_add(held).wrapping_add(lost) {
            return Ok(());
        }
        Err(Imbalance { expected, delivered, held, lost })
    }

    /// Adds the counts of another stream.
    pub fn merge(&mut self, other: &Self) {
        self.expected = self.expected.wrapping_add(other.expected);
        self.delivered = self.delivered.wrapping_add(other.delivered);
        self.held = self.held.wrapping_add(other.held);
        self.after_end = self.after_end.wrapping_add(other.after_end);
        for (cause, samples) in other.losses() {
            self.lose(cause, samples);
        }
    }

    /// Counts samples that arrived in order.
    pub(crate) fn hold(&mut self, samples: u64) {
        self.held += samples;
    }

    /// Counts held samples that went to the consumer.
    pub(crate) fn deliver(&mut self, samples: u64) {
        self.held -= samples;
        self.delivered += samples;
    }

    /// Counts samples that the consumer received and could not keep.
    pub(crate) fn refuse(&mut self, samples: u64) {
        let kept = self.delivered.checked_sub(samples);
        self.delivered = kept.expect("no more samples are refused than were delivered");
        self.lose(Cause::ConsumerFull, samples);
    }

    /// Counts held samples as lost, for `cause`.
    pub(crate) fn discard(&mut self, cause: Cause, samples: u64) {
        self.held -= samples;
        self.lose(cause, samples);
    }

    /// Counts the rest of the current packet as behind the end.
    pub(crate) fn close(&mut self) {
        self.expected = self.expected.wrapping_sub(self.held);
        self.held = 0;
    }

    /// Takes the last samples as behind the end: `received` of those that were delivered, and
    /// `lost` of those in the newest gap. `before` are the losses before that gap. Of its causes,
    /// the one that came last is cut first.
    pub(crate) fn cut(&mut self, received: u64, lost: u64, before: &[u64; Cause::ALL.len()]) {
        let mut left = lost;
        for (cause, before) in Cause::ALL.into_iter().zip(before) {
            let of_gap = self.lost(cause).saturating_sub(*before);
            let less = if cause == Cause::ConsumerFull { 0 } else { of_gap.min(left) };
            self.lose(cause, less.wrapping_neg());
            left -= less;
        }
        self.delivered -= received;
        let behind = received + lost - left;
        self.expected = self.expected.wrapping_sub(behind);
        self.after_end = self.after_end.wrapping_add(behind);
    }

    pub(crate) fn lose(&mut self, cause: Cause, samples: u64) {
        self.book(cause, samples);
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<16} {:>16}", "expected", self.expected)?;
        write!(f, "{:<16} {:>16}", "delivered", self.delivered)?;
        if self.held > 0 {
            write!(f, "\n{:<16} {:>16}", "held", self.held)?;
        }
        self.write_losses(f)?;
        if self.after_end > 0 {
            write!(f, "\n{:<16} {:>16}", "(after the end)", self.after_end)?;
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
        let mut ledger = Ledger { expected: 100, ..Ledger::default() };
        ledger.hold(60);
        ledger.deliver(50);
        ledger.discard(Cause::Alignment, 10);
        ledger.lose(Cause::NetworkLoss, 40);
        assert_eq!(ledger.balance(), Ok(()));
        assert_eq!(ledger.lost_total(), 50);
        let losses: Vec<_> = ledger.losses().filter(|loss| loss.1 > 0).collect();
        assert_eq!(losses, [(Cause::NetworkLoss, 40), (Cause::Alignment, 10)]);
        let mut twice = ledger.clone();
        twice.merge(&ledger);
        assert_eq!((twice.expected, twice.lost(Cause::NetworkLoss)), (200, 80));
    }

    #[test]
    fn an_imbalance_names_both_sides() {
        let mut ledger = Ledger { expected: 10, ..Ledger::default() };
        ledger.hold(4);
        ledger.deliver(3);
        ledger.lose(Cause::Malformed, 5);
        assert_eq!(
            ledger.balance().unwrap_err().to_string(),
            "the ledger does not balance: 10 samples were expected, but 3 delivered, 1 held and 5 \
             lost make 9. Millstream has a defect, or the device's times are wrong"
        );
        assert!(ledger.to_string().ends_with("DOES NOT BALANCE"));
    }

    #[test]
    fn the_table_shows_only_causes_that_took_samples() {
        let mut ledger = Ledger { expected: 7, ..Ledger::default() };
        ledger.lose(Cause::DeviceOverrun, 7);
        let table = ledger.to_string();
        let lines: Vec<Vec<_>> = table.lines().map(|l| l.split_whitespace().collect()).collect();
        assert_eq!(lines, [["expected", "7"], ["delivered", "0"], ["device_overrun", "7"]]);
    }
}
