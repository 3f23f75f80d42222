//! The variance within a start and between starts.
//!
//! Figures are logarithms here: latencies spread by factors, so equal shares have equal weight.

use serde::Serialize;

/// The spread of a figure, as relative standard deviations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct VarianceShares {
    /// From sample to sample of one start; unknown with one sample per start.
    pub within: Option<f64>,
    /// From start to start, beyond the spread of the samples; unknown with one start.
    pub between: Option<f64>,
}

impl VarianceShares {
    /// Returns the one-way analysis of variance with random effects (Searle, Casella, McCulloch,
    /// *Variance Components*, 1992, chapter 3): `starts` holds the samples of each start, all above
    /// 0.
    #[must_use]
    pub fn of(starts: &[Vec<f64>]) -> Self {
        let logs: Vec<Vec<f64>> = starts
            .iter()
            .filter(|start| !start.is_empty())
            .map(|start| start.iter().map(|value| value.max(1.0).ln()).collect())
            .collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let (a, n) = (logs.len() as f64, logs.iter().map(Vec::len).sum::<usize>() as f64);
        let grand = logs.iter().flatten().sum::<f64>() / n;
        let within_sum: f64 = logs
            .iter()
            .map(|start| start.iter().map(|x| (x - mean(start)).powi(2)).sum::<f64>())
            .sum();
        let between_sum: f64 =
            logs.iter().map(|start| start.len() as f64 * (mean(start) - grand).powi(2)).sum();
        let within = (n > a).then(|| within_sum / (n - a));
        let between = (a > 1.0).then(|| {
            let squares: f64 = logs.iter().map(|start| (start.len() as f64).powi(2)).sum();
            let size = (n - squares / n) / (a - 1.0);
            ((between_sum / (a - 1.0) - within.unwrap_or(0.0)) / size).max(0.0)
        });
        Self { within: within.map(f64::sqrt), between: between.map(f64::sqrt) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_stats::Random;

    /// Returns starts whose figures vary by these relative standard deviations.
    fn starts(between: f64, within: f64, seed: u64) -> Vec<Vec<f64>> {
        let mut noise = Random::new(seed);
        let start = |_| {
            let level = 1e4f64.ln() + between * noise.normal();
            let sample = |_| (level + within * noise.normal()).exp();
            (0..5).map(sample).collect()
        };
        (0..400).map(start).collect()
    }

    #[test]
    fn spreads_within_and_between_starts_are_told_apart() {
        for (between, within) in [(0.2, 0.05), (0.05, 0.2), (0.0, 0.1)] {
            let spread = VarianceShares::of(&starts(between, within, 3));
            let (found_between, found_within) = (spread.between.unwrap(), spread.within.unwrap());
            assert!((found_within / within - 1.0).abs() < 0.1, "{spread:?}");
            assert!((found_between - between).abs() < 0.025, "{spread:?}");
        }
        let lonely = VarianceShares::of(&[vec![5.0]]);
        assert_eq!((lonely.within, lonely.between), (None, None));
    }
}
