//! Latencies that a run measures by itself, as a histogram.

use crate::documents::LatencyStatus;

/// Four classes from a power of two to the next, of nanoseconds.
type Classes = millstream_cpu::Classes<2>;

/// The largest values of the first and the last class, nanoseconds: 1 µs and 8.6 s.
const ENDS: (u64, u64) = ((1 << 10) - 1, (1 << 33) - 1);

/// A histogram of latencies. Its run records them; [`status`](Self::status) is what the dashboard
/// shows.
#[derive(Clone, Debug)]
pub struct ShownLatency {
    name: &'static str,
    stream: String,
    about: &'static str,
    counts: Vec<u64>,
    sum_s: f64,
    max_ns: u64,
}

impl ShownLatency {
    /// Makes an empty one. Its name is part of the name in `/metrics`, and `about` says in a few
    /// words what the latency is.
    #[must_use]
    pub fn new(name: &'static str, stream: &str, about: &'static str) -> Self {
        let classes = Classes::of(ENDS.1) - Classes::of(ENDS.0) + 1;
        let counts = vec![0; classes + 1];
        Self { name, stream: stream.to_owned(), about, counts, sum_s: 0.0, max_ns: 0 }
    }

    /// Counts a latency, nanoseconds.
    pub fn record(&mut self, latency_ns: u64) {
        let class = Classes::of(latency_ns).saturating_sub(Classes::of(ENDS.0));
        let last = self.counts.len() - 1;
        self.counts[class.min(last)] += 1;
        self.sum_s += latency_ns as f64 / 1e9;
        self.max_ns = self.max_ns.max(latency_ns);
    }

    /// Returns the values so far.
    #[must_use]
    pub fn status(&self) -> LatencyStatus {
        let first = Classes::of(ENDS.0);
        let bounds = (first..first + self.counts.len() - 1).map(Classes::last);
        LatencyStatus {
            name: self.name,
            stream: self.stream.clone(),
            about: self.about,
            unit: "s",
            count: self.counts.iter().sum(),
            max: self.max_ns as f64 / 1e9,
            sum: self.sum_s,
            bounds: bounds.map(|bound| bound as f64 / 1e9).collect(),
            counts: self.counts.clone(),
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
