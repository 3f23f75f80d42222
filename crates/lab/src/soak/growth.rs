//! Whether memory grows: its slope over the rounds, with an interval.
//!
//! The first and the last value say little: an allocator keeps what a first round took, one unusual
//! round lifts a plateau for good, and neither is a leak. A leak goes on. So the rounds after a
//! warm-up are cut into blocks of equal length, and the slope is the median of the steps from the
//! median of one block to that of the next. Its interval comes from the order of the steps and
//! assumes no distribution. A single step is one of twelve, and moves neither.

use super::watch::Series;
use millstream_stats::median;

/// The share of the rounds that warm the process up: the first third.
const WARM_UP: usize = 3;
/// Blocks of the rest, and the steps between them.
const BLOCKS: usize = 13;
const STEPS: usize = BLOCKS - 1;
/// Fewest points of a block: its median is one that occurred.
const POINTS_MIN: usize = 3;
/// The interval reaches from the third lowest to the third highest step: it holds the median in
/// 1 - 2 (1 + 12 + 66) / 4096 = 96.1 % of all cases.
const OUTSIDE: usize = 2;
/// Growth below this over all blocks is not called growth, KiB: an allocator asks the kernel for
/// 132 KiB at once, for each of a few threads.
const LEAST_KIB: f64 = 512.0;

/// The confidence of the interval, percent.
pub const CONFIDENCE_PERCENT: f64 = 96.1;

/// The slope of a process's memory.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Growth {
    /// KiB per round.
    pub kib_per_round: f64,
    /// Its interval, KiB per round.
    pub interval: (f64, f64),
    /// Rounds from the middle of the first block to that of the last.
    pub rounds: f64,
}

impl Growth {
    /// Estimates it; `None` where the rounds are too few.
    #[must_use]
    pub fn of(series: &Series) -> Option<Self> {
        let warm = &series.points[series.points.len().div_ceil(WARM_UP)..];
        let warm: Vec<f64> = warm.iter().map(|kib| *kib as f64).collect();
        let block = warm.len() / BLOCKS;
        if block < POINTS_MIN {
            return None;
        }
        // The newest points count, the remainder goes to the warm-up.
        let medians: Vec<f64> =
            warm[warm.len() - block * BLOCKS..].chunks(block).map(median).collect();
        let rounds_per_step = block as f64 * series.every as f64;
        let mut steps: Vec<f64> =
            medians.windows(2).map(|pair| (pair[1] - pair[0]) / rounds_per_step).collect();
        steps.sort_by(f64::total_cmp);
        Some(Self {
            kib_per_round: median(&steps),
            interval: (steps[OUTSIDE], steps[STEPS - 1 - OUTSIDE]),
            rounds: rounds_per_step * STEPS as f64,
        })
    }

    /// Whether memory grew: the whole interval says so, and its lower end makes more than an
    /// allocator takes at once.
    #[must_use]
    pub fn is_growth(&self) -> bool {
        self.interval.0 > 0.0 && self.interval.0 * self.rounds >= LEAST_KIB
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_dsp::noise::Noise;

    const BASE: f64 = 30_000.0;

    fn of(count: usize, value: impl FnMut(usize) -> f64) -> Growth {
        let mut series = Series::default();
        (0..count).map(value).for_each(|value| series.push(value as u64));
        Growth::of(&series).unwrap()
    }

    #[test]
    fn a_leak_is_found_with_its_slope_whatever_the_noise() {
        for seed in 0..200 {
            let mut noise = Noise::new(seed);
            let grown = of(600, |n| BASE + 8.0 * n as f64 + 100.0 * f64::from(noise.gaussian()));
            assert!(grown.is_growth(), "seed {seed}: {grown:?}");
            assert!((grown.kib_per_round - 8.0).abs() < 2.0, "seed {seed}: {grown:?}");
        }
    }

    #[test]
    fn a_leak_of_a_page_now_and_then_is_found_in_a_long_run() {
        let grown = of(5000, |n| BASE + 4.0 * (n / 20) as f64);
        assert!(grown.is_growth(), "{grown:?}");
        assert!((grown.kib_per_round - 0.2).abs() < 0.02, "{grown:?}");
        assert!(!of(100, |n| BASE + 4.0 * (n / 20) as f64).is_growth(), "nobody can tell yet");
    }

    #[test]
    fn memory_without_a_leak_is_seldom_called_growing() {
        let found = (0..1000).filter(|&seed| {
            let mut noise = Noise::new(seed);
            of(300, |_| BASE + 3000.0 * f64::from(noise.gaussian())).is_growth()
        });
        // The interval's lower end is above 0 in 2 % of all cases.
        assert!(found.count() < 35);
    }

    #[test]
    fn a_warm_up_a_step_and_a_peak_are_no_leak() {
        let warm = of(300, |n| BASE * (1.0 - (-(n as f64) / 20.0).exp()));
        assert!(!warm.is_growth(), "{warm:?}");
        for at in (0..300).step_by(7) {
            let step = of(300, |n| if n < at { BASE } else { BASE + 5000.0 });
            assert!(!step.is_growth(), "a step at {at}: {step:?}");
            let peak = of(300, |n| if n == at { BASE * 3.0 } else { BASE });
            assert_eq!(peak.kib_per_round, 0.0);
        }
    }

    #[test]
    fn few_rounds_say_nothing() {
        let mut series = Series::default();
        (0..58).for_each(|n| series.push(n * 1000));
        assert_eq!(Growth::of(&series), None);
        series.push(58_000);
        let grown = Growth::of(&series).unwrap();
        assert!(grown.is_growth() && grown.kib_per_round == 1000.0, "{grown:?}");
    }
}
