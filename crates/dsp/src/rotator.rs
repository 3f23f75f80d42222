//! A numerically controlled oscillator in lanes.

use std::f64::consts::TAU;

/// Lanes of the oscillator.
pub const LANES: usize = 8;

/// The values `exp(j (phase + rate n))` for `n = 0, 1, 2, ...`, eight at a time.
///
/// Rounding lets the magnitude drift by less than 1e-5 per thousand values: make a new one from an
/// exactly tracked phase every few thousand.
#[derive(Clone, Copy, Debug)]
pub struct Rotator {
    /// Real parts of the next eight values.
    pub cos: [f32; LANES],
    /// Imaginary parts of the next eight values.
    pub sin: [f32; LANES],
    step_cos: f32,
    step_sin: f32,
}

impl Rotator {
    /// An oscillator at `phase_rad`, turning by `rate_rad` per value.
    #[must_use]
    pub fn new(phase_rad: f64, rate_rad: f64) -> Self {
        let (sin, cos) = phase_rad.sin_cos();
        let (turn_sin, turn_cos) = rate_rad.sin_cos();
        let mut lanes = [(0.0, 0.0); LANES];
        let (mut re, mut im) = (cos, sin);
        for lane in &mut lanes {
            *lane = (re as f32, im as f32);
            (re, im) = (re * turn_cos - im * turn_sin, re * turn_sin + im * turn_cos);
        }
        // Eight turns by three squarings.
        let (mut re, mut im) = (turn_cos, turn_sin);
        for _ in 0..3 {
            (re, im) = (re * re - im * im, 2.0 * re * im);
        }
        Self {
            cos: lanes.map(|(re, _)| re),
            sin: lanes.map(|(_, im)| im),
            step_cos: re as f32,
            step_sin: im as f32,
        }
    }

    /// Moves on by eight values.
    #[inline(always)]
    pub fn advance(&mut self) {
        for lane in 0..LANES {
            let (re, im) = (self.cos[lane], self.sin[lane]);
            self.cos[lane] = re * self.step_cos - im * self.step_sin;
            self.sin[lane] = re * self.step_sin + im * self.step_cos;
        }
    }
}

/// A phase brought into -pi..=pi.
#[must_use]
pub fn wrap_rad(phase: f64) -> f64 {
    phase - TAU * (phase / TAU).round()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_follow_the_exponential() {
        let (phase, rate) = (0.3, -1.234_567);
        let mut rotator = Rotator::new(phase, rate);
        for block in 0..500 {
            for lane in 0..LANES {
                let (sin, cos) = (phase + rate * (block * LANES + lane) as f64).sin_cos();
                assert!((f64::from(rotator.cos[lane]) - cos).abs() < 1e-4, "block {block}");
                assert!((f64::from(rotator.sin[lane]) - sin).abs() < 1e-4, "block {block}");
            }
            rotator.advance();
        }
    }

    #[test]
    fn the_magnitude_drifts_no_more_than_stated() {
        for n in 0..2000 {
            let mut rotator = Rotator::new(0.0, f64::from(n) * 1e-3);
            (0..1000 / LANES).for_each(|_| rotator.advance());
            let magnitude = f64::from(rotator.cos[0]).hypot(f64::from(rotator.sin[0]));
            assert!((magnitude - 1.0).abs() < 1e-5, "rate {n}e-3: {magnitude}");
        }
    }

    #[test]
    fn wrapping_keeps_the_angle() {
        for phase in [-100.0, -3.2, 0.0, 3.1, 3.2, 1e6] {
            let wrapped = wrap_rad(phase);
            assert!(wrapped.abs() <= std::f64::consts::PI + 1e-9);
            assert!((wrapped.sin() - phase.sin()).abs() < 1e-9);
        }
    }
}
