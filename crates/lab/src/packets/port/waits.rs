//! The waits of probes for other frames, and the round trips that follow.

use millstream_stats::Histogram;

/// Waits of the delayed probes; the others do not wait.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Waits(pub(super) Vec<WaitShare>);

/// A share of all probes, with uniform waits between two lengths, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct WaitShare {
    pub share: f64,
    pub from_ns: f64,
    pub to_ns: f64,
}

impl Waits {
    /// The share of probes whose wait is at most `wait_ns`.
    fn at_most(&self, wait_ns: f64) -> f64 {
        if wait_ns < 0.0 {
            return 0.0;
        }
        let longer = |part: &WaitShare| match part.to_ns - part.from_ns {
            width_ns if width_ns > 0.0 => {
                part.share * ((part.to_ns - wait_ns) / width_ns).clamp(0.0, 1.0)
            }
            _ => 0.0,
        };
        1.0 - self.0.iter().map(longer).sum::<f64>()
    }

    /// The longest, nanoseconds.
    #[must_use]
    pub fn longest_ns(&self) -> f64 {
        self.0.iter().map(|part| part.to_ns).fold(0.0, f64::max)
    }

    /// The wait that a share `quantile` of the probes does not exceed, nanoseconds.
    #[must_use]
    pub fn quantile_ns(&self, quantile: f64) -> f64 {
        // Quantiles of the wait alone: the base takes no time.
        self.quantile_over(&[(0, 1)], quantile)
    }

    /// The round trip that a share `quantile` of the probes does not exceed, nanoseconds, where
    /// undelayed probes are as in `base`, of which the `lost` longest never came back, and waits
    /// are independent of that. Quantiles do not add; distributions are convolved.
    #[must_use]
    pub fn trip_ns(&self, base: &Histogram, lost: u64, quantile: f64) -> Option<f64> {
        let mut left = base.count().saturating_sub(lost);
        let came = base.classes().map(|(ns, count)| {
            let came = count.min(left);
            left -= came;
            (ns, came)
        });
        let came: Vec<_> = came.filter(|(_, count)| *count > 0).collect();
        (!came.is_empty()).then(|| self.quantile_over(&came, quantile))
    }

    fn quantile_over(&self, base: &[(u64, u64)], quantile: f64) -> f64 {
        let all = base.iter().map(|(_, count)| count).sum::<u64>() as f64;
        let at_most = |trip_ns: f64| {
            let of = |(ns, count): &(u64, u64)| *count as f64 * self.at_most(trip_ns - *ns as f64);
            base.iter().map(of).sum::<f64>() / all
        };
        let last_ns = base.last().map_or(0.0, |(ns, _)| *ns as f64);
        let (mut low_ns, mut high_ns) = (-1.0, last_ns + self.longest_ns());
        while high_ns - low_ns > 1.0 {
            let middle_ns = f64::midpoint(low_ns, high_ns);
            // With a small tolerance, because sums of shares are not exact.
            if at_most(middle_ns) < quantile - 1e-9 {
                low_ns = middle_ns;
            } else {
                high_ns = middle_ns;
            }
        }
        high_ns.max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_dsp::noise::Noise;

    #[test]
    fn trips_are_those_of_random_probes_with_random_waits() {
        let waits = Waits(vec![
            WaitShare { share: 0.5, from_ns: 0.0, to_ns: 1e6 },
            WaitShare { share: 0.2, from_ns: 2e6, to_ns: 3e6 },
        ]);
        let mut noise = Noise::new(3);
        let mut random = || noise.bits() as f64 / u64::MAX as f64;
        let (mut base, mut trips) = (Histogram::default(), Vec::new());
        for _ in 0..50_000 {
            // One of a hundred is an outlier of the machine.
            let own_ns = 1e5 * (1.0 + random()) + if random() < 0.01 { 2e6 } else { 0.0 };
            let (which, within) = (random(), random());
            let wait_ns = match which {
                _ if which < 0.5 => within * 1e6,
                _ if which < 0.7 => 2e6 + within * 1e6,
                _ => 0.0,
            };
            base.record(own_ns as u64);
            trips.push(own_ns + wait_ns);
        }
        trips.sort_by(f64::total_cmp);
        base.record_many(200_000_000, 500);
        for quantile in [0.1, 0.5, 0.9, 0.99] {
            let seen = trips[(quantile * trips.len() as f64) as usize];
            let told = waits.trip_ns(&base, 500, quantile).unwrap();
            assert!((told - seen).abs() < 0.02 * seen + 5_000.0, "{quantile}: {seen} {told}");
        }
        assert_eq!(waits.trip_ns(&Histogram::default(), 0, 0.5), None);
        assert_eq!(waits.trip_ns(&base, base.count(), 0.5), None);
        let of_base = Waits::default().trip_ns(&base, 500, 0.5).unwrap();
        assert!((of_base - 150_000.0).abs() < 5_000.0, "{of_base}");
    }
}
