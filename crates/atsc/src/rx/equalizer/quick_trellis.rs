//! Short decoders of the twelve coders, a few symbols deep, for decision feedback.

use crate::params::TRELLIS_CODERS;
use millstream_dsp::rows::{LANES, Rows};

const STATES: usize = 4;

/// A number for every coder, in the order of the current segment, padded to a whole row.
pub type Row = [f32; LANES];

/// Decoders in the order of the current segment.
#[derive(Clone, Copy, Debug)]
pub struct Trellis {
    metrics: [Row; STATES],
    /// The survivors' last eight symbols as bits, newest in the low nibble.
    survivors: [[i32; LANES]; STATES],
}

impl Trellis {
    /// Creates decoders without history.
    pub fn new() -> Self {
        Self { metrics: [[0.0; LANES]; STATES], survivors: [[0; LANES]; STATES] }
    }

    /// Moves every coder's decoder to its position in the next segment's order.
    pub fn rotate(&mut self, by: usize) {
        for (metrics, survivors) in self.metrics.iter_mut().zip(&mut self.survivors) {
            metrics[..TRELLIS_CODERS].rotate_left(by);
            survivors[..TRELLIS_CODERS].rotate_left(by);
        }
    }
}

/// The decoders in registers, during the work.
#[derive(Clone, Copy, Debug)]
pub struct QuickDecoders<R: Rows> {
    metrics: [R::Float; STATES],
    survivors: [R::Whole; STATES],
}

impl<R: Rows> QuickDecoders<R> {
    /// Loads the decoders into registers.
    #[inline(always)]
    pub fn load(r: R, trellis: &Trellis) -> Self {
        let [a, b, c, d] = &trellis.metrics;
        let metrics = [r.load(a), r.load(b), r.load(c), r.load(d)];
        let [a, b, c, d] = &trellis.survivors;
        let survivors = [r.load_wholes(a), r.load_wholes(b), r.load_wholes(c), r.load_wholes(d)];
        Self { metrics, survivors }
    }

    /// Stores the decoders.
    #[inline(always)]
    pub fn store(&self, r: R) -> Trellis {
        let [a, b, c, d] = self.metrics;
        let metrics = [r.store(a), r.store(b), r.store(c), r.store(d)];
        let [a, b, c, d] = self.survivors;
        let survivors =
            [r.store_wholes(a), r.store_wholes(b), r.store_wholes(c), r.store_wholes(d)];
        Trellis { metrics, survivors }
    }

    /// Returns the metric of the best state with D1 = 1 minus that of the best with D1 = 0, for
    /// each coder.
    #[inline(always)]
    pub fn ahead(&self, r: R) -> R::Float {
        let [a, b, c, d] = self.metrics;
        r.sub(r.min(c, d), r.min(a, b))
    }

    /// Processes one symbol of every coder; see [`crate::code::viterbi`] for the states.
    #[inline(always)]
    pub fn step(&mut self, r: R, y: R::Float) {
        let (mut distance, mut bits) = ([y; STATES], [r.wholes(0); STATES]);
        for pair in 0..STATES {
            let from_middle = r.sub(y, r.floats(2.0 * pair as f32 - 3.0));
            let off = r.sub(r.abs(from_middle), r.floats(4.0));
            distance[pair] = r.mul(off, off);
            let above = r.less(r.floats(0.0), from_middle);
            bits[pair] = r.choose_whole(above, r.wholes(pair as i32 | 4), r.wholes(pair as i32));
        }
        let Self { metrics: old_m, survivors: old_s } = *self;
        for next in 0..STATES {
            let (from_0, from_1) = ((next & 1) << 1, (next & 1) << 1 | 1);
            let (pair_0, pair_1) = (next, next ^ 2);
            let metric_0 = r.add(old_m[from_0], distance[pair_0]);
            let metric_1 = r.add(old_m[from_1], distance[pair_1]);
            let a = r.or(r.shift_left::<4>(old_s[from_0]), bits[pair_0]);
            let b = r.or(r.shift_left::<4>(old_s[from_1]), bits[pair_1]);
            self.metrics[next] = r.min(metric_1, metric_0);
            self.survivors[next] = r.choose_whole(r.less(metric_1, metric_0), b, a);
        }
    }

    /// Returns the best state's survivor of every coder.
    #[inline(always)]
    pub fn best(&self, r: R) -> R::Whole {
        let first = self.better(r, 0, 1);
        let second = self.better(r, 2, 3);
        r.choose_whole(r.less(second.0, first.0), second.1, first.1)
    }

    #[inline(always)]
    fn better(&self, r: R, a: usize, b: usize) -> (R::Float, R::Whole) {
        let Self { metrics: m, survivors: s } = self;
        (r.min(m[b], m[a]), r.choose_whole(r.less(m[b], m[a]), s[b], s[a]))
    }

    /// Subtracts the least metric, because metrics only grow.
    #[inline(always)]
    pub fn keep_small(&mut self, r: R) {
        let [a, b, c, d] = self.metrics;
        let least = r.min(r.min(a, b), r.min(c, d));
        for metrics in &mut self.metrics {
            *metrics = r.sub(*metrics, least);
        }
    }
}
