//! Rotation of samples by an oscillator into 16-bit parts, with the sums that a loop needs.

use crate::chunks::Chunks;
use crate::nco::cos_sin;
use crate::rounding::whole;
use crate::sampler::IntSample;
use crate::simd::madd;
use crate::trim::Trim;
use crate::{Sample, multiversion};
use std::f64::consts::TAU;

/// Samples processed together.
const LANES: usize = 16;

/// The largest valid part of a sample.
const LARGEST: f32 = 1e9;

/// Returns whether a sample is valid: its parts are finite and below 1e9 in magnitude.
#[inline(always)]
#[must_use]
pub fn counts(sample: Sample) -> bool {
    sample.re.abs() < LARGEST && sample.im.abs() < LARGEST
}

/// Sums of rotated samples before they are rounded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// The sum of the samples.
    pub plain: Sample,
    /// The weighted sum of the samples.
    pub weighted: Sample,
    /// The sum of the squared magnitudes.
    pub power: f32,
    /// The number of invalid samples, which were replaced by zero.
    pub bad: usize,
}

/// The parameters of a rotation.
#[derive(Clone, Copy, Debug)]
pub struct Rotation<'a> {
    /// The phase at the first sample, radians.
    pub phase_rad: f64,
    /// The change of phase per sample, radians.
    pub rate_rad: f64,
    /// The correction before the rotation.
    pub trim: Trim,
    /// The 16-bit value of 1.0; the parts are clipped to ±32767.
    pub one: f32,
    /// A weight for each sample, for the weighted sum.
    pub weights: &'a [f32],
}

/// Sums in lanes: plain, weighted, power.
type Lanes = [[f32; LANES]; 5];

impl Rotation<'_> {
    /// Corrects at most some hundred samples, rotates them, and rounds them into `out`.
    ///
    /// # Panics
    /// If there are fewer weights or pairs than samples.
    pub fn run(&self, samples: &[Sample], out: &mut [IntSample]) -> Sums {
        let (sixteens, rest) = samples.in_chunks::<LANES>();
        let (weights, weights_end) = self.weights[..samples.len()].in_chunks::<LANES>();
        let (pairs, pairs_end) = out[..samples.len()].in_chunks_mut::<LANES>();
        let mut oscillator = Oscillator::new(self.phase_rad, self.rate_rad);
        let mut sums = Lanes::default();
        let mut bad = rotate(self, &mut oscillator, sixteens, weights, pairs, &mut sums);
        if !rest.is_empty() {
            let mut last = [[Sample::ZERO; LANES]; 1];
            let (mut weights, mut pairs) = ([[0.0; LANES]; 1], [[[0; 2]; LANES]; 1]);
            // The padding becomes zero by the correction.
            last[0].fill(self.trim.offset);
            last[0][..rest.len()].copy_from_slice(rest);
            weights[0][..rest.len()].copy_from_slice(weights_end);
            bad += rotate(self, &mut oscillator, &last, &weights, &mut pairs, &mut sums);
            pairs_end.copy_from_slice(&pairs[0][..rest.len()]);
        }
        let [re, im, weighted_re, weighted_im, power] = sums.map(|lanes| lanes.iter().sum());
        Sums {
            plain: Sample::new(re, im),
            weighted: Sample::new(weighted_re, weighted_im),
            power,
            bad: bad as usize,
        }
    }
}

/// Returns a phase wrapped into -pi..=pi.
#[must_use]
pub fn wrap_rad(phase: f64) -> f64 {
    // Rounding by `round` is a call into the mathematical library.
    phase - TAU * (phase / TAU + 0.5f64.copysign(phase)) as i64 as f64
}

/// The values `exp(j (phase + rate n))` for `n = 0, 1, 2, ...`, sixteen at a time.
#[derive(Clone, Copy)]
struct Oscillator {
    cos: [f32; LANES],
    sin: [f32; LANES],
    /// The rotation of sixteen values.
    step: Sample,
}

impl Oscillator {
    /// Creates the oscillator in a few nanoseconds: the values are within 4e-6 for some hundred
    /// values. Both angles may be up to 2^20 cycles.
    fn new(phase_rad: f64, rate_rad: f64) -> Self {
        const TURN: f64 = 4_294_967_296.0;
        const HALF: usize = LANES / 2;
        let turns = |rad: f64| (rad * (TURN / TAU)) as i64 as u32;
        let (phase, rate) = (turns(phase_rad), turns(rate_rad));
        // The first eight values, and the rotation of eight.
        let mut angles = [rate.wrapping_mul(HALF as u32); LANES];
        for (lane, angle) in angles[..HALF].iter_mut().enumerate() {
            *angle = phase.wrapping_add(rate.wrapping_mul(lane as u32));
        }
        let [mut cos, mut sin] = [[0.0; LANES]; 2];
        exponentials(&angles, &mut cos, &mut sin);
        let step = Sample::new(cos[HALF], sin[HALF]);
        for lane in 0..HALF {
            let next = Sample::new(cos[lane], sin[lane]) * step;
            (cos[lane + HALF], sin[lane + HALF]) = (next.re, next.im);
        }
        Self { cos, sin, step: step * step }
    }
}

multiversion! {
    /// Computes cosine and sine of angles in 2^-32 cycles.
    fn exponentials(
        angles: &[u32; LANES], cos: &mut [f32; LANES], sin: &mut [f32; LANES]
    ) = exponentials_body;
}

#[inline(always)]
fn exponentials_body<const FMA: bool>(
    angles: &[u32; LANES],
    cos: &mut [f32; LANES],
    sin: &mut [f32; LANES],
) {
    for ((angle, cos), sin) in angles.iter().zip(cos).zip(sin) {
        (*cos, *sin) = cos_sin::<FMA>(*angle);
    }
}

multiversion! {
    fn rotate(
        rotation: &Rotation<'_>,
        oscillator: &mut Oscillator,
        samples: &[[Sample; LANES]],
        weights: &[[f32; LANES]],
        out: &mut [[IntSample; LANES]],
        sums: &mut Lanes,
    ) -> u32 = turn_body, avx512;
}

#[inline(always)]
fn turn_body<const FMA: bool>(
    rotation: &Rotation<'_>,
    oscillator: &mut Oscillator,
    samples: &[[Sample; LANES]],
    weights: &[[f32; LANES]],
    out: &mut [[IntSample; LANES]],
    sums: &mut Lanes,
) -> u32 {
    let (trim, one) = (rotation.trim, rotation.one);
    let Oscillator { mut cos, mut sin, step } = *oscillator;
    let (mut add, mut bad) = (*sums, [0; LANES]);
    for ((samples, weights), out) in samples.iter().zip(weights).zip(out) {
        let mut bits = [0u32; LANES];
        for lane in 0..LANES {
            let sample = samples[lane];
            let good = counts(sample);
            bad[lane] += u32::from(!good);
            let [x, y] = [sample.re - trim.offset.re, sample.im - trim.offset.im];
            let y = madd::<FMA>(y, trim.gain, -(x * trim.cross));
            let [x, y] = [x, y].map(|part| if good { part } else { 0.0 });
            let re = madd::<FMA>(x, cos[lane], -(y * sin[lane]));
            let im = madd::<FMA>(x, sin[lane], y * cos[lane]);
            add[0][lane] += re;
            add[1][lane] += im;
            add[2][lane] = madd::<FMA>(re, weights[lane], add[2][lane]);
            add[3][lane] = madd::<FMA>(im, weights[lane], add[3][lane]);
            add[4][lane] = madd::<FMA>(re, re, madd::<FMA>(im, im, add[4][lane]));
            let [re, im] = [re, im].map(|part| whole(part * one));
            bits[lane] = re & 0xFFFF | im << 16;
            let turned = madd::<FMA>(cos[lane], step.re, -(sin[lane] * step.im));
            sin[lane] = madd::<FMA>(cos[lane], step.im, sin[lane] * step.re);
            cos[lane] = turned;
        }
        *out = bits.map(|bits| [bits as i16, (bits >> 16) as i16]);
    }
    *oscillator = Oscillator { cos, sin, step };
    *sums = add;
    bad.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_testkit::cost;

    const WEIGHTS: [f32; 300] = {
        let mut weights = [0.0; 300];
        let mut n = 0;
        while n < 300 {
            weights[n] = n as f32 / 300.0;
            n += 1;
        }
        weights
    };

    multiversion! {
        /// Runs the kernel without its AVX-512 copy.
        fn narrow(
            rotation: &Rotation<'_>,
            oscillator: &mut Oscillator,
            samples: &[[Sample; LANES]],
            weights: &[[f32; LANES]],
            out: &mut [[IntSample; LANES]],
            sums: &mut Lanes,
        ) -> u32 = turn_body;
    }

    fn turn(rate_rad: f64) -> Rotation<'static> {
        let (trim, weights) = (Trim::default(), &WEIGHTS);
        Rotation { phase_rad: 0.0, rate_rad, trim, one: 10_000.0, weights }
    }

    #[test]
    fn the_first_values_are_those_of_the_exponential() {
        for (phase, rate) in [(0.3, -1.234_567), (-3.1, 1e-5), (1e3, 3.1)] {
            let oscillator = Oscillator::new(phase, rate);
            let step = rate * LANES as f64;
            assert!((f64::from(oscillator.step.re) - step.cos()).abs() < 4e-6, "{rate}");
            for lane in 0..LANES {
                let (sin, cos) = (phase + rate * lane as f64).sin_cos();
                let (c, s) = (f64::from(oscillator.cos[lane]), f64::from(oscillator.sin[lane]));
                assert!((c - cos).abs() < 4e-6 && (s - sin).abs() < 4e-6, "{rate} {lane}");
            }
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

    #[test]
    fn a_tone_is_turned_to_a_constant() {
        for len in [16, 64, 299] {
            let tone = |n: usize| Sample::from_polar(0.5, 0.7 * n as f32);
            let samples: Vec<Sample> = (0..len).map(tone).collect();
            let mut out = vec![[0; 2]; len];
            let sums = turn(-0.7).run(&samples, &mut out);
            assert!(out.iter().all(|[re, im]| (re - 5000).abs() < 3 && im.abs() < 3), "{out:?}");
            let weight: f32 = WEIGHTS[..len].iter().sum();
            assert!((sums.plain - 0.5 * len as f32).norm() < 1e-4 * len as f32, "{sums:?}");
            assert!((sums.weighted - 0.5 * weight).norm() < 1e-4 * len as f32, "{sums:?}");
            assert!((sums.power - 0.25 * len as f32).abs() < 1e-4 * len as f32, "{sums:?}");
            assert_eq!(sums.bad, 0);
        }
    }

    #[test]
    fn what_is_too_loud_is_cut_and_what_is_no_number_silenced() {
        let mut samples = vec![Sample::new(1.0, 1.0); 37];
        samples[3].re = f32::NAN;
        samples[20].im = f32::INFINITY;
        samples[35].re = f32::MAX;
        samples[36] = Sample::new(1e8, -1e8);
        let mut out = vec![[0; 2]; 37];
        let sums = turn(0.0).run(&samples, &mut out);
        assert_eq!(sums.bad, 3);
        assert!(sums.power.is_finite());
        assert_eq!([out[0], out[3], out[20], out[35]], [[10_000; 2], [0; 2], [0; 2], [0; 2]]);
        assert_eq!(out[36], [32767, -32767]);
    }

    #[test]
    fn correction_comes_first_and_adds_nothing_behind_the_end() {
        let trim = Trim { offset: Sample::new(0.1, -0.2), gain: 1.1, cross: 0.05 };
        let samples = [Sample::new(0.3, 0.2); 21];
        let mut out = [[0; 2]; 21];
        let sums = Rotation { trim, ..turn(0.0) }.run(&samples, &mut out);
        let x = samples[0] - trim.offset;
        let exact = Sample::new(x.re, x.im * trim.gain - x.re * trim.cross);
        assert!((sums.plain - exact * 21.0).norm() < 1e-5, "{sums:?}");
        assert_eq!(out[20], [exact.re, exact.im].map(|x| (x * 10_000.0).round() as i16));
    }

    #[test]
    fn the_fast_copies_agree_with_the_plain_one() {
        let sample = |n: usize| Sample::new((n % 17) as f32 - 8.0, (n % 23) as f32 - 11.0) / 10.0;
        let samples: [[Sample; LANES]; 4] =
            std::array::from_fn(|i| std::array::from_fn(|lane| sample(i * LANES + lane)));
        let weights = [[0.3; LANES]; 4];
        let trim = Trim { offset: Sample::new(0.1, -0.2), gain: 1.1, cross: 0.05 };
        let rotation = Rotation { trim, one: 9000.0, ..turn(0.0) };
        let run = |kernel: fn(&Rotation<'_>, &mut _, &_, &_, &mut _, &mut _) -> u32| {
            let mut oscillator = Oscillator::new(0.4, 1.3);
            let (mut out, mut sums) = ([[[0; 2]; LANES]; 4], Lanes::default());
            kernel(&rotation, &mut oscillator, &samples, &weights, &mut out, &mut sums);
            (out, sums)
        };
        let plain = run(|a, b, c: &[_; 4], d: &[_; 4], e: &mut [_; 4], f| {
            turn_body::<false>(a, b, c, d, e, f)
        });
        let fast = run(|a, b, c, d, e, f| super::rotate(a, b, c, d, e, f));
        let parts = plain.0.as_flattened().as_flattened().iter();
        let worst = parts.zip(fast.0.as_flattened().as_flattened()).map(|(a, b)| (a - b).abs());
        assert!(worst.max().unwrap() <= 1, "rounded another way, by one at most");
        let narrow = run(|a, b, c, d, e, f| narrow(a, b, c, d, e, f));
        assert_eq!(narrow, fast, "AVX2 and AVX-512 to the bit");
    }

    #[test]
    #[ignore = "counted by docs/evidence/arm64_cost.py"]
    fn cost_of_the_rotation() {
        let (samples, weights) = ([[Sample::new(0.3, -0.2); LANES]; 50], [[0.3; LANES]; 50]);
        let (rotation, mut out) = (turn(0.7), [[[0; 2]; LANES]; 50]);
        let mut run = |kernel: fn(&_, &mut _, &[_], &[_], &mut [_], &mut _) -> u32| {
            let mut oscillator = Oscillator::new(0.4, 1.3);
            let mut sums = Lanes::default();
            kernel(&rotation, &mut oscillator, &samples, &weights, &mut out, &mut sums);
            assert!(sums[4][0] > 0.0);
        };
        let run = std::cell::RefCell::new(&mut run);
        cost::repeat(
            || run.borrow_mut()(|a, b, c, d, e, f| turn_body::<{ cost::FUSED }>(a, b, c, d, e, f)),
            || run.borrow_mut()(|a, b, c, d, e, f| rotate(a, b, c, d, e, f)),
        );
    }
}
