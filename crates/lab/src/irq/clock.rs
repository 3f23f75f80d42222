//! The relation of two clocks by queries.
//!
//! The host reads its clock, sends a query, and reads its clock again when the answer is there: the
//! device read its clock in between. Of many queries the shortest bounds the error by half of its
//! duration; one such pair before and one after a measurement give offset and rate (Cristian,
//! *Distributed Computing* 3, 1989).

/// A query and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// The host's clock before the query, nanoseconds.
    pub asked_ns: u64,
    /// The device's clock, ticks.
    pub ticks: u64,
    /// The host's clock after the answer, nanoseconds.
    pub answered_ns: u64,
}

impl Exchange {
    fn length_ns(&self) -> u64 {
        self.answered_ns.saturating_sub(self.asked_ns)
    }

    fn middle_ns(&self) -> f64 {
        self.asked_ns as f64 + self.length_ns() as f64 / 2.0
    }
}

/// The relation of the clocks during a measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    first: Exchange,
    /// Host nanoseconds for a tick.
    pub ns_per_tick: f64,
    /// Error bound of a device time, nanoseconds.
    pub error_ns: f64,
}

impl Calibration {
    /// Relates the clocks by queries before and after; `None` without queries, or when the device's
    /// clock stood still.
    #[must_use]
    pub fn new(before: &[Exchange], after: &[Exchange]) -> Option<Self> {
        let quickest =
            |all: &[Exchange]| all.iter().min_by_key(|exchange| exchange.length_ns()).copied();
        let (first, last) = (quickest(before)?, quickest(after)?);
        let ticks = last.ticks.checked_sub(first.ticks).filter(|ticks| *ticks > 0)?;
        let ns_per_tick = (last.middle_ns() - first.middle_ns()) / ticks as f64;
        let length_ns = first.length_ns().max(last.length_ns());
        // The device's clock has a resolution of a tick.
        Some(Self { first, ns_per_tick, error_ns: length_ns as f64 / 2.0 + ns_per_tick })
    }

    /// Converts a device time between both to the host's time, nanoseconds.
    #[must_use]
    pub fn host_ns(&self, ticks: u64) -> i64 {
        let since = ticks.wrapping_sub(self.first.ticks) as i64 as f64 * self.ns_per_tick;
        // In parts, because a float cannot hold nanoseconds since boot with their fractions.
        let half = self.first.length_ns() as f64 / 2.0;
        self.first.asked_ns as i64 + (half + since).round() as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_dsp::noise::Noise;

    /// A device whose clock ticks every 10 ns, 40 ppm fast.
    fn ticks_at(ns: f64) -> u64 {
        ((ns + 5e12) * (1.0 + 40e-6) / 10.0) as u64
    }

    fn questions(start_ns: f64, noise: &mut Noise) -> Vec<Exchange> {
        let ask = |n| {
            let asked = start_ns + f64::from(n) * 50e3;
            // The two directions take different times.
            let there = 100.0 + f64::from(noise.unit()) * 900.0;
            let back = 100.0 + f64::from(noise.unit()) * 20e3;
            let ticks = ticks_at(asked + there);
            Exchange { asked_ns: asked as u64, ticks, answered_ns: (asked + there + back) as u64 }
        };
        (0..100).map(ask).collect()
    }

    #[test]
    fn every_time_between_is_known_to_the_stated_error() {
        for seed in 0..50 {
            let mut noise = Noise::new(seed);
            let (before, after) = (questions(1e9, &mut noise), questions(11e9, &mut noise));
            let calibration = Calibration::new(&before, &after).unwrap();
            assert!(calibration.error_ns < 1500.0, "{calibration:?}");
            for at_ns in [1e9, 3e9, 7.5e9, 11e9] {
                let found = calibration.host_ns(ticks_at(at_ns)) as f64;
                let error = (found - at_ns).abs();
                assert!(error <= calibration.error_ns + 1.0, "seed {seed}: {error}");
            }
        }
    }

    #[test]
    fn a_clock_that_stands_still_is_no_clock() {
        let exchange = Exchange { asked_ns: 1, ticks: 5, answered_ns: 2 };
        assert_eq!(Calibration::new(&[exchange], &[exchange]), None);
        assert_eq!(Calibration::new(&[], &[exchange]), None);
    }
}
