//! The results of a case of an experiment, round by round.

use millstream_stats::Summary;
use serde::Serialize;

/// What the rounds of an experiment gave for one case.
#[derive(Debug, Clone, Serialize)]
pub struct CaseRuns<O> {
    /// Round and outcome.
    pub runs: Vec<(usize, O)>,
    /// The reason why the case could not be measured (any more).
    pub refused: Option<String>,
}

impl<O> Default for CaseRuns<O> {
    fn default() -> Self {
        Self { runs: Vec::new(), refused: None }
    }
}

impl<O> CaseRuns<O> {
    /// The outcomes, in the order of time.
    pub fn outcomes(&self) -> impl DoubleEndedIterator<Item = &O> {
        self.runs.iter().map(|(_, outcome)| outcome)
    }

    /// Summarises a figure of the outcomes that have it.
    pub fn summary(&self, figure: impl Fn(&O) -> Option<f64>) -> Option<Summary> {
        Summary::of(&self.outcomes().filter_map(figure).collect::<Vec<_>>())
    }

    /// Returns the median of a figure of the outcomes that have it.
    pub fn median(&self, figure: impl Fn(&O) -> Option<f64>) -> Option<f64> {
        self.summary(figure).map(|summary| summary.median)
    }

    /// Returns the ratios of a figure to that of the base in the same round.
    pub fn ratios<B>(
        &self,
        base: &CaseRuns<B>,
        own: impl Fn(&O) -> f64,
        other: impl Fn(&B) -> f64,
    ) -> Option<Summary> {
        let ratio = |(round, outcome): &(usize, O)| {
            let (_, base) = base.runs.iter().find(|(other, _)| other == round)?;
            let base = other(base);
            (base > 0.0).then(|| own(outcome) / base)
        };
        Summary::of(&self.runs.iter().filter_map(ratio).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_taken_within_a_round() {
        let case = |figures: &[(usize, f64)]| CaseRuns { runs: figures.into(), refused: None };
        let base = case(&[(0, 100.0), (1, 10.0), (2, 50.0), (4, 0.0)]);
        let other = case(&[(0, 200.0), (1, 30.0), (2, 50.0), (3, 1e9), (4, 7.0)]);
        let ratio = other.ratios(&base, |own| *own, |base| *base).unwrap();
        assert_eq!((ratio.min, ratio.median, ratio.max, ratio.count), (1.0, 2.0, 3.0, 3));
        assert_eq!(other.median(|own| (*own < 100.0).then_some(*own)), Some(30.0));
        let nothing = CaseRuns::<f64>::default();
        assert_eq!(nothing.ratios(&base, |own| *own, |base| *base), None);
    }
}
