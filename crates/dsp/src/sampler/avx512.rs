//! The sampler in vectors of AVX-512.

#![allow(clippy::incompatible_msrv, reason = "compiled only where the compiler has AVX-512")]

use super::avx2::Leveller;
use super::{GROUP, IntSample, Run, SHARE, Sums};
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

/// Pairs of a vector.
const WIDE: usize = 16;

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
    // SAFETY: the processor has AVX2, too.
    let mut leveller = unsafe { Leveller::new(run) };
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
                unsafe { leveller.write(group_512::<VECTORS>(run, windows, taps), out) };
            }
        }
    }
    // SAFETY: the processor has AVX2, too.
    unsafe { leveller.sums() }
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
        let all = |x: u32| _mm512_set1_epi32(x as i32);
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

/// # Safety
/// `from` must point to sixteen pairs.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load_512(from: *const IntSample) -> __m512i {
    // SAFETY: by the caller's contract.
    unsafe { _mm512_loadu_si512(from.cast()) }
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
