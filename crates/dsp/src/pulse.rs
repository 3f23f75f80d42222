//! Pulse shapes.

use crate::window::kaiser;
use std::f64::consts::{FRAC_PI_4, PI, SQRT_2};

/// Returns the impulse response of the root-raised-cosine filter at `t` symbols, for unit symbol
/// rate and unit energy.
#[must_use]
pub fn root_raised_cosine(t: f64, alpha: f64) -> f64 {
    if t.abs() < 1e-9 {
        return 1.0 - alpha + 4.0 * alpha / PI;
    }
    let four_at = 4.0 * alpha * t;
    if (four_at.abs() - 1.0).abs() < 1e-9 {
        let (sin, cos) = (FRAC_PI_4 / alpha).sin_cos();
        return alpha / SQRT_2 * ((1.0 + 2.0 / PI) * sin + (1.0 - 2.0 / PI) * cos);
    }
    let num = (PI * t * (1.0 - alpha)).sin() + four_at * (PI * t * (1.0 + alpha)).cos();
    num / (PI * t * (1.0 - four_at * four_at))
}

/// Returns [`root_raised_cosine`] cut at `half_span` symbols on either side by a Kaiser window.
#[must_use]
pub fn windowed_rrc(t: f64, alpha: f64, half_span: f64, beta: f64) -> f64 {
    if t.abs() >= half_span {
        return 0.0;
    }
    root_raised_cosine(t, alpha) * kaiser(t / half_span, beta)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALPHA: f64 = 0.1152;

    #[test]
    fn special_points_join_smoothly() {
        for special in [0.0, 1.0 / (4.0 * ALPHA), -1.0 / (4.0 * ALPHA)] {
            let at = root_raised_cosine(special, ALPHA);
            let beside = root_raised_cosine(special + 1e-6, ALPHA);
            assert!((at - beside).abs() < 1e-5, "{special}: {at} {beside}");
        }
    }

    #[test]
    fn matched_pair_has_no_intersymbol_interference() {
        // The autocorrelation of the pulse is zero at every non-zero whole symbol.
        let per_symbol = 16;
        let span = 400;
        let h: Vec<f64> = (-span * per_symbol..=span * per_symbol)
            .map(|n| root_raised_cosine(f64::from(n) / f64::from(per_symbol), ALPHA))
            .collect();
        let at = |lag: usize| -> f64 {
            h.iter().zip(&h[lag * per_symbol as usize..]).map(|(a, b)| a * b).sum()
        };
        let energy = at(0);
        assert!((energy / f64::from(per_symbol) - 1.0).abs() < 1e-3);
        for lag in 1..20 {
            assert!((at(lag) / energy).abs() < 1e-4, "lag {lag}");
        }
    }
}
