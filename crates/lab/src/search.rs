//! The highest rate and the smallest buffer that hold, found by bisection.

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

/// Doublings beyond the guess after which [`smallest`] gives up.
const DOUBLINGS_MAX: u32 = 10;

/// Returns the smallest number at which `holds` returns true, to `resolution` of itself (0.03 for
/// 3 %), given that it does so at all larger ones and at no smaller one; `None` when it does not at
/// 1024 times the guess. At least one trial fails at the number below, unless the number is 1.
///
/// # Errors
/// The first error of `holds`.
pub fn smallest<E>(
    guess: u64,
    resolution: f64,
    mut holds: impl FnMut(u64) -> Result<bool, E>,
) -> Result<Option<u64>, E> {
    let (mut low, mut high) = (0, guess.max(1));
    let mut doublings = 0;
    while !holds(high)? {
        if doublings == DOUBLINGS_MAX {
            return Ok(None);
        }
        (low, high, doublings) = (high, high * 2, doublings + 1);
    }
    while high - low > ((high as f64 * resolution) as u64).max(1) {
        let middle = low.midpoint(high);
        if holds(middle)? { high = middle } else { low = middle }
    }
    Ok(Some(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_that_holds_is_found_from_any_guess() {
        for limit in [1, 2, 37, 1000, 1001, 65_536] {
            for guess in [limit, limit * 3, limit / 2 + 1, limit / 100 + 1] {
                let found = smallest(guess, 0.0, |n| Ok::<_, ()>(n >= limit));
                assert_eq!(found, Ok(Some(limit)), "{guess}");
            }
            let mut asked = 0;
            let found = smallest(limit, 0.05, |n| {
                asked += 1;
                Ok::<_, ()>(n >= limit)
            });
            let found = found.unwrap().unwrap();
            assert!(found >= limit && (found - limit) as f64 <= 0.05 * found as f64, "{found}");
            assert!(asked <= 7, "{asked}");
        }
        assert_eq!(smallest(3, 0.1, |_| Ok::<_, ()>(false)), Ok(None));
        assert_eq!(smallest(3, 0.1, |_| Err("gone")), Err("gone"));
    }

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
