//! Whether a stored plan still describes what is seen.
//!
//! What is compared is the time spent in blocks for each item of the sources. It does not depend
//! on how fast items come, so that a radio's graph can be judged as well as one that runs as fast
//! as it can. Sinks whose files a tuner leaves out are left out here too.

use super::store::StoredPlan;
use millstream_flow::runtime::Snapshot;

/// A change below this is not worth an advice, as a ratio: the same machine on another day.
const TOLERANCE_MIN: f64 = 1.25;
/// Of a lasting change, so many standard deviations of a single measurement are beyond chance.
const DEVIATIONS: f64 = 4.0;
/// A run is compared from this share of the items that were measured: less is mostly start.
const ITEMS_SHARE: f64 = 0.5;

/// The cost of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Items that sources gave.
    pub items: u64,
    /// Time in blocks for each, nanoseconds.
    pub ns_per_item: f64,
}

impl Cost {
    /// The cost by counters, blocks of the names `without` left out; `None` if no item passed.
    #[must_use]
    pub fn of(snapshot: &Snapshot, without: &[String]) -> Option<Self> {
        let items = source_items(snapshot);
        let counted = snapshot.blocks.iter().filter(|block| !without.contains(&block.name));
        let busy_ns: u64 = counted.map(|block| block.busy_ns).sum();
        (items > 0).then(|| Self { items, ns_per_item: busy_ns as f64 / items as f64 })
    }
}

/// Items that came out of blocks without input.
#[must_use]
pub fn source_items(snapshot: &Snapshot) -> u64 {
    let sources = snapshot.blocks.iter().filter(|block| block.items_in == 0);
    sources.map(|block| block.items_out).sum()
}

/// Items that went into blocks without output.
#[must_use]
pub(super) fn sink_items(snapshot: &Snapshot) -> u64 {
    let sinks = snapshot.blocks.iter().filter(|block| block.items_out == 0);
    sinks.map(|block| block.items_in).sum()
}

/// A change beyond tolerance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// Cost now over cost then.
    pub ratio: f64,
    /// What was tolerated, as a ratio above 1.
    pub tolerance: f64,
}

/// Compares a run with what was stored; `None` when it is as it was, or too short to tell.
#[must_use]
pub fn judge(record: &StoredPlan, now: Cost) -> Option<Drift> {
    let is_long_enough = now.items as f64 >= record.items as f64 * ITEMS_SHARE;
    let ratio = now.ns_per_item / record.ns_per_item;
    let tolerance = (DEVIATIONS * record.ns_per_item_spread).exp().max(TOLERANCE_MIN);
    let is_beyond = ratio > tolerance || ratio < tolerance.recip();
    // Nonsense in an edited file compares as nothing.
    let makes_sense = ratio.is_finite() && ratio > 0.0 && tolerance.is_finite();
    (makes_sense && is_long_enough && is_beyond).then_some(Drift { ratio, tolerance })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::tune::store::tests::record;

    /// How many of 1000 runs are called drifted on a machine with so much noise, which has become
    /// so much slower.
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
