//! Window functions.

use std::f64::consts::PI;

/// Returns the zeroth-order modified Bessel function of the first kind.
#[must_use]
pub fn bessel_i0(x: f64) -> f64 {
    let quarter = x * x / 4.0;
    let (mut sum, mut term) = (1.0, 1.0);
    let mut k = 0.0;
    // The terms grow until `k` is half of `x`, and then shrink faster than a geometric series.
    while term >= sum * 1e-17 {
        k += 1.0;
        term *= quarter / (k * k);
        sum += term;
    }
    sum
}

/// Returns the Kaiser window at `x` in -1..=1 (0 outside), 1 in the middle.
#[must_use]
pub fn kaiser(x: f64, beta: f64) -> f64 {
    if x.abs() > 1.0 {
        return 0.0;
    }
    bessel_i0(beta * (1.0 - x * x).sqrt()) / bessel_i0(beta)
}

/// Returns the Hann window of `len` points, periodic form (for spectra).
#[must_use]
pub fn hann(len: usize) -> Vec<f32> {
    let point = |n: usize| 0.5 - 0.5 * (2.0 * PI * n as f64 / len as f64).cos();
    (0..len).map(|n| point(n) as f32).collect()
}

/// The shape of a window for filters and spectra.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Window {
    /// All ones.
    Rectangular,
    /// Squared cosine, zero at the ends.
    Hann,
    /// Hamming's: 0.54 and 0.46.
    Hamming,
    /// Blackman's: 0.42, 0.5, 0.08.
    Blackman,
    /// The four-term window of Harris (1978), 92 dB.
    BlackmanHarris,
    /// Kaiser's, with its beta.
    Kaiser(f64),
}

impl Window {
    /// Returns the value at `x` in -1..=1, 1 in the middle.
    #[must_use]
    pub fn at(self, x: f64) -> f64 {
        let cosines = |terms: &[f64]| {
            let sum = |(k, term): (usize, &f64)| term * (PI * k as f64 * x).cos();
            terms.iter().enumerate().map(sum).sum()
        };
        match self {
            Self::Rectangular => 1.0,
            Self::Hann => cosines(&[0.5, 0.5]),
            Self::Hamming => cosines(&[0.54, 0.46]),
            Self::Blackman => cosines(&[0.42, 0.5, 0.08]),
            Self::BlackmanHarris => cosines(&[0.358_75, 0.488_29, 0.141_28, 0.011_68]),
            Self::Kaiser(beta) => kaiser(x, beta),
        }
    }

    /// Returns `len` points, symmetric about the middle (for filters).
    #[must_use]
    pub fn symmetric(self, len: usize) -> Vec<f64> {
        let half = (len.max(2) - 1) as f64 / 2.0;
        (0..len).map(|n| if len == 1 { 1.0 } else { self.at(n as f64 / half - 1.0) }).collect()
    }

    /// Returns `len` points as one period (for spectra): the point behind the last equals the
    /// first.
    #[must_use]
    pub fn periodic(self, len: usize) -> Vec<f64> {
        (0..len).map(|n| self.at(2.0 * n as f64 / len as f64 - 1.0)).collect()
    }

    /// Returns the attenuation of a filter cut with this window, dB (Harris 1978; Kaiser 1974 for
    /// his).
    #[must_use]
    pub fn attenuation_db(self) -> f64 {
        match self {
            Self::Rectangular => 21.0,
            Self::Hann => 44.0,
            Self::Hamming => 53.0,
            Self::Blackman => 74.0,
            Self::BlackmanHarris => 92.0,
            Self::Kaiser(beta) => beta / 0.1102 + 8.7,
        }
    }
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
        // By the asymptotic series (Abramowitz and Stegun 9.7.1).
        for x in [85.0_f64, 100.0, 300.0] {
            let series =
                1.0 + 1.0 / (8.0 * x) + 9.0 / (128.0 * x * x) + 75.0 / (1024.0 * x.powi(3));
            let large = x.exp() / (2.0 * PI * x).sqrt() * series;
            assert!((bessel_i0(x) / large - 1.0).abs() < 1e-7, "{x}");
        }
    }

    #[test]
    fn kaiser_is_one_in_the_middle_and_zero_outside() {
        assert!((kaiser(0.0, 2.0) - 1.0).abs() < 1e-15);
        assert!((kaiser(1.0, 2.0) - 1.0 / bessel_i0(2.0)).abs() < 1e-15);
        assert!(kaiser(1.01, 2.0) == 0.0);
    }

    #[test]
    fn windows_are_symmetric_and_one_in_the_middle() {
        for window in [
            Window::Rectangular,
            Window::Hann,
            Window::Hamming,
            Window::Blackman,
            Window::BlackmanHarris,
            Window::Kaiser(6.0),
        ] {
            let points = window.symmetric(33);
            assert!((points[16] - 1.0).abs() < 1e-12, "{window:?}");
            assert!((0..16).all(|n| (points[n] - points[32 - n]).abs() < 1e-12), "{window:?}");
            let periodic = window.periodic(32);
            assert!((periodic[0] - points[0]).abs() < 1e-12 && (periodic[16] - 1.0).abs() < 1e-12);
        }
        assert!((Window::Hamming.at(1.0) - 0.08).abs() < 1e-12);
        assert!(Window::Blackman.at(-1.0).abs() < 1e-12);
        assert!((Window::BlackmanHarris.at(1.0) - 6e-5).abs() < 1e-12);
        assert_eq!(Window::Hann.symmetric(1), [1.0]);
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
