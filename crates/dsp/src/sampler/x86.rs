//! The sampler in vectors.

use super::{GROUP, IntSample, Levelling, Run, SHARE, Sums};
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

/// Pairs of an AVX-512 and of an AVX2 vector.
const WIDE: usize = 16;
const NARROW: usize = 8;

/// Groups whose places are computed together.
const PIECE: usize = 32;

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
    let mut times = WideTimes::new(run);
    let mut leveller = Leveller::new(run);
    // All places first: they are integers of the processor, and those pass through memory cheaply.
    let mut places = [const { MaybeUninit::uninit() }; PIECE / 2];
    for piece in out.chunks_mut(PIECE) {
        let pairs = &mut places[..piece.len().div_ceil(2)];
        for pair in &mut *pairs {
            pair.write(times.next());
        }
        for (groups, pair) in piece.chunks_mut(2).zip(pairs) {
            // SAFETY: written above.
            let pair = unsafe { pair.assume_init_ref() };
            let places = pair.windows.0.iter().zip(&pair.taps.0);
            for (out, (windows, taps)) in groups.iter_mut().zip(places) {
                // SAFETY: by the caller's contract.
                leveller.write(unsafe { group_512::<VECTORS>(run, windows, taps) }, out);
            }
        }
    }
    leveller.sums()
}

/// Returns the sums of eight outputs.
///
/// # Safety
/// The run must [fit](Run::fits), and the places must be of times of it.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn group_512<const VECTORS: usize>(
    run: &Run<'_>,
    windows: &[u32; GROUP],
    taps: &[u32; GROUP],
) -> __m256i {
    let mut sums = [[_mm512_setzero_si512(); SHARE]; 2];
    for (half, sums) in sums.iter_mut().enumerate() {
        // SAFETY: the run fits, so the window lies in the row.
        let samples = unsafe { run.row.as_ptr().add(windows[half * SHARE] as usize) };
        // SAFETY: a phase is less than `phases` and a time at most `lead` late, so that a whole
        // window follows in the rows.
        let taps: [_; SHARE] = std::array::from_fn(|i| unsafe {
            run.rows.as_ptr().add(taps[half * SHARE + i] as usize)
        });
        if VECTORS == 3 {
            // SAFETY: a whole window.
            unsafe {
                multiply_add::<0>(sums, samples, taps);
                multiply_add::<64>(sums, samples, taps);
                multiply_add::<128>(sums, samples, taps);
            }
            continue;
        }
        for v in (0..run.sampler.window).step_by(WIDE) {
            // SAFETY: within the window.
            unsafe { multiply_add::<0>(sums, samples.add(v), taps.map(|taps| taps.add(v))) };
        }
    }
    let [[a, b, c, d], [e, f, g, h]] = sums;
    add_across_512([a, b, c, d, e, f, g, h])
}

/// Adds the products of sixteen samples that begin `AT` bytes further with the taps of as many
/// sums, both products of a pair to one lane. Inline assembly, because the compiler splits the
/// intrinsic into two instructions where it expects dependent sums.
///
/// # Safety
/// Sixteen pairs must lie there, of samples and of all taps.
#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
unsafe fn multiply_add<const AT: usize>(
    sums: &mut [__m512i; SHARE],
    samples: *const IntSample,
    taps: [*const IntSample; SHARE],
) {
    // SAFETY: by the caller's contract.
    let x = unsafe { load_512(samples.byte_add(AT)) };
    for (sum, taps) in sums.iter_mut().zip(taps) {
        // SAFETY: the processor has the instruction, and the caller guarantees the memory.
        unsafe {
            std::arch::asm!(
                "vpdpwssd {sum}, {x}, [{taps} + {at}]",
                sum = inout(zmm_reg) *sum,
                x = in(zmm_reg) x,
                taps = in(reg) taps,
                at = const AT,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
    }
}

/// Thirty-two-bit numbers of sixteen outputs.
#[repr(C, align(64))]
struct Sixteen([[u32; GROUP]; 2]);

/// [`Run::window`] (of every fourth output alone) and [`Run::taps`] of sixteen outputs.
struct Places {
    windows: Sixteen,
    taps: Sixteen,
}

/// Times of sixteen outputs.
struct WideTimes {
    fraction: __m512i,
    whole: __m512i,
    /// The step to the next sixteen.
    fraction_step: __m512i,
    whole_step: __m512i,
    phases: __m512i,
    window: __m512i,
    base: __m512i,
    before: __m512i,
}

impl WideTimes {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(run: &Run<'_>) -> Self {
        let all = |x: u32| _mm512_set1_epi32(x.cast_signed());
        let both = |time: u64| [time as u32, (time >> 32) as u32];
        let mut times = [const { Sixteen([[0; GROUP]; 2]) }; 2];
        for i in 0..2 * GROUP {
            [times[0].0[i / GROUP][i % GROUP], times[1].0[i / GROUP][i % GROUP]] =
                both(run.at + i as u64 * run.step);
        }
        let [fraction_step, whole_step] = both(run.step * (2 * GROUP) as u64).map(all);
        // SAFETY: each array holds sixteen values.
        let [fraction, whole] = times.map(|x| unsafe { _mm512_load_si512((&raw const x).cast()) });
        Self {
            fraction,
            whole,
            fraction_step,
            whole_step,
            phases: all(run.sampler.phases),
            window: all(run.sampler.window as u32),
            base: all(run.sampler.base as u32),
            before: all(run.sampler.half as u32 - 1),
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn next(&mut self) -> Places {
        let Self { fraction, whole, .. } = *self;
        // All factors are below 2^15, with zeros in the high halves.
        let phase = _mm512_madd_epi16(_mm512_srli_epi32::<17>(fraction), self.phases);
        let phase = _mm512_srli_epi32::<15>(phase);
        let first = _mm512_shuffle_epi32::<0>(whole);
        let place = _mm512_add_epi32(_mm512_madd_epi16(phase, self.window), self.base);
        let taps = _mm512_sub_epi32(place, _mm512_sub_epi32(whole, first));
        let windows = _mm512_sub_epi32(whole, self.before);
        self.fraction = _mm512_add_epi32(fraction, self.fraction_step);
        let carried = _mm512_cmplt_epu32_mask(self.fraction, fraction);
        self.whole = _mm512_add_epi32(whole, self.whole_step);
        let one = _mm512_set1_epi32(1);
        self.whole = _mm512_mask_add_epi32(self.whole, carried, self.whole, one);
        // SAFETY: both are sixteen numbers.
        let [windows, taps] = [windows, taps].map(|x| unsafe { std::mem::transmute(x) });
        Places { windows, taps }
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
