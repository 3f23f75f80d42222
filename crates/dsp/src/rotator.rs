//! A numerically controlled oscillator in lanes.

use crate::multiversion;
use crate::nco::cos_sin;
use std::f64::consts::TAU;

/// Lanes of the oscillator.
pub const LANES: usize = 8;

/// The values `exp(j (phase + rate n))` for `n = 0, 1, 2, ...`, eight at a time.
///
/// Rounding lets the magnitude drift by less than 1e-5 per thousand values. The caller must create
/// a new one from an exactly tracked phase every few thousand values.
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
    /// Creates an oscillator at `phase_rad` with a step of `rate_rad` per value.
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
        // The rotation of eight values by three squarings.
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

    /// Creates the oscillator in a few nanoseconds, for short blocks: the values are within 4e-6
    /// for some hundred values. Both angles may be up to 2^20 cycles.
    #[must_use]
    pub fn quick(phase_rad: f64, rate_rad: f64) -> Self {
        const TURN: f64 = 4_294_967_296.0;
        let turns = |rad: f64| (rad * (TURN / TAU)) as i64 as u32;
        let (phase, rate) = (turns(phase_rad), turns(rate_rad));
        // The first eight values, the step of eight, and padding of the vector.
        let mut angles = [rate.wrapping_mul(LANES as u32); 2 * LANES];
        for (lane, angle) in angles[..LANES].iter_mut().enumerate() {
            *angle = phase.wrapping_add(rate.wrapping_mul(lane as u32));
        }
        let (mut cos, mut sin) = ([0.0; 2 * LANES], [0.0; 2 * LANES]);
        exponentials(&angles, &mut cos, &mut sin);
        let first = |x: [f32; 2 * LANES]| std::array::from_fn(|lane| x[lane]);
        let (step_cos, step_sin) = (cos[LANES], sin[LANES]);
        Self { cos: first(cos), sin: first(sin), step_cos, step_sin }
    }

    /// Returns the rotation of eight values.
    #[must_use]
    pub fn step(&self) -> crate::Sample {
        crate::Sample::new(self.step_cos, self.step_sin)
    }

    /// Advances by eight values.
    #[inline(always)]
    pub fn advance(&mut self) {
        for lane in 0..LANES {
            let (re, im) = (self.cos[lane], self.sin[lane]);
            self.cos[lane] = re * self.step_cos - im * self.step_sin;
            self.sin[lane] = re * self.step_sin + im * self.step_cos;
        }
    }
}

multiversion! {
    /// Computes cosine and sine of angles in 2^-32 cycles.
    fn exponentials(
        angles: &[u32; 2 * LANES],
        cos: &mut [f32; 2 * LANES],
        sin: &mut [f32; 2 * LANES],
    ) = exponentials_body;
}

#[inline(always)]
fn exponentials_body<const FMA: bool>(
    angles: &[u32; 2 * LANES],
    cos: &mut [f32; 2 * LANES],
    sin: &mut [f32; 2 * LANES],
) {
    for ((angle, cos), sin) in angles.iter().zip(cos).zip(sin) {
        (*cos, *sin) = cos_sin::<FMA>(*angle);
    }
}

/// Returns a phase wrapped into -pi..=pi.
#[must_use]
pub fn wrap_rad(phase: f64) -> f64 {
    // Rounding by `round` is a call into the mathematical library.
    phase - TAU * (phase / TAU + 0.5f64.copysign(phase)) as i64 as f64
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
    fn the_quick_start_is_as_good_for_short_blocks() {
        for (phase, rate) in [(0.3, -1.234_567), (-3.1, 1e-5), (1e3, 3.1)] {
            let mut rotator = Rotator::quick(phase, rate);
            for block in 0..25 {
                for lane in 0..LANES {
                    let (sin, cos) = (phase + rate * (block * LANES + lane) as f64).sin_cos();
                    let (c, s) = (f64::from(rotator.cos[lane]), f64::from(rotator.sin[lane]));
                    assert!((c - cos).abs() < 4e-6 && (s - sin).abs() < 4e-6, "{rate} {block}");
                }
                rotator.advance();
            }
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
