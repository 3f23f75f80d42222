//! Decision feedback with decisions by the trellis code.
//!
//! The sum over old decisions is computed for twelve symbols at a time, one of each coder. Every
//! symbol is decided by its own coder's decoder after the echoes of earlier symbols are removed:
//! the coder's state leaves four of the eight levels, twice as far apart. The decoders correct
//! decisions for four rows of twelve, as they get more symbols.
//!
//! Taps and decisions are whole numbers: sums of their products are exact, and every copy of the
//! kernel gives the same bits.

use super::applied_taps::{AppliedTaps, FeedbackTaps, GROUP};
use super::design::FEEDBACK;
use super::forward::{Errors, Slopes};
use super::quick_trellis::Trellis;
use super::turns::{CORRECTED_TURNS, run};
use crate::field::SEGMENT_SYNC;
use crate::params::{DATA_POWER, SEGMENT_SYMBOLS, TRELLIS_CODERS};
use millstream_dsp::chunks::Chunks;
use millstream_dsp::pairs::{add_products, round};
use millstream_dsp::rows::LANES;

/// Coders by which the order advances with every segment.
const MOVE: usize = 4;

const GROUPS: usize = FEEDBACK / GROUP;

/// Groups whose sums use decisions that the previous row may still change.
const NEAR_GROUPS: usize = (CORRECTED_TURNS * TRELLIS_CODERS + LANES).div_ceil(GROUP);

/// The integer value of the largest tap.
const LARGEST: f32 = 32_767.0;

/// The decision-feedback part of the equaliser.
#[derive(Clone, Debug)]
pub struct Feedback {
    /// Taps in the order of time: `taps[i]` is for the decision `FEEDBACK - i` symbols ago.
    pub taps: [f32; FEEDBACK],
    active: [bool; GROUPS],
    applied: AppliedTaps,
    /// `FEEDBACK` decisions before the segment, those of the segment, and room for one row of
    /// twelve.
    decided: Vec<i16>,
    trellis: Trellis,
}

impl Feedback {
    /// Creates feedback without taps.
    pub fn new() -> Self {
        Self {
            taps: [0.0; FEEDBACK],
            active: [false; GROUPS],
            applied: AppliedTaps {
                groups: Vec::with_capacity(GROUPS),
                far: 0,
                near: [[0.0; LANES]; TRELLIS_CODERS],
                has_near: false,
                unit: 0.0,
            },
            decided: vec![0; FEEDBACK + SEGMENT_SYMBOLS + GROUP],
            trellis: Trellis::new(),
        }
    }

    /// Clears decisions and decoders.
    pub fn restart(&mut self) {
        self.decided.fill(0);
        self.trellis = Trellis::new();
    }

    /// Drops groups of taps that change the symbols' mean square by less than `least`.
    pub fn prune(&mut self, least: f32) {
        for (group, active) in self.taps.in_chunks_mut::<GROUP>().0.iter_mut().zip(&mut self.active)
        {
            let power = group.iter().map(|tap| tap * tap).sum::<f32>();
            *active = power * DATA_POWER > least;
            if !*active {
                group.fill(0.0);
            }
        }
        self.applied.take(&self.taps, &self.active);
    }

    /// Returns the sum of the squared taps.
    pub fn power(&self) -> f64 {
        self.taps.iter().map(|tap| f64::from(tap * tap)).sum()
    }

    /// Returns the number of groups of taps in use.
    #[cfg(test)]
    pub fn groups(&self) -> usize {
        self.applied.groups.len()
    }

    /// Moves the taps in use against the errors of the last segment; returns the slopes.
    pub fn adapt(&mut self, errors: &Errors, step: f32) -> Slopes {
        let mut slopes = Slopes::default();
        let mut slope = [0.0; GROUP];
        for (g, taps) in self.taps.in_chunks_mut::<GROUP>().0.iter_mut().enumerate() {
            if self.active[g] {
                errors.correlate(&self.decided[g * GROUP..], 1.0, &mut slope);
                taps.iter_mut().zip(&slope).for_each(|(tap, slope)| *tap += step * slope);
                slopes.add(&slope);
            }
        }
        self.applied.take(&self.taps, &self.active);
        slopes
    }

    /// Returns the decisions before the last segment that feedback taps use.
    pub fn before(&self) -> &[i16; FEEDBACK] {
        self.decided.first_chunk().expect("a longer row")
    }

    /// Decisions of the last segment.
    pub fn decided(&self) -> &[i16; SEGMENT_SYMBOLS] {
        self.decided[FEEDBACK..].first_chunk().expect("a longer row")
    }

    /// Removes the echoes of earlier symbols from the first ones of a segment, which are known.
    pub fn known(&mut self, symbols: &mut [f32], levels: &[f32]) {
        round(levels, 1.0, &mut self.decided[FEEDBACK..]);
        for (k, symbols) in symbols[..levels.len()].chunks_mut(LANES).enumerate() {
            let sums = self.applied.sums(&self.applied.groups, &self.decided[k * LANES..]);
            for (symbol, sum) in symbols.iter_mut().zip(sums) {
                *symbol -= sum as f32 * self.applied.unit;
            }
        }
    }

    /// Removes the echoes from symbols from `first` on, each decided by `decide` (position and
    /// value to level) before the next.
    pub fn one_by_one(
        &mut self,
        symbols: &mut [f32; SEGMENT_SYMBOLS],
        first: usize,
        decide: impl Fn(usize, f32) -> f32,
    ) {
        for (n, symbol) in symbols.iter_mut().enumerate().skip(first) {
            let sums = self.applied.sums(&self.applied.groups, &self.decided[n..]);
            *symbol -= sums[0] as f32 * self.applied.unit;
            self.decided[FEEDBACK + n] = decide(n, *symbol) as i16;
        }
    }

    /// Removes the echoes of earlier symbols from a data segment's symbols.
    pub fn data(&mut self, symbols: &mut [f32; SEGMENT_SYMBOLS]) {
        self.known(symbols, &SEGMENT_SYNC);
        let data = symbols.last_chunk_mut().expect("a segment is longer than its data");
        let Self { applied, decided, trellis, .. } = self;
        run(applied, decided, trellis, data);
        trellis.rotate(MOVE);
    }

    /// Moves the last segment's decisions to the position before the next segment.
    pub fn next_segment(&mut self) {
        self.decided.copy_within(SEGMENT_SYMBOLS..SEGMENT_SYMBOLS + FEEDBACK, 0);
        self.decided[FEEDBACK..].fill(0);
    }
}

impl AppliedTaps {
    /// Rounds taps.
    fn take(&mut self, taps: &[f32; FEEDBACK], active: &[bool; GROUPS]) {
        let mut peaks = [1e-6; LANES];
        for taps in taps.in_chunks::<LANES>().0 {
            for (peak, tap) in peaks.iter_mut().zip(taps) {
                *peak = if tap.abs() > *peak { tap.abs() } else { *peak };
            }
        }
        let scale = LARGEST / peaks.into_iter().fold(0.0, f32::max);
        self.unit = 1.0 / scale;
        self.groups.clear();
        for (g, taps) in taps.in_chunks::<GROUP>().0.iter().enumerate() {
            if active[g] {
                let mut group = FeedbackTaps { start: g * GROUP, taps: [[0; 2]; GROUP / 2] };
                round(taps, scale, group.taps.as_flattened_mut());
                self.groups.push(group);
            }
        }
        let is_far = |group: &FeedbackTaps| group.start + NEAR_GROUPS * GROUP < FEEDBACK;
        self.far = self.groups.iter().filter(|group| is_far(group)).count();
        let last = self.groups.last().filter(|group| group.start + GROUP == FEEDBACK);
        self.has_near = last.is_some();
        self.near = [[0.0; LANES]; TRELLIS_CODERS];
        if let Some(last) = last {
            let taps = last.taps.as_flattened();
            for (i, row) in self.near.iter_mut().enumerate() {
                for (lane, tap) in row.iter_mut().enumerate().take(TRELLIS_CODERS).skip(i + 1) {
                    *tap = f32::from(taps[GROUP + i - lane]);
                }
            }
        }
    }

    /// Returns the contribution of the decisions from here on to the symbols `FEEDBACK` positions
    /// later.
    #[inline(always)]
    fn sums(&self, groups: &[FeedbackTaps], decided: &[i16]) -> [i32; LANES] {
        let mut sums = [0; LANES];
        add_products(groups, decided, &mut sums);
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::super::quick_trellis::Row;
    use super::super::turns::{apply_feedback, decide, run_plain};
    use super::*;
    use millstream_dsp::noise::Noise;
    use millstream_dsp::rows::Plain;
    use millstream_testkit::cost;

    /// Computes the result of [`settle`] one symbol after the other.
    fn settle_one_by_one(applied: &AppliedTaps, x: &Row, sums: &Row, ahead: &Row) -> Row {
        let mut near = *sums;
        let mut y = [0.0; LANES];
        for i in 0..TRELLIS_CODERS {
            y[i] = x[i] - near[i] * applied.unit;
            let level = decide(Plain, [y[i]; LANES], [ahead[i]; LANES])[0];
            (i + 1..TRELLIS_CODERS).for_each(|lane| near[lane] += applied.near[i][lane] * level);
        }
        y
    }

    #[test]
    fn deciding_all_at_once_ends_where_deciding_one_by_one_does() {
        let (mut noise, mut feedback) = (Noise::new(8), Feedback::new());
        for echo in [0.01, 0.1, 0.5, 0.9] {
            let taps = feedback.taps.last_chunk_mut::<GROUP>().unwrap();
            taps.fill_with(|| echo * noise.gaussian());
            feedback.prune(0.0);
            for _ in 0..2000 {
                let mut row =
                    |scale: f32| -> Row { std::array::from_fn(|_| scale * noise.gaussian()) };
                let (x, sums, ahead) = (row(5.0), row(1e5).map(f32::round), row(3.0));
                let y = apply_feedback(Plain, &feedback.applied, x, sums, ahead);
                let exact = settle_one_by_one(&feedback.applied, &x, &sums, &ahead);
                assert_eq!(y[..TRELLIS_CODERS], exact[..TRELLIS_CODERS], "echo of {echo}");
            }
        }
    }

    #[test]
    fn the_fast_copies_give_the_same_bits() {
        let (mut noise, mut plain) = (Noise::new(9), Feedback::new());
        plain.taps.fill_with(|| 0.05 * noise.gaussian());
        plain.prune(0.0);
        let mut fast = plain.clone();
        for _ in 0..3 {
            let symbols: [f32; SEGMENT_SYMBOLS] = std::array::from_fn(|_| 5.0 * noise.gaussian());
            let (mut by_plain, mut by_fast) = (symbols, symbols);
            plain.known(&mut by_plain, &SEGMENT_SYNC);
            let data = by_plain.last_chunk_mut().unwrap();
            run_plain::<false>(&plain.applied, &mut plain.decided, &mut plain.trellis, data);
            plain.trellis.rotate(MOVE);
            fast.data(&mut by_fast);
            assert!(by_fast == by_plain && fast.decided == plain.decided);
            plain.next_segment();
            fast.next_segment();
        }
    }

    #[test]
    #[ignore = "counted by docs/evidence/arm64_cost.py"]
    fn cost_of_the_feedback() {
        let (mut noise, mut plain) = (Noise::new(9), Feedback::new());
        plain.taps.fill_with(|| 0.05 * noise.gaussian());
        plain.prune(0.0);
        let mut fast = plain.clone();
        let symbols = std::array::from_fn(|n| (2 * (n * 7919 % 8)) as f32 - 7.0);
        let [mut by_plain, mut by_fast] = [symbols; 2];
        cost::repeat(
            || {
                by_plain = symbols;
                let Feedback { applied, decided, trellis, .. } = &mut plain;
                run_plain::<{ cost::FUSED }>(applied, decided, trellis, &mut by_plain);
            },
            || {
                by_fast = symbols;
                let Feedback { applied, decided, trellis, .. } = &mut fast;
                run(applied, decided, trellis, &mut by_fast);
            },
        );
        assert!(by_plain != symbols || by_fast != symbols);
    }
}
