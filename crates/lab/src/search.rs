//! The highest rate that holds, found by bisection.

use serde::Serialize;

/// The rates of a search: `step_hz`, twice that, and so on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Grid {
    /// The step between rates, and the lowest rate, Hz.
    pub step_hz: f64,
    /// The upper limit of rates, Hz.
    pub max_hz: f64,
}

impl Grid {
    /// Returns the highest rate of the grid at which `holds` returns true, given that it does so at
    /// all lower ones and at no higher one; `None` when it does not at the lowest.
    ///
    /// Calls `holds` about log₂ of the number of rates times.
    ///
    /// # Errors
    /// The first error of `holds`.
    pub fn highest<E>(
        &self,
        mut holds: impl FnMut(f64) -> Result<bool, E>,
    ) -> Result<Option<f64>, E> {
        let rate = |index: u64| index as f64 * self.step_hz;
        // A quotient slightly below a whole number is that number.
        let count = (self.max_hz / self.step_hz * (1.0 + 4.0 * f64::EPSILON)).floor() as u64;
        let (mut low, mut high) = (0, count + 1);
        while high - low > 1 {
            let middle = low.midpoint(high);
            if holds(rate(middle))? { low = middle } else { high = middle }
        }
        Ok((low > 0).then(|| rate(low)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_on_the_grid_is_found_with_few_questions() {
        let grid = Grid { step_hz: 5e6, max_hz: 250e6 };
        for limit in 0..=50 {
            let mut asked = 0;
            let found = grid.highest(|rate_hz| {
                asked += 1;
                Ok::<_, ()>(rate_hz <= f64::from(limit) * 5e6)
            });
            let expected = (limit > 0).then_some(f64::from(limit) * 5e6);
            assert_eq!(found, Ok(expected));
            assert!(asked <= 6, "{asked}");
        }
    }

    #[test]
    fn an_error_ends_the_search() {
        let grid = Grid { step_hz: 0.1, max_hz: 0.3 };
        assert_eq!(grid.highest(|_| Err("gone")), Err("gone"));
        assert_eq!(grid.highest(|_| Ok::<_, ()>(true)).unwrap(), Some(3.0 * 0.1));
    }
}
