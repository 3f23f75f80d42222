//! The rounds after which a run checks whether its figures are known well enough.

use millstream_stats::STARTS_MIN;

/// Returns the round after which the run checks again: late enough that the widest interval, which
/// shrinks with the square root of the number of rounds, is narrow enough by then. `half_width` is
/// the present one, as a share of its figure; `None` while there are too few starts for one.
#[must_use]
pub fn next_look(rounds: u32, half_width: Option<f64>, precision: f64) -> u32 {
    let wanted = match half_width {
        Some(half) => (f64::from(rounds) * (half / precision).powi(2)).ceil() as u32,
        None => STARTS_MIN as u32,
    };
    wanted.max(rounds.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_as_wide_as_wanted_takes_four_times_the_rounds() {
        assert_eq!(next_look(6, Some(0.2), 0.1), 24);
        assert_eq!(next_look(6, Some(0.1001), 0.1), 7);
        assert_eq!(next_look(9, Some(0.05), 0.1), 10);
        assert_eq!((next_look(2, None, 0.1), next_look(8, None, 0.1)), (6, 9));
        assert_eq!(next_look(6, Some(f64::MAX), 1e-9), u32::MAX);
    }
}
