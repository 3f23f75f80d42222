//! The interval of a ratio, by resampling.

use millstream_dsp::noise::Noise;
use serde::Serialize;

use super::middle;

/// Resamplings.
const TIMES: usize = 2000;

/// An estimate with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// The estimate.
    pub estimate: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// The ratio of two figures: starts, each with its samples, of the base and of the other. A figure
/// is the median over starts of the median over samples. Starts are drawn anew with replacement,
/// and so are the samples of each (Davison, Hinkley, *Bootstrap Methods and their Application*,
/// 1997, section 3.8); the interval is that of percentiles.
#[must_use]
pub fn ratio(base: &[Vec<f64>], other: &[Vec<f64>], seed: u64) -> Interval {
    let mut random = Noise::new(seed);
    let mut ratios: Vec<f64> = (0..TIMES)
        .map(|_| resampled(other, &mut random) / resampled(base, &mut random).max(1.0))
        .collect();
    ratios.sort_by(f64::total_cmp);
    let at = |share: f64| ratios[(share * (TIMES - 1) as f64).round() as usize];
    let level =
        |starts: &[Vec<f64>]| middle(&starts.iter().map(|start| middle(start)).collect::<Vec<_>>());
    let estimate = level(other) / level(base).max(1.0);
    Interval { estimate, low: at(0.025).min(estimate), high: at(0.975).max(estimate) }
}

fn resampled(starts: &[Vec<f64>], random: &mut Noise) -> f64 {
    let figures: Vec<f64> = (0..starts.len())
        .map(|_| {
            let start = &starts[draw(random, starts.len())];
            let samples: Vec<f64> =
                (0..start.len()).map(|_| start[draw(random, start.len())]).collect();
            middle(&samples)
        })
        .collect();
    middle(&figures)
}

fn draw(random: &mut Noise, below: usize) -> usize {
    (random.bits() % below as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_holds_the_true_ratio_about_as_often_as_it_says() {
        let mut noise = Noise::new(5);
        let mut held = 0;
        for seed in 0..200 {
            let mut starts = |base: f64| -> Vec<Vec<f64>> {
                let start = |_| {
                    let level = base * f64::from(0.1 * noise.gaussian()).exp();
                    (0..3).map(|_| level * f64::from(0.1 * noise.gaussian()).exp()).collect()
                };
                (0..6).map(start).collect()
            };
            let (base, other) = (starts(1e4), starts(1.5e4));
            let interval = ratio(&base, &other, seed);
            held += u32::from(interval.low <= 1.5 && 1.5 <= interval.high);
        }
        // Percentile intervals of six starts are somewhat too narrow.
        assert!((170..=199).contains(&held), "{held} of 200 intervals");
    }

    #[test]
    fn one_wild_start_does_not_move_the_ratio() {
        let mut other = vec![vec![100.0]; 6];
        other[5] = vec![1000.0];
        assert_eq!(ratio(&vec![vec![100.0]; 6], &other, 1).estimate, 1.0);
    }
}
