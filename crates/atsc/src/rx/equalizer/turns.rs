//! A data segment in rows of twelve symbols, one of each coder.
//!
//! Every symbol of a row is decided by its own coder's decoder, after the echoes of earlier symbols
//! are removed.

use super::applied_taps::AppliedTaps;
use super::design::FEEDBACK;
use super::quick_trellis::{QuickDecoders, Trellis};
use crate::params::{DATA_SYMBOLS, SYNC_SYMBOLS, TRELLIS_CODERS};
use millstream_dsp::chunks::Chunks;
use millstream_dsp::multiversion;
#[cfg(avx512)]
use millstream_dsp::rows::Avx512;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
use millstream_dsp::rows::Neon;
use millstream_dsp::rows::{LANES, Plain, Rows};

/// Rows for which decisions are corrected: that of the decision and three more.
pub const CORRECTED_TURNS: usize = 4;

/// All lanes of a row, and those of the coders.
const ALL: u16 = u16::MAX;
const CODERS: u16 = (1 << TRELLIS_CODERS) - 1;

/// Removes the echoes of earlier symbols from a segment's data, and decides it, with the best copy
/// for this processor.
pub fn run(
    applied: &AppliedTaps,
    decided: &mut [i16],
    trellis: &mut Trellis,
    data: &mut [f32; DATA_SYMBOLS],
) {
    #[cfg(avx512)]
    if let Some(rows) = Avx512::new() {
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
        fn widest(
            rows: Avx512,
            applied: &AppliedTaps,
            decided: &mut [i16],
            trellis: &mut Trellis,
            data: &mut [f32; DATA_SYMBOLS],
        ) {
            run_body(rows, applied, decided, trellis, data);
        }
        // SAFETY: `Avx512::new`, which alone makes `rows`, has found the features.
        return unsafe { widest(rows, applied, decided, trellis, data) };
    }
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    return run_body(Neon, applied, decided, trellis, data);
    #[cfg_attr(target_arch = "aarch64", allow(unreachable_code))]
    run_narrower(applied, decided, trellis, data);
}

multiversion! {
    fn run_narrower(
        applied: &AppliedTaps,
        decided: &mut [i16],
        trellis: &mut Trellis,
        data: &mut [f32; DATA_SYMBOLS],
    ) = run_plain;
}

/// Runs the reference implementation.
#[inline(always)]
pub fn run_plain<const FMA: bool>(
    applied: &AppliedTaps,
    decided: &mut [i16],
    trellis: &mut Trellis,
    data: &mut [f32; DATA_SYMBOLS],
) {
    run_body(Plain, applied, decided, trellis, data);
}

#[inline(always)]
fn run_body<R: Rows>(
    r: R,
    applied: &AppliedTaps,
    decided: &mut [i16],
    trellis: &mut Trellis,
    data: &mut [f32; DATA_SYMBOLS],
) {
    let mut decoders = QuickDecoders::load(r, trellis);
    let (far, near) = applied.groups.split_at(applied.far);
    let none = r.wholes(0);
    let mut ahead = r.add_products(far, &decided[SYNC_SYMBOLS..], none);
    for (turn, symbols) in data.in_chunks_mut::<TRELLIS_CODERS>().0.iter_mut().enumerate() {
        let start = SYNC_SYMBOLS + turn * TRELLIS_CODERS;
        let sums = r.add_products(near, &decided[start..], ahead);
        // The sums of the next row, on which the current decisions have no effect: the processor
        // computes them while it waits for the decisions.
        ahead = r.add_products(far, &decided[start + TRELLIS_CODERS..], none);
        let mut x = [0.0; LANES];
        x[..TRELLIS_CODERS].copy_from_slice(symbols);
        let y = apply_feedback(r, applied, r.load(&x), r.floats_of(sums), decoders.ahead(r));
        symbols.copy_from_slice(&r.store(y)[..TRELLIS_CODERS]);
        decoders.step(r, y);
        let best = decoders.best(r);
        // The newest row is written last, because a row ends with lanes that belong to the next.
        let turns = &mut decided[FEEDBACK + SYNC_SYMBOLS..];
        if turn >= 3 {
            place(r, r.shift_right::<12>(best), ALL, turns, turn - 3);
        }
        if turn >= 2 {
            place(r, r.shift_right::<8>(best), ALL, turns, turn - 2);
        }
        if turn >= 1 {
            place(r, r.shift_right::<4>(best), ALL, turns, turn - 1);
        }
        place(r, best, CODERS, turns, turn);
    }
    decoders.keep_small(r);
    *trellis = decoders.store(r);
}

/// Writes the newest decisions of survivors as those of a row.
#[inline(always)]
fn place<R: Rows>(r: R, survivors: R::Whole, lanes: u16, turns: &mut [i16], turn: usize) {
    let bits = r.and(survivors, r.wholes(7));
    let levels = r.whole_add(r.shift_left::<1>(bits), r.wholes(-7));
    let row = turns[turn * TRELLIS_CODERS..].first_chunk_mut().expect("room for a turn");
    r.store_16(levels, lanes, row);
}

/// Returns the symbols `x` of a row without the echoes of earlier symbols, whose `sums` are known,
/// and of each other.
///
/// All are decided at once, and again after the echoes of these decisions are removed, until
/// nothing changes. The result is that of a sequential decision, but mostly takes two rounds.
#[inline(always)]
pub fn apply_feedback<R: Rows>(
    r: R,
    applied: &AppliedTaps,
    x: R::Float,
    sums: R::Float,
    ahead: R::Float,
) -> R::Float {
    let unit = r.floats(applied.unit);
    let mut y = r.sub(x, r.mul(sums, unit));
    if !applied.has_near {
        return y;
    }
    let mut levels = decide(r, y, ahead);
    for _ in 0..TRELLIS_CODERS {
        // Whole numbers that floats represent exactly, in any order.
        let each = r.store(levels);
        let (mut near, mut other) = (sums, r.floats(0.0));
        for (i, rows) in applied.near.in_chunks::<2>().0.iter().enumerate() {
            near = r.madd(r.load(&rows[0]), r.floats(each[2 * i]), near);
            other = r.madd(r.load(&rows[1]), r.floats(each[2 * i + 1]), other);
        }
        y = r.sub(x, r.mul(r.add(near, other), unit));
        let again = decide(r, y, ahead);
        if r.bits(r.differ(again, levels)) & CODERS == 0 {
            break;
        }
        levels = again;
    }
    y
}

/// Returns for every coder the likelier of the nearest level with Z0 = 0 and the nearest with Z0 =
/// 1, when the previous states that lead to the second are worse by `ahead`.
#[inline(always)]
pub fn decide<R: Rows>(r: R, y: R::Float, ahead: R::Float) -> R::Float {
    let [low, high] = [nearest(r, y, -7.0), nearest(r, y, -5.0)];
    let [off_low, off_high] = [r.sub(y, low), r.sub(y, high)];
    let if_high = r.add(r.mul(off_high, off_high), ahead);
    r.choose(r.less(if_high, r.mul(off_low, off_low)), high, low)
}

/// Returns the nearest of four levels, four apart, the first of which is `first`.
#[inline(always)]
fn nearest<R: Rows>(r: R, y: R::Float, first: f32) -> R::Float {
    // Adding this number rounds small numbers to integers.
    let round = r.floats(12_582_912.0);
    let step = r.mul(r.sub(y, r.floats(first)), r.floats(0.25));
    let step = r.min(r.max(step, r.floats(0.0)), r.floats(3.0));
    let step = r.sub(r.add(step, round), round);
    r.add(r.mul(step, r.floats(4.0)), r.floats(first))
}
