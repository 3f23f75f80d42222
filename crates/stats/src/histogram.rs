//! Latencies as a distribution: classes of equal relative width, exact extremes, one increment per
//! value and no allocation after the first.

use serde::{Deserialize, Serialize};

/// The classes between a power of two and the next, as a power of two.
const BITS: u32 = 6;
type Classes = crate::Classes<BITS>;

/// The largest relative width of a class: a quantile is at most this share above the true value.
pub const RESOLUTION: f64 = 1.0 / (1 << BITS) as f64;

/// A distribution of latencies in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Histogram {
    classes: Box<[u64]>,
    count: u64,
    min_ns: u64,
    max_ns: u64,
}

/// The stored form of a histogram: the non-empty classes, by their upper edge.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Stored {
    min_ns: u64,
    max_ns: u64,
    /// The largest value of the class, nanoseconds; the number of values in it.
    classes_ns: Vec<(u64, u64)>,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { classes: vec![0; Classes::COUNT].into(), count: 0, min_ns: u64::MAX, max_ns: 0 }
    }
}

impl Histogram {
    /// Counts one latency.
    pub fn record(&mut self, value_ns: u64) {
        self.record_many(value_ns, 1);
    }

    /// Counts the same latency `times` times.
    pub fn record_many(&mut self, value_ns: u64, times: u64) {
        if times == 0 {
            return;
        }
        self.classes[Classes::of(value_ns)] += times;
        self.count += times;
        self.min_ns = self.min_ns.min(value_ns);
        self.max_ns = self.max_ns.max(value_ns);
    }

    /// Returns the number of counted latencies.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the smallest latency; 0 without any.
    pub fn min_ns(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min_ns }
    }

    /// Returns the largest latency; 0 without any.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Returns the latency that a share `quantile` (0 to 1) does not exceed: the upper edge of its
    /// class, but never beyond the largest counted latency. 0 without any.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        // A share such as 1 - 1e-6 is not exact in binary: slightly above a whole number counts as
        // that.
        let wanted = (self.count as f64 * quantile * (1.0 - 4.0 * f64::EPSILON)).ceil();
        let wanted = (wanted as u64).clamp(1, self.count.max(1));
        let mut below = 0;
        for (class, &count) in self.classes.iter().enumerate() {
            below += count;
            if below >= wanted {
                return Classes::last(class).clamp(self.min_ns, self.max_ns);
            }
        }
        self.max_ns
    }

    /// Returns the latency around which most values lie: the middle of the class with the most
    /// values for its width. 0 without any.
    pub fn mode_ns(&self) -> u64 {
        let density = |class: usize| self.classes[class] as f64 / width(class) as f64;
        let densest = (0..Classes::COUNT)
            .filter(|class| self.classes[*class] > 0)
            .max_by(|a, b| density(*a).total_cmp(&density(*b)));
        densest.map_or(0, |class| Classes::last(class) - width(class) / 2)
    }

    /// Adds another histogram's values.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.classes.iter_mut().zip(&other.classes) {
            *mine += theirs;
        }
        self.count += other.count;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Returns the non-empty classes, ascending: their largest value and number of values.
    pub fn classes(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let held = self.classes.iter().enumerate().filter(|(_, count)| **count > 0);
        held.map(|(class, &count)| (Classes::last(class), count))
    }
}

impl From<Stored> for Histogram {
    fn from(stored: Stored) -> Self {
        let mut histogram = Self::default();
        for (value_ns, times) in stored.classes_ns {
            let value_ns = value_ns.clamp(stored.min_ns, stored.max_ns.max(stored.min_ns));
            histogram.record_many(value_ns, times);
        }
        if histogram.count > 0 {
            histogram.min_ns = stored.min_ns.min(histogram.min_ns);
            histogram.max_ns = stored.max_ns.max(histogram.max_ns);
        }
        histogram
    }
}

impl From<Histogram> for Stored {
    fn from(histogram: Histogram) -> Self {
        let (min_ns, max_ns) = (histogram.min_ns(), histogram.max_ns());
        Self { min_ns, max_ns, classes_ns: histogram.classes().collect() }
    }
}

fn width(class: usize) -> u64 {
    class.checked_sub(1).map_or(1, |before| Classes::last(class) - Classes::last(before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_a_known_distribution() {
        let mut histogram = Histogram::default();
        assert_eq!((histogram.quantile_ns(0.5), histogram.max_ns(), histogram.min_ns()), (0, 0, 0));
        (1..=100).for_each(|value| histogram.record(value * 1000));
        for (quantile, exact) in [(0.0, 1000), (0.5, 50_000), (0.99, 99_000), (1.0, 100_000)] {
            let found = histogram.quantile_ns(quantile) as f64;
            let exact = f64::from(exact);
            assert!((exact..=exact * (1.0 + RESOLUTION)).contains(&found), "{quantile}: {found}");
        }
        assert_eq!((histogram.min_ns(), histogram.max_ns()), (1000, 100_000));
    }

    #[test]
    fn the_mode_is_where_values_are_densest() {
        assert_eq!(Histogram::default().mode_ns(), 0);
        let mut histogram = Histogram::default();
        // As many around 1 ms as at 8 us, but over more nanoseconds.
        (0..1000).for_each(|n| histogram.record(1_000_000 + n * 8));
        (0..1000).for_each(|n| histogram.record(8_000 + n % 50));
        let mode = histogram.mode_ns() as f64;
        assert!((mode / 8_025.0 - 1.0).abs() < RESOLUTION, "{mode}");
    }

    #[test]
    fn two_halves_make_the_whole() {
        let (mut all, mut even, mut odd) =
            (Histogram::default(), Histogram::default(), Histogram::default());
        for value in 0..10_000u64 {
            all.record(value * value);
            if value % 2 == 0 { even.record(value * value) } else { odd.record(value * value) }
        }
        even.merge(&odd);
        assert_eq!(even, all);
    }

    #[test]
    fn what_is_written_can_be_read_back() {
        let mut histogram = Histogram::default();
        for value in [3, 77, 1_000_003, 1_000_005, u64::MAX] {
            histogram.record(value);
        }
        let text = serde_json::to_string(&histogram).unwrap();
        assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), histogram);
        let empty = serde_json::to_string(&Histogram::default()).unwrap();
        assert_eq!(serde_json::from_str::<Histogram>(&empty).unwrap(), Histogram::default());
    }

    #[test]
    fn strange_text_makes_a_valid_histogram() {
        let text = r#"{"min_ns": 50, "max_ns": 10, "classes_ns": [[7, 2], [900, 0], [99, 1]]}"#;
        let histogram: Histogram = serde_json::from_str(text).unwrap();
        assert_eq!(histogram.count(), 3);
        assert_eq!(histogram.quantile_ns(1.0), 50);
    }
}
