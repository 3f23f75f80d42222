//! The sampler in vectors of AVX2.

#![expect(unsafe_op_in_unsafe_fn, reason = "all is unsafe as it needs a processor with AVX2")]

use super::{GROUP, IntSample, Levelling, Run, SHARE, Sums};
use std::arch::x86_64::*;

/// Pairs of a vector.
const NARROW: usize = 8;

/// Computes [`super::sample_plain`], bit for bit.
///
/// # Safety
/// The run must [fit](Run::fits).
#[target_feature(enable = "avx2")]
pub(super) unsafe fn sample_256(run: &Run<'_>, out: &mut [[f32; GROUP]]) -> Sums {
    let mut leveller = Leveller::new(run);
    let mut at = run.at;
    for out in out {
        // SAFETY: by the caller's contract.
        let [low, high] = [at, at + SHARE as u64 * run.step].map(|at| unsafe { four(run, at) });
        at += GROUP as u64 * run.step;
        leveller.write(_mm256_set_m128i(high, low), out);
    }
    leveller.sums()
}

/// Returns the sums of four outputs that share a window, the first taken at `first`.
///
/// # Safety
/// The run must [fit](Run::fits), and this must be one of its times.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn four(run: &Run<'_>, first: u64) -> __m128i {
    // SAFETY: the run fits, so the window lies in the row.
    let samples = unsafe { run.row.as_ptr().add(run.window(first)) };
    let taps = [0, 1, 2, 3].map(|i| {
        // SAFETY: a phase is less than `phases` and a time at most `lead` late, so that a whole
        // window follows in the rows.
        unsafe { run.rows.as_ptr().add(run.taps(first + i * run.step, first)) }
    });
    let mut sums = [_mm256_setzero_si256(); SHARE];
    for v in 0..run.sampler.window / NARROW {
        // SAFETY: within the window.
        let x = unsafe { load_256(samples.add(v * NARROW)) };
        for (sum, taps) in sums.iter_mut().zip(taps) {
            // SAFETY: within the window.
            let taps = unsafe { load_256(taps.add(v * NARROW)) };
            *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(taps, x));
        }
    }
    let [a, b, c, d] = sums;
    let sums = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
    _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums))
}

/// The step from sums to outputs, eight at a time, with their measurement.
pub(super) struct Leveller {
    scale: __m256,
    offset: __m256,
    limit: __m256,
    gain: __m256,
    plain: __m256,
    square: __m256,
}

impl Leveller {
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn new(run: &Run<'_>) -> Self {
        let Levelling { offset, limit, gain } = run.levelling;
        let [scale, offset, limit, gain] =
            [run.scale, offset, limit, gain].map(|x| _mm256_set1_ps(x));
        let zero = _mm256_setzero_ps();
        Self { scale, offset, limit, gain, plain: zero, square: zero }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn write(&mut self, sums: __m256i, out: &mut [f32; GROUP]) {
        let x = _mm256_mul_ps(_mm256_cvtepi32_ps(sums), self.scale);
        let least = _mm256_sub_ps(_mm256_setzero_ps(), self.limit);
        let y = _mm256_max_ps(_mm256_sub_ps(x, self.offset), least);
        let y = _mm256_min_ps(y, self.limit);
        self.plain = _mm256_add_ps(self.plain, y);
        self.square = _mm256_add_ps(self.square, _mm256_mul_ps(y, y));
        // SAFETY: a group has room for eight values.
        unsafe { _mm256_storeu_ps(out.as_mut_ptr(), _mm256_mul_ps(y, self.gain)) };
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn sums(&self) -> Sums {
        let mut sums = Sums::default();
        // SAFETY: each row has room for eight values.
        unsafe {
            _mm256_storeu_ps(sums[0].as_mut_ptr(), self.plain);
            _mm256_storeu_ps(sums[1].as_mut_ptr(), self.square);
        }
        sums
    }
}

/// # Safety
/// `from` must point to eight pairs.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load_256(from: *const IntSample) -> __m256i {
    // SAFETY: by the caller's contract.
    unsafe { _mm256_loadu_si256(from.cast()) }
}
