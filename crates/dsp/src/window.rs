//! Window functions.

use std::f64::consts::PI;

/// The zeroth-order modified Bessel function of the first kind.
#[must_use]
pub fn bessel_i0(x: f64) -> f64 {
    let quarter = x * x / 4.0;
    let (mut sum, mut term) = (1.0, 1.0);
    for k in 1..64 {
        term *= quarter / f64::from(k * k);
        sum += term;
        if term < sum * 1e-17 {
            break;
        }
    }
    sum
}

/// The Kaiser window at `x` in -1..=1 (0 outside), 1 in the middle.
#[must_use]
pub fn kaiser(x: f64, beta: f64) -> f64 {
    if x.abs() > 1.0 {
        return 0.0;
    }
    bessel_i0(beta * (1.0 - x * x).sqrt()) / bessel_i0(beta)
}

/// The Hann window of `len` points, periodic form (for spectra).
#[must_use]
pub fn hann(len: usize) -> Vec<f32> {
    let point = |n: usize| 0.5 - 0.5 * (2.0 * PI * n as f64 / len as f64).cos();
    (0..len).map(|n| point(n) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bessel_matches_tabulated_values() {
        // Abramowitz and Stegun, table 9.8.
        assert!((bessel_i0(0.0) - 1.0).abs() < 1e-15);
        assert!((bessel_i0(1.0) - 1.266_065_877_752_008).abs() < 1e-14);
        assert!((bessel_i0(5.0) - 27.239_871_823_604_44).abs() < 1e-11);
    }

    #[test]
    fn kaiser_is_one_in_the_middle_and_zero_outside() {
        assert!((kaiser(0.0, 2.0) - 1.0).abs() < 1e-15);
        assert!((kaiser(1.0, 2.0) - 1.0 / bessel_i0(2.0)).abs() < 1e-15);
        assert!(kaiser(1.01, 2.0) == 0.0);
    }

    #[test]
    fn hann_is_symmetric_about_its_middle() {
        let w = hann(16);
        assert!(w[0].abs() < 1e-7 && (w[8] - 1.0).abs() < 1e-7);
        for n in 1..8 {
            assert!((w[n] - w[16 - n]).abs() < 1e-6);
        }
    }
}
