//! What differs within a start and between starts, and how well their common figure is known.
//!
//! Figures are logarithms here: latencies spread by factors, so that equal shares weigh alike.

use serde::Serialize;

/// Two-sided 95 % quantiles of Student's t, for 1 to 30 degrees of freedom.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// Spread of a figure, as relative standard deviations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// From sample to sample of one start; unknown with a sample each.
    pub within: Option<f64>,
    /// From start to start, beyond what samples explain; unknown with one start.
    pub between: Option<f64>,
}

impl Spread {
    /// One-way analysis of variance with random effects (Searle, Casella, McCulloch, *Variance
    /// Components*, 1992, chapter 3): `starts` holds the samples of each start, all above 0.
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

/// How well the figure of several starts is known.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Precision {
    /// Geometric mean of the starts' own.
    pub figure: f64,
    /// Half of its 95 % interval as a share of it; infinite with one start.
    pub half_width: f64,
}

impl Precision {
    /// Of the starts' figures, by Student's t over starts: samples of a start are no independent
    /// evidence. None without any.
    #[must_use]
    pub fn of(figures: &[f64]) -> Option<Self> {
        let logs: Vec<f64> = figures.iter().map(|value| value.max(1.0).ln()).collect();
        let n = logs.len();
        let mean = logs.iter().sum::<f64>() / n as f64;
        let figure = (n > 0).then(|| mean.exp())?;
        if n == 1 {
            return Some(Self { figure, half_width: f64::INFINITY });
        }
        let variance = logs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
        let t = T.get(n - 2).copied().unwrap_or(1.96);
        let half_width = (t * (variance / n as f64).sqrt()).exp() - 1.0;
        Some(Self { figure, half_width })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_dsp::noise::Noise;

    /// Starts whose figures vary by these relative standard deviations.
    fn starts(between: f64, within: f64, seed: u64) -> Vec<Vec<f64>> {
        let mut noise = Noise::new(seed);
        let start = |_| {
            let level = 1e4f64.ln() + between * f64::from(noise.gaussian());
            let sample = |_| (level + within * f64::from(noise.gaussian())).exp();
            (0..5).map(sample).collect()
        };
        (0..400).map(start).collect()
    }

    #[test]
    fn spreads_within_and_between_starts_are_told_apart() {
        for (between, within) in [(0.2, 0.05), (0.05, 0.2), (0.0, 0.1)] {
            let spread = Spread::of(&starts(between, within, 3));
            let (found_between, found_within) = (spread.between.unwrap(), spread.within.unwrap());
            assert!((found_within / within - 1.0).abs() < 0.1, "{spread:?}");
            assert!((found_between - between).abs() < 0.025, "{spread:?}");
        }
        let lonely = Spread::of(&[vec![5.0]]);
        assert_eq!((lonely.within, lonely.between), (None, None));
    }

    #[test]
    fn the_interval_holds_the_truth_as_often_as_it_says() {
        let mut noise = Noise::new(11);
        let mut held = 0;
        for _ in 0..1000 {
            let mut figure = |_| (1e4f64.ln() + 0.2 * f64::from(noise.gaussian())).exp();
            let figures: Vec<f64> = (0..5).map(&mut figure).collect();
            let found = Precision::of(&figures).unwrap();
            held += u32::from((found.figure / 1e4).ln().abs() <= (1.0 + found.half_width).ln());
        }
        assert!((930..=970).contains(&held), "{held} of 1000 intervals of 95 %");
        assert!(Precision::of(&[7.0]).unwrap().half_width.is_infinite());
        assert_eq!(Precision::of(&[]), None);
    }
}
