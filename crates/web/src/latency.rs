//! Latencies that a run measures by itself, as a histogram.

use crate::documents::LatencyStatus;
use millstream_stats::SharedHistogram;

/// The largest values of the first and the last class that is shown, nanoseconds: 1 µs and 8.6 s.
const ENDS: (u64, u64) = ((1 << 10) - 1, (1 << 33) - 1);

/// Latencies with four classes from a power of two to the next. Its run records them;
/// [`status`](Self::status) is what the dashboard shows.
#[derive(Debug)]
pub struct ShownLatency {
    name: &'static str,
    stream: String,
    about: &'static str,
    histogram: SharedHistogram<2>,
}

impl ShownLatency {
    /// Makes an empty one. Its name is part of the name in `/metrics`, and `about` says in a few
    /// words what the latency is.
    #[must_use]
    pub fn new(name: &'static str, stream: &str, about: &'static str) -> Self {
        Self { name, stream: stream.to_owned(), about, histogram: SharedHistogram::default() }
    }

    /// Counts a latency, nanoseconds.
    pub fn record(&mut self, latency_ns: u64) {
        self.histogram.record(latency_ns);
    }

    /// Returns the values so far.
    #[must_use]
    pub fn status(&self) -> LatencyStatus {
        LatencyStatus::of((self.name, &self.stream, self.about), &self.histogram)
    }
}

impl LatencyStatus {
    /// Shows a histogram of nanoseconds, by its name, stream and meaning.
    pub(crate) fn of<const BITS: u32>(
        (name, stream, about): (&'static str, &str, &'static str),
        histogram: &SharedHistogram<BITS>,
    ) -> Self {
        let (mut bounds, mut counts, mut rest) = (Vec::new(), Vec::new(), 0);
        for (last_ns, count) in histogram.counts() {
            rest += count;
            if (ENDS.0..=ENDS.1).contains(&last_ns) {
                bounds.push(last_ns as f64 / 1e9);
                counts.push(std::mem::take(&mut rest));
            }
        }
        counts.push(rest);
        Self {
            name,
            stream: stream.to_owned(),
            about,
            unit: "s",
            count: counts.iter().sum(),
            max: histogram.max() as f64 / 1e9,
            sum: histogram.sum() as f64 / 1e9,
            bounds,
            counts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_is_in_the_first_class_whose_bound_it_does_not_exceed() {
        let mut histogram = ShownLatency::new("turnaround", "radio", "x");
        let all = [0, 1023, 1024, 100_000, 1_000_000, (1 << 33) - 1, 1 << 33, u64::MAX];
        all.iter().for_each(|latency_ns| histogram.record(*latency_ns));
        let status = histogram.status();
        assert_eq!((status.count, status.counts.len()), (8, status.bounds.len() + 1));
        assert_eq!((status.counts[0], status.counts[1], status.counts.last()), (2, 1, Some(&2)));
        assert!(status.bounds.is_sorted_by(|one, next| one < next && *next < one * 1.3));
        for latency_ns in all {
            let within = status.bounds.iter().filter(|bound| latency_ns as f64 / 1e9 > **bound);
            assert!(status.counts[within.count()] > 0, "{latency_ns}");
        }
        assert!((status.max - u64::MAX as f64 / 1e9).abs() < 1.0);
    }
}
