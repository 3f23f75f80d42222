//! Decision feedback with decisions that know the trellis code.
//!
//! The sum over old decisions is made for twelve symbols at a time. Within these twelve, one of
//! each coder, every symbol is decided by its own coder's decoder before the next is looked at: the
//! coder's state leaves four of the eight levels, twice as far apart. Decisions are corrected for
//! four turns as the decoders learn more.

use super::design::FEEDBACK;
use crate::params::{DATA_SYMBOLS, SEGMENT_SYMBOLS, SYNC_SYMBOLS, TRELLIS_CODERS};
use millstream_dsp::fir::correlate;
use millstream_dsp::{multiversion, simd::madd};

/// Lanes: twelve coders, filled up to whole vectors.
const LANES: usize = 16;

/// Coders by which the turn order moves on with every segment.
const MOVE: usize = 4;

/// Feedback taps that are left out together where there is no echo.
pub const GROUP: usize = 32;

const GROUPS: usize = FEEDBACK / GROUP;

/// Turns for which decisions are corrected.
const CORRECTED_TURNS: usize = 4;

const STATES: usize = 4;

type Row = [f32; LANES];

/// The decision-feedback part of the equaliser.
#[derive(Clone, Debug)]
pub struct Feedback {
    /// Taps in the order of time: `taps[i]` is for the decision `FEEDBACK - i` symbols ago.
    pub taps: [f32; FEEDBACK],
    active: [bool; GROUPS],
    /// `FEEDBACK` decisions before the segment, those of the segment, and room for a turn.
    decided: Vec<f32>,
    trellis: Trellis,
}

/// Decoders in the turn order of the segment at hand.
#[derive(Clone, Copy, Debug)]
struct Trellis {
    metrics: [Row; STATES],
    /// The survivors' last eight symbols as bits, newest in the low nibble.
    survivors: [[u32; LANES]; STATES],
}

impl Feedback {
    /// Without any tap.
    pub fn new() -> Self {
        Self {
            taps: [0.0; FEEDBACK],
            active: [false; GROUPS],
            decided: vec![0.0; FEEDBACK + SEGMENT_SYMBOLS + LANES],
            trellis: Trellis::new(),
        }
    }

    /// Forgets decisions and decoders.
    pub fn restart(&mut self) {
        self.decided.fill(0.0);
        self.trellis = Trellis::new();
    }

    /// Leaves groups of taps out that do less than `least` to the symbols' mean square.
    pub fn prune(&mut self, least: f32) {
        for (group, active) in self.taps.as_chunks_mut::<GROUP>().0.iter_mut().zip(&mut self.active)
        {
            let power = group.iter().map(|tap| tap * tap).sum::<f32>();
            *active = power * crate::params::DATA_POWER > least;
            if !*active {
                group.fill(0.0);
            }
        }
    }

    /// The groups of taps in use, by their first tap.
    pub fn active(&self) -> impl Iterator<Item = usize> + '_ {
        (0..GROUPS).filter(|g| self.active[*g]).map(|g| g * GROUP)
    }

    /// The sum of the squared taps.
    pub fn power(&self) -> f64 {
        self.taps.iter().map(|tap| f64::from(tap * tap)).sum()
    }

    /// Moves the taps in use against the errors that the last segment has shown.
    pub fn adapt(&mut self, errors: &[f32; SEGMENT_SYMBOLS], step: f32) {
        let mut slope = [0.0; GROUP];
        for (g, taps) in self.taps.as_chunks_mut::<GROUP>().0.iter_mut().enumerate() {
            if self.active[g] {
                correlate(errors, &self.decided[g * GROUP..], &mut slope);
                taps.iter_mut().zip(&slope).for_each(|(tap, slope)| *tap += step * slope);
            }
        }
    }

    /// Decisions of the last segment, with those that its feedback taps reach back to.
    pub fn decided(&self) -> &[f32] {
        &self.decided[..FEEDBACK + SEGMENT_SYMBOLS]
    }

    /// Takes the echoes of earlier symbols out of a segment's symbols, one known or decided by
    /// `decide` (place and value to level) after the other.
    pub fn plain(
        &mut self,
        symbols: &mut [f32; SEGMENT_SYMBOLS],
        decide: &dyn Fn(usize, f32) -> f32,
    ) {
        self.one_by_one(symbols, 0..SEGMENT_SYMBOLS, decide);
    }

    /// Takes the echoes of earlier symbols out of a data segment's symbols.
    pub fn data(&mut self, symbols: &mut [f32; SEGMENT_SYMBOLS]) {
        self.one_by_one(symbols, 0..SYNC_SYMBOLS, &|n, _| crate::field::SEGMENT_SYNC[n]);
        let data = symbols.last_chunk_mut().expect("a segment is longer than its data");
        run(self, data);
        self.trellis.turn(MOVE);
    }

    /// Makes the last segment's decisions those before the next one.
    pub fn next_segment(&mut self) {
        self.decided.copy_within(SEGMENT_SYMBOLS..SEGMENT_SYMBOLS + FEEDBACK, 0);
        self.decided[FEEDBACK..].fill(0.0);
    }

    fn one_by_one(
        &mut self,
        symbols: &mut [f32],
        places: std::ops::Range<usize>,
        decide: &dyn Fn(usize, f32) -> f32,
    ) {
        for n in places {
            let mut sum = 0.0;
            for group in self.active() {
                let taps = &self.taps[group..group + GROUP];
                let decided = &self.decided[n + group..];
                sum += taps.iter().zip(decided).map(|(tap, d)| tap * d).sum::<f32>();
            }
            symbols[n] -= sum;
            self.decided[FEEDBACK + n] = decide(n, symbols[n]);
        }
    }

    /// What a decision does to the symbols of the same turn after it: row by its place.
    fn near(&self) -> [Row; TRELLIS_CODERS] {
        let tap = |ago: usize| self.taps[FEEDBACK - ago];
        std::array::from_fn(|i| {
            std::array::from_fn(
                |lane| {
                    if lane > i && lane < TRELLIS_CODERS { tap(lane - i) } else { 0.0 }
                },
            )
        })
    }
}

impl Trellis {
    /// Decoders that know nothing.
    fn new() -> Self {
        Self { metrics: [[0.0; LANES]; STATES], survivors: [[0; LANES]; STATES] }
    }

    /// Moves every coder's decoder forward to its place in the next segment's turn order.
    fn turn(&mut self, by: usize) {
        for (metrics, survivors) in self.metrics.iter_mut().zip(&mut self.survivors) {
            metrics[..TRELLIS_CODERS].rotate_left(by);
            survivors[..TRELLIS_CODERS].rotate_left(by);
        }
    }
}

multiversion! {
    fn run(feedback: &mut Feedback, data: &mut [f32; DATA_SYMBOLS]) = run_body;
}

#[inline(always)]
fn run_body<const FMA: bool>(feedback: &mut Feedback, data: &mut [f32; DATA_SYMBOLS]) {
    let near = feedback.near();
    let mut trellis = feedback.trellis;
    let mut groups = [0; GROUPS];
    let mut count = 0;
    for group in feedback.active() {
        groups[count] = group;
        count += 1;
    }
    let Feedback { taps, decided, .. } = feedback;
    for (turn, symbols) in data.as_chunks_mut::<TRELLIS_CODERS>().0.iter_mut().enumerate() {
        let start = SYNC_SYMBOLS + turn * TRELLIS_CODERS;
        let mut y = [0.0; LANES];
        y[..TRELLIS_CODERS].copy_from_slice(symbols);
        for group in &groups[..count] {
            subtract_group::<FMA>(&taps[*group..], &decided[start + group..], &mut y);
        }
        let levels = decide_turn::<FMA>(&mut y, &trellis.ahead(), &near);
        symbols.copy_from_slice(&y[..TRELLIS_CODERS]);
        let now = FEEDBACK + start;
        decided[now..now + TRELLIS_CODERS].copy_from_slice(&levels[..TRELLIS_CODERS]);
        trellis.step(&y);
        let best = trellis.best();
        for ago in 0..CORRECTED_TURNS.min(turn + 1) {
            let at = now - ago * TRELLIS_CODERS;
            for (lane, out) in decided[at..at + TRELLIS_CODERS].iter_mut().enumerate() {
                *out = (best[lane] >> (4 * ago) & 7) as f32 * 2.0 - 7.0;
            }
        }
    }
    trellis.keep_small();
    feedback.trellis = trellis;
}

#[inline(always)]
fn subtract_group<const FMA: bool>(taps: &[f32], decided: &[f32], y: &mut Row) {
    let taps: &[f32; GROUP] = taps.first_chunk().expect("a whole group");
    let decided: &[f32; GROUP + LANES] = decided.first_chunk().expect("room for a turn");
    for (i, tap) in taps.iter().enumerate() {
        for lane in 0..LANES {
            y[lane] = madd::<FMA>(-*tap, decided[i + lane], y[lane]);
        }
    }
}

/// Decides the symbols of a turn one after the other, each without the ones before it.
#[inline(always)]
fn decide_turn<const FMA: bool>(y: &mut Row, ahead: &Row, near: &[Row; TRELLIS_CODERS]) -> Row {
    let mut levels = [0.0; LANES];
    for i in 0..TRELLIS_CODERS {
        let level = decide(y[i], ahead[i]);
        levels[i] = level;
        for lane in i + 1..TRELLIS_CODERS {
            y[lane] = madd::<FMA>(-near[i][lane], level, y[lane]);
        }
    }
    levels
}

/// The likelier of the nearest level with Z0 = 0 and the nearest with Z0 = 1, when the states
/// before that lead to the second are worse by `ahead`.
#[inline(always)]
fn decide(y: f32, ahead: f32) -> f32 {
    let [low, high] = [nearest(y, -7.0), nearest(y, -5.0)];
    let [off_low, off_high] = [y - low, y - high];
    if off_high * off_high + ahead < off_low * off_low { high } else { low }
}

/// The nearest of four levels, four apart, the first of which is `first`.
#[inline(always)]
fn nearest(y: f32, first: f32) -> f32 {
    /// Adding this rounds small numbers to whole ones.
    const ROUND: f32 = 12_582_912.0;
    let step = ((y - first) * 0.25).clamp(0.0, 3.0);
    (step + ROUND - ROUND) * 4.0 + first
}

impl Trellis {
    /// By how much the best state with D1 = 1 is worse than the best with D1 = 0, for each coder.
    #[inline(always)]
    fn ahead(&self) -> Row {
        let m = &self.metrics;
        std::array::from_fn(|lane| m[2][lane].min(m[3][lane]) - m[0][lane].min(m[1][lane]))
    }

    /// One symbol for every coder; see [`crate::code::viterbi`] for the states.
    #[inline(always)]
    fn step(&mut self, y: &Row) {
        let mut distance = [[0.0; LANES]; STATES];
        let mut bits = [[0; LANES]; STATES];
        for pair in 0..STATES {
            let middle = 2.0 * pair as f32 - 3.0;
            for lane in 0..LANES {
                let from_middle = y[lane] - middle;
                let off = from_middle.abs() - 4.0;
                distance[pair][lane] = off * off;
                bits[pair][lane] = pair as u32 | u32::from(from_middle > 0.0) << 2;
            }
        }
        let (old_m, old_s) = (self.metrics, self.survivors);
        for next in 0..STATES {
            let (from_0, from_1) = ((next & 1) << 1, (next & 1) << 1 | 1);
            let (pair_0, pair_1) = (next, next ^ 2);
            for lane in 0..LANES {
                let metric_0 = old_m[from_0][lane] + distance[pair_0][lane];
                let metric_1 = old_m[from_1][lane] + distance[pair_1][lane];
                let take_1 = metric_1 < metric_0;
                self.metrics[next][lane] = if take_1 { metric_1 } else { metric_0 };
                let a = old_s[from_0][lane] << 4 | bits[pair_0][lane];
                let b = old_s[from_1][lane] << 4 | bits[pair_1][lane];
                self.survivors[next][lane] = if take_1 { b } else { a };
            }
        }
    }

    /// The best state's survivor of every coder.
    #[inline(always)]
    fn best(&self) -> [u32; LANES] {
        let (mut metric, mut best) = (self.metrics[0], self.survivors[0]);
        for state in 1..STATES {
            for lane in 0..LANES {
                let better = self.metrics[state][lane] < metric[lane];
                metric[lane] = if better { self.metrics[state][lane] } else { metric[lane] };
                best[lane] = if better { self.survivors[state][lane] } else { best[lane] };
            }
        }
        best
    }

    /// Metrics only grow: takes the least off.
    #[inline(always)]
    fn keep_small(&mut self) {
        let m = &self.metrics;
        let least: Row =
            std::array::from_fn(|lane| m[0][lane].min(m[1][lane]).min(m[2][lane]).min(m[3][lane]));
        for state in &mut self.metrics {
            for lane in 0..LANES {
                state[lane] -= least[lane];
            }
        }
    }
}
