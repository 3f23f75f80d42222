//! Checks whether a stored plan still fits the measurements.
//!
//! It compares the time spent in blocks for each item of the sources. This does not depend on the
//! rate of items, so it works for a radio's graph as well as for one at full speed. Sinks that a
//! rehearsal replaces are left out here too.

use super::store::StoredPlan;
use millstream_flow::runtime::Snapshot;

/// The least change that is reported, as a ratio: below it the machine may just have another day.
const TOLERANCE_MIN: f64 = 1.25;
/// The number of standard deviations of a single measurement beyond which a lasting change is not
/// chance.
const DEVIATIONS: f64 = 4.0;
/// The least share of the measured items for a comparison: a shorter run is mostly start-up.
const ITEMS_SHARE: f64 = 0.5;

/// The cost of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Items that the sources produced.
    pub items: u64,
    /// Time in blocks for each item, nanoseconds.
    pub ns_per_item: f64,
}

impl Cost {
    /// Returns the cost by counters, without the blocks named in `without`; `None` if no item
    /// passed.
    #[must_use]
    pub fn of(snapshot: &Snapshot, without: &[String]) -> Option<Self> {
        let items = source_items(snapshot);
        let counted = snapshot.blocks.iter().filter(|block| !without.contains(&block.name));
        let busy_ns: u64 = counted.map(|block| block.busy_ns).sum();
        (items > 0).then(|| Self { items, ns_per_item: busy_ns as f64 / items as f64 })
    }
}

/// Returns the items that came out of blocks without input.
#[must_use]
pub fn source_items(snapshot: &Snapshot) -> u64 {
    let sources = snapshot.blocks.iter().filter(|block| block.items_in == 0);
    sources.map(|block| block.items_out).sum()
}

/// Returns the items that went into blocks without output.
#[must_use]
pub(super) fn sink_items(snapshot: &Snapshot) -> u64 {
    let sinks = snapshot.blocks.iter().filter(|block| block.items_out == 0);
    sinks.map(|block| block.items_in).sum()
}

/// A change beyond tolerance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// Present cost over stored cost.
    pub ratio: f64,
    /// The tolerance, as a ratio above 1.
    pub tolerance: f64,
}

/// Compares a run with the stored one; `None` when it is unchanged, or too short.
#[must_use]
pub fn judge(record: &StoredPlan, now: Cost) -> Option<Drift> {
    let is_long_enough = now.items as f64 >= record.items as f64 * ITEMS_SHARE;
    let ratio = now.ns_per_item / record.ns_per_item;
    let tolerance = (DEVIATIONS * record.ns_per_item_spread).exp().max(TOLERANCE_MIN);
    let is_beyond = ratio > tolerance || ratio < tolerance.recip();
    // Invalid values in an edited file give no comparison.
    let makes_sense = ratio.is_finite() && ratio > 0.0 && tolerance.is_finite();
    (makes_sense && is_long_enough && is_beyond).then_some(Drift { ratio, tolerance })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::store::tests::record;
    use millstream_stats::Random;

    /// Returns how many of 1000 runs are reported as drifted on a machine with this noise and this
    /// slowdown.
    fn alarms(noise: f64, change: f64) -> usize {
        let mut random = Random::new(11);
        let record = super::StoredPlan { ns_per_item_spread: noise, ..record() };
        let runs = (0..1000).filter(|_| {
            let ns_per_item = record.ns_per_item * change * (noise * random.normal()).exp();
            judge(&record, Cost { items: record.items, ns_per_item }).is_some()
        });
        runs.count()
    }

    #[test]
    fn noise_is_no_drift_and_drift_is_no_noise() {
        for noise in [0.01, 0.05, 0.1] {
            assert!(alarms(noise, 1.0) <= 1, "{noise}");
        }
        assert_eq!(alarms(0.01, 1.15), 0, "below what is worth an advice");
        assert!(alarms(0.01, 1.4) == 1000 && alarms(0.01, 0.7) == 1000);
        assert!(alarms(0.05, 1.5) >= 990);
        assert!(alarms(0.1, 2.5) >= 990, "a noisy machine takes a larger change");
    }

    #[test]
    fn a_short_run_or_an_edited_figure_is_not_judged() {
        let cost = |items| Cost { items, ns_per_item: 1600.0 };
        assert!(judge(&record(), cost(record().items / 2)).is_some());
        assert_eq!(judge(&record(), cost(record().items / 2 - 1)), None);
        for ns_per_item in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let record = super::StoredPlan { ns_per_item, ..record() };
            assert_eq!(judge(&record, cost(u64::MAX)), None);
        }
    }
}
