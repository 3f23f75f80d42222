//! The result of a run of a graph, and the ledgers in it.

use crate::output::Join;
use millstream_flow::{BlockStats, Plan, Profile, Snapshot};
use millstream_radio::{Cause, Ledger};
use std::collections::BTreeMap;
use std::fmt::Display;

crate::results! {
    /// The result of a run.
    pub struct GraphReport {
        /// Whether the user ended it early.
        interrupted: bool,
        /// Wall-clock time, seconds.
        elapsed_s: f64,
        /// CPU time of the whole process, seconds.
        cpu_s: f64,
        /// The plan at its end.
        plan: Plan,
        /// The costs of its blocks and connections over the whole run.
        profile: Profile,
        /// The last counters.
        #[serde(flatten)]
        snapshot: Snapshot,
    }

    /// The ledger of one stream, read from the counters of its source block.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct LedgerReport {
        /// Expected samples.
        expected: u64,
        /// Delivered samples.
        delivered: u64,
        /// Samples lost, by cause.
        lost: BTreeMap<&'static str, u64>,
        /// Samples that arrived after the end: neither expected nor lost.
        after_end: u64,
        /// expected = delivered + lost.
        balances: bool,
    }
}

/// The causes of losses, and how many samples each lost.
pub fn causes(lost: impl Iterator<Item = (impl Display, u64)>) -> String {
    let causes = lost.filter(|loss| loss.1 > 0).map(|(cause, lost)| format!("{cause} {lost}"));
    let causes = causes.join(", ");
    if causes.is_empty() { "no loss".to_owned() } else { causes }
}

/// Whether a ledger balances, in words.
pub fn verdict(balances: bool) -> &'static str {
    if balances { "balances" } else { "DOES NOT BALANCE" }
}

impl From<&Ledger> for LedgerReport {
    fn from(ledger: &Ledger) -> Self {
        Self {
            expected: ledger.expected,
            delivered: ledger.delivered,
            lost: ledger.losses().map(|(cause, lost)| (cause.name(), lost)).collect(),
            after_end: ledger.after_end,
            balances: ledger.balance().is_ok(),
        }
    }
}

impl LedgerReport {
    /// The ledger of `block`; `None` when it is not a radio source.
    pub fn of(block: &BlockStats) -> Option<Self> {
        let count = |name: &str| block.metric(name).map(|value| value as u64);
        let (expected, delivered) = (count("expected")?, count("delivered")?);
        let lost: BTreeMap<_, _> = Cause::ALL
            .iter()
            .map(|cause| (cause.name(), count(cause.name()).unwrap_or(0)))
            .collect();
        let after_end = count("after_end").unwrap_or(0);
        let balances = expected == delivered + lost.values().sum::<u64>();
        Some(Self { expected, delivered, lost, after_end, balances })
    }

    /// Samples lost by any cause.
    pub fn lost_total(&self) -> u64 {
        self.lost.values().sum()
    }

    /// The message when it does not balance.
    pub fn defect(&self) -> String {
        let Self { expected, delivered, .. } = self;
        format!(
            "the sample ledger does not balance: {expected} expected, {delivered} delivered, \
             {} lost; this is a defect, please report it",
            self.lost_total()
        )
    }

    /// A summary in one line.
    pub fn summary(&self) -> String {
        let causes = causes(self.lost.iter().map(|(cause, lost)| (*cause, *lost)));
        let verdict = verdict(self.balances);
        let after_end = match self.after_end {
            0 => String::new(),
            samples => format!("; {samples} arrived after the end, not counted"),
        };
        format!(
            "{} samples expected = {} delivered + {} lost ({causes}): {verdict}{after_end}",
            self.expected,
            self.delivered,
            self.lost_total()
        )
    }
}
