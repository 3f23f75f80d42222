//! The mean of some numbers, and how far from it the true one may be.

use std::f64::consts::FRAC_PI_2;

/// More degrees of freedom than that make no difference.
const FREEDOM_MAX: usize = 10_000;

/// The mean of some numbers, and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean; 0 without any number.
    pub mean: f64,
    /// Its standard error; `None` with fewer than two numbers.
    pub error: Option<f64>,
    /// How many numbers.
    pub count: usize,
}

impl Mean {
    /// Takes the mean of some numbers.
    #[must_use]
    pub fn of(numbers: &[f64]) -> Self {
        let count = numbers.len();
        let mean = numbers.iter().sum::<f64>() / count.max(1) as f64;
        let square = numbers.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>();
        let error = (count > 1).then(|| (square / (count - 1) as f64 / count as f64).sqrt());
        Self { mean, error, count }
    }

    /// Returns half the width of the interval that does not hold the true mean in a share `wrong`
    /// of cases, by Student's t-distribution; `None` with fewer than two numbers.
    #[must_use]
    pub fn half_width(&self, wrong: f64) -> Option<f64> {
        self.error.map(|error| error * student(self.count - 1, wrong))
    }
}

/// Returns the value that Student's t exceeds, to either side, in a share `wrong` of cases. With
/// t = √freedom · tan(angle), its density is proportional to a power of the cosine.
fn student(freedom: usize, wrong: f64) -> f64 {
    let freedom = freedom.min(FREEDOM_MAX) as f64;
    let beyond = |angle: f64| {
        // Simpson's rule.
        const STEPS: u32 = 2000;
        let step = (FRAC_PI_2 - angle) / f64::from(STEPS);
        let weight = |at| if at == 0 || at == STEPS { 1.0 } else { f64::from(2 + at % 2 * 2) };
        let density = |at| (angle + step * f64::from(at)).cos().max(0.0).powf(freedom - 1.0);
        (0..=STEPS).map(|at| weight(at) * density(at)).sum::<f64>() * step / 3.0
    };
    let all = beyond(0.0);
    let (mut low, mut high) = (0.0, FRAC_PI_2);
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        match beyond(middle) > wrong * all {
            true => low = middle,
            false => high = middle,
        }
    }
    freedom.sqrt() * low.tan()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, wrong, expected) in [
            (1, 0.05, 12.706),
            (4, 0.05, 2.776),
            (30, 0.05, 2.042),
            (40, 0.05, 2.021),
            (1_000_000, 0.05, 1.960),
            (1, 0.001, 636.619),
            (9, 0.001, 4.781),
        ] {
            let found = student(freedom, wrong);
            assert!((found - expected).abs() < 6e-4, "{freedom} {wrong}: {found}");
        }
    }

    #[test]
    fn an_interval_is_that_of_the_tables() {
        // Mean 3, standard deviation √2.5, five numbers.
        let half = |numbers: &[f64]| Mean::of(numbers).half_width(0.05);
        let five = half(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((five - 2.7764 * (2.5f64 / 5.0).sqrt()).abs() < 1e-4);
        assert_eq!((half(&[7.0]), half(&[])), (None, None));
        assert_eq!(half(&[2.0; 40]), Some(0.0));
    }
}
