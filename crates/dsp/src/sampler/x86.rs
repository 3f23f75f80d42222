//! The sampler in vectors.

use super::{GROUP, IntSample, Levelling, Run, SHARE, Sums};
use std::arch::x86_64::*;

/// Pairs of an AVX-512 and of an AVX2 vector.
const WIDE: usize = 16;
const NARROW: usize = 8;

/// Computes [`super::sample_plain`], bit for bit.
///
/// # Safety
/// The run must [fit](Run::fits).
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) unsafe fn sample_512(run: &Run<'_>, out: &mut [[f32; GROUP]]) -> Sums {
    // SAFETY: by the caller's contract.
    unsafe {
        match run.sampler.window / WIDE {
            // A constant number of vectors leaves no loop.
            3 => vectors_512::<3>(run, out),
            _ => vectors_512::<0>(run, out),
        }
    }
}

/// Computes a run with windows of `VECTORS` vectors, or if that is zero, of any number.
///
/// # Safety
/// The run must [fit](Run::fits).
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn vectors_512<const VECTORS: usize>(run: &Run<'_>, out: &mut [[f32; GROUP]]) -> Sums {
    let mut places = Places::new(run);
    let mut leveller = Leveller::new(run);
    for out in out {
        // SAFETY: by the caller's contract.
        leveller.write(unsafe { group_512::<VECTORS>(run, &mut places) }, out);
    }
    leveller.sums()
}

/// Returns the sums of the next eight outputs.
///
/// # Safety
/// The run must [fit](Run::fits), and these must be times of it.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn group_512<const VECTORS: usize>(run: &Run<'_>, places: &mut Places) -> __m256i {
    let vectors = if VECTORS > 0 { VECTORS } else { run.sampler.window / WIDE };
    let [windows, rows] = places.next();
    let mut sums = [_mm512_setzero_si512(); GROUP];
    for half in 0..GROUP / SHARE {
        // SAFETY: the run fits, so the window lies in the row.
        let samples = unsafe { run.row.as_ptr().add(windows[half * SHARE]) };
        for v in 0..vectors {
            // SAFETY: within the window.
            let x = unsafe { load_512(samples.add(v * WIDE)) };
            for i in half * SHARE..(half + 1) * SHARE {
                // SAFETY: a phase is less than `phases` and a time at most `lead` late, so that a
                // whole window follows in the rows.
                unsafe { multiply_add(&mut sums[i], x, run.rows.as_ptr().add(rows[i] + v * WIDE)) };
            }
        }
    }
    add_across_512(sums)
}

/// Adds the products of sixteen pairs, both of a pair to one sum. Inline assembly, because the
/// compiler splits the intrinsic into two instructions where it expects dependent sums.
///
/// # Safety
/// `taps` must point to sixteen pairs of taps.
#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
unsafe fn multiply_add(sum: &mut __m512i, x: __m512i, taps: *const IntSample) {
    // SAFETY: the processor has the instruction, and the caller guarantees the memory.
    unsafe {
        std::arch::asm!(
            "vpdpwssd {sum}, {x}, [{taps}]",
            sum = inout(zmm_reg) *sum,
            x = in(zmm_reg) x,
            taps = in(reg) taps,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
}

/// Windows and taps of eight outputs at a time: [`Run::window`] and [`Run::taps`].
struct Places {
    at: __m512i,
    step: __m512i,
    phases: __m512i,
    stride: __m512i,
    lead: __m512i,
    before: __m512i,
}

impl Places {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(run: &Run<'_>) -> Self {
        let all = |x: u64| _mm512_set1_epi64(x.cast_signed());
        let times: [u64; GROUP] = std::array::from_fn(|i| run.at + i as u64 * run.step);
        Self {
            // SAFETY: the array holds eight values.
            at: unsafe { _mm512_loadu_si512(times.as_ptr().cast()) },
            step: all(run.step * GROUP as u64),
            phases: all(run.sampler.phases.into()),
            stride: all(run.sampler.stride as u64),
            lead: all(run.sampler.lead as u64),
            before: all(run.sampler.half as u64 - 1),
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn next(&mut self) -> [[usize; GROUP]; 2] {
        let whole = _mm512_srli_epi64::<32>(self.at);
        // The multiplication takes the low halves.
        let phase = _mm512_srli_epi64::<32>(_mm512_mul_epu32(self.at, self.phases));
        let late = _mm512_sub_epi64(whole, _mm512_permutex_epi64::<0>(whole));
        let place = _mm512_mul_epu32(phase, self.stride);
        let place = _mm512_add_epi64(place, _mm512_sub_epi64(self.lead, late));
        self.at = _mm512_add_epi64(self.at, self.step);
        // SAFETY: both are eight words.
        [_mm512_sub_epi64(whole, self.before), place].map(|x| unsafe { std::mem::transmute(x) })
    }
}

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
struct Leveller {
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
    fn new(run: &Run<'_>) -> Self {
        let Levelling { offset, limit, gain } = run.levelling;
        let [scale, offset, limit, gain] =
            [run.scale, offset, limit, gain].map(|x| _mm256_set1_ps(x));
        let zero = _mm256_setzero_ps();
        Self { scale, offset, limit, gain, plain: zero, square: zero }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn write(&mut self, sums: __m256i, out: &mut [f32; GROUP]) {
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
    fn sums(&self) -> Sums {
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
/// `from` must point to sixteen pairs.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load_512(from: *const IntSample) -> __m512i {
    // SAFETY: by the caller's contract.
    unsafe { _mm512_loadu_si512(from.cast()) }
}

/// # Safety
/// `from` must point to eight pairs.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load_256(from: *const IntSample) -> __m256i {
    // SAFETY: by the caller's contract.
    unsafe { _mm256_loadu_si256(from.cast()) }
}

/// Returns the sums of each vector's sixteen lanes, side by side.
#[inline]
#[target_feature(enable = "avx512f")]
fn add_across_512([a, b, c, d, e, f, g, h]: [__m512i; GROUP]) -> __m256i {
    let [ab, cd, ef, gh] = [[a, b], [c, d], [e, f], [g, h]]
        .map(|[a, b]| _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b)));
    // Each quarter then holds a sum for each of four vectors.
    let [abcd, efgh] = [[ab, cd], [ef, gh]]
        .map(|[a, b]| _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b)));
    let even = _mm512_shuffle_i32x4::<0b10_00_10_00>(abcd, efgh);
    let odd = _mm512_shuffle_i32x4::<0b11_01_11_01>(abcd, efgh);
    let sums = _mm512_add_epi32(even, odd);
    let even = _mm512_shuffle_i32x4::<0b10_00_10_00>(sums, sums);
    let odd = _mm512_shuffle_i32x4::<0b11_01_11_01>(sums, sums);
    _mm256_add_epi32(_mm512_castsi512_si256(even), _mm512_castsi512_si256(odd))
}
