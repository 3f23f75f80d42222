//! Twelve Viterbi decoders side by side.
//!
//! Each trellis coder's code has four states and, for every transition, two parallel branches that
//! differ in Z2 and lie eight levels apart. The decoders run in lanes of 16-bit integers. For every
//! row of twelve symbols a byte per decoder stores the decision of each state's survivor; one
//! traceback decides many rows.

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod wide;

use crate::params::{DATA_SYMBOLS, TRELLIS_CODERS};
use millstream_dsp::chunks::Chunks;
use millstream_dsp::multiversion;

/// Lanes: the twelve decoders, padded to whole vectors.
const LANES: usize = 16;

/// Symbols of one decoder that must follow a symbol before it is decided.
pub const DELAY_SYMBOLS: usize = 28;

/// Symbols of one decoder that make a byte.
pub const BYTE_SYMBOLS: usize = 4;

/// The most rows processed together: those of a segment.
const TURNS_MAX: usize = DATA_SYMBOLS / TRELLIS_CODERS;

/// The most rows that wait for a decision.
const PENDING_TURNS: usize = DELAY_SYMBOLS + BYTE_SYMBOLS + TURNS_MAX;

const STATES: usize = 4;

/// Steps per unit of level to which symbols are rounded. Rounding noise is 30 dB below the noise at
/// the threshold of reception, and the squares fit.
const SCALE: f32 = 16.0;
const CLIP: f32 = 12.0;

/// Bits dropped from squared distances.
const SHIFT: u32 = 4;

/// Rows between renormalisations of the metrics, which only grow.
const RENORMAL_TURNS: usize = 8;

type Row = [i16; LANES];

/// The decoders. A state is the coder's D1 in bit 1 and D0 in bit 0.
#[derive(Clone, Debug)]
pub struct Decoders {
    metrics: [Row; STATES],
    /// For every waiting row and every decoder: the predecessor of the two that each state took
    /// (bits 0 to 3), and Z2 of the nearer branch of each pair Z1 Z0 (bits 4 to 7).
    memory: Box<[[u8; LANES]; PENDING_TURNS]>,
    pending: usize,
    /// Z2 before the symbols of the next byte.
    last_z2: [u8; LANES],
}

impl Decoders {
    /// Creates decoders without history.
    #[must_use]
    pub fn new() -> Self {
        Self {
            metrics: [[0; LANES]; STATES],
            memory: Box::new([[0; LANES]; PENDING_TURNS]),
            pending: 0,
            last_z2: [0; LANES],
        }
    }

    /// Sets Z2 of every coder just before the first symbol.
    pub fn set_last_z2(&mut self, last_z2: [bool; TRELLIS_CODERS]) {
        self.last_z2[..TRELLIS_CODERS].copy_from_slice(&last_z2.map(u8::from));
    }

    /// Processes rows of twelve symbols, the first of each row from coder `first`, and passes on
    /// the bytes of the coders for every four decided rows.
    ///
    /// # Panics
    /// If there are more symbols than a segment has, and in debug builds, if they are not a whole
    /// number of rows.
    pub fn push(
        &mut self,
        first: usize,
        symbols: &[f32],
        on_bytes: &mut dyn FnMut([u8; TRELLIS_CODERS]),
    ) {
        debug_assert!(symbols.len() % TRELLIS_CODERS == 0, "whole turns");
        assert!(symbols.len() <= DATA_SYMBOLS, "no more than a segment");
        debug_assert!(first < TRELLIS_CODERS, "a coder");
        run(self, first, symbols);
        self.decide(DELAY_SYMBOLS, on_bytes);
    }

    /// Decides the waiting symbols without further ones, and passes on the bytes that are whole.
    pub fn finish(&mut self, on_bytes: &mut dyn FnMut([u8; TRELLIS_CODERS])) {
        self.decide(0, on_bytes);
    }

    /// Decides all but the last `delay` rows, in whole bytes.
    fn decide(&mut self, delay: usize, on_bytes: &mut dyn FnMut([u8; TRELLIS_CODERS])) {
        let count = self.pending.saturating_sub(delay) / BYTE_SYMBOLS * BYTE_SYMBOLS;
        if count == 0 {
            return;
        }
        let mut decisions = [[0; LANES]; PENDING_TURNS];
        follow(&self.memory[..self.pending], self.best(), &mut decisions[..count]);
        for turns in decisions[..count].in_chunks::<BYTE_SYMBOLS>().0 {
            on_bytes(join(turns, &mut self.last_z2));
        }
        self.memory.copy_within(count..self.pending, 0);
        self.pending -= count;
    }

    /// Returns the best state of every decoder.
    fn best(&self) -> [u32; LANES] {
        std::array::from_fn(|lane| {
            let better = |a: usize, b: usize| self.metrics[b][lane] < self.metrics[a][lane];
            (1..STATES).fold(0, |best, s| if better(best, s) { s } else { best }) as u32
        })
    }
}

impl Default for Decoders {
    fn default() -> Self {
        Self::new()
    }
}

/// Joins four decisions (Z2 in bit 1, Z1 in bit 0) of every coder to a byte, high bits first; the
/// precoder's inverse is X2 = Z2 + Z2 of the symbol before.
fn join(turns: &[[u8; LANES]; BYTE_SYMBOLS], last_z2: &mut [u8; LANES]) -> [u8; TRELLIS_CODERS] {
    let mut bytes = [0; LANES];
    for turn in turns {
        for lane in 0..LANES {
            let z2 = turn[lane] >> 1;
            bytes[lane] = bytes[lane] << 2 | (turn[lane] ^ last_z2[lane] << 1);
            last_z2[lane] = z2;
        }
    }
    *bytes.first_chunk().expect("more lanes than coders")
}

/// Processes rows of twelve symbols, the first of each row from coder `first`.
fn run(decoders: &mut Decoders, first: usize, symbols: &[f32]) {
    let mut rows = [[0; LANES]; TURNS_MAX];
    let rows = &mut rows[..symbols.len() / TRELLIS_CODERS];
    arrange(first, symbols, rows);
    let Decoders { metrics, memory, pending, .. } = decoders;
    let memory = &mut memory[*pending..*pending + rows.len()];
    *pending += rows.len();
    recur(metrics, rows, memory);
}

/// Runs the best copy of [`run_plain`] for this processor.
fn recur(metrics: &mut [Row; STATES], rows: &[Row], memory: &mut [[u8; LANES]]) {
    #[cfg(target_arch = "x86_64")]
    if millstream_dsp::simd::has_avx2_fma() {
        // SAFETY: the processor has the features that this is compiled for, as just checked.
        return unsafe { wide::run(metrics, rows, memory) };
    }
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    // SAFETY: every processor with AArch64 has the feature (NEON).
    return unsafe { neon::run(metrics, rows, memory) };
    #[cfg_attr(target_arch = "aarch64", allow(unreachable_code))]
    run_plain(metrics, rows, memory);
}

multiversion! {
    /// Rounds symbols and sorts every row in the order of the coders.
    fn arrange(first: usize, symbols: &[f32], rows: &mut [Row]) = arrange_body;
}

#[inline(always)]
fn arrange_body<const FMA: bool>(first: usize, symbols: &[f32], rows: &mut [Row]) {
    let mut rounded = [0i16; TRELLIS_CODERS * TURNS_MAX];
    for (y, symbol) in rounded.iter_mut().zip(symbols) {
        let clipped = symbol.clamp(-CLIP, CLIP);
        *y = (clipped * SCALE + ROUND).to_bits() as i16;
    }
    let turns = rounded.in_chunks().0;
    // The order is a constant, so two copies sort a row.
    match first {
        0 => order::<0>(turns, rows),
        4 => order::<4>(turns, rows),
        8 => order::<8>(turns, rows),
        _ => unreachable!("turns begin with coder 0, 4 or 8"),
    }
}

#[inline(always)]
fn order<const FIRST: usize>(turns: &[[i16; TRELLIS_CODERS]], rows: &mut [Row]) {
    for (turn, row) in turns.iter().zip(rows) {
        row[FIRST..TRELLIS_CODERS].copy_from_slice(&turn[..TRELLIS_CODERS - FIRST]);
        row[..FIRST].copy_from_slice(&turn[TRELLIS_CODERS - FIRST..]);
    }
}

/// Runs the reference implementation, lane by lane.
fn run_plain(metrics: &mut [Row; STATES], rows: &[Row], memory: &mut [[u8; LANES]]) {
    for (rows, memory) in rows.chunks(RENORMAL_TURNS).zip(memory.chunks_mut(RENORMAL_TURNS)) {
        for (y, memory) in rows.iter().zip(memory) {
            *memory = step(y, metrics);
        }
        let [a, b, c, d] = &*metrics;
        let least: Row = std::array::from_fn(|lane| a[lane].min(b[lane]).min(c[lane]).min(d[lane]));
        for state in metrics.iter_mut() {
            for lane in 0..LANES {
                state[lane] -= least[lane];
            }
        }
    }
}

/// Adding this rounds a small number to a whole one, and leaves it in the low bits.
const ROUND: f32 = 12_582_912.0;

/// Processes one symbol of every decoder; returns the row's bytes.
fn step(y: &Row, m: &mut [Row; STATES]) -> [u8; LANES] {
    // For each pair Z1 Z0: the squared distance to the nearer of its two levels, and Z2 of that
    // level.
    let mut distance = [[0i16; LANES]; STATES];
    let mut turn = [0i16; LANES];
    for (pair, distance) in distance.iter_mut().enumerate() {
        let middle = (2 * pair as i16 - 3) * SCALE as i16;
        for lane in 0..LANES {
            let from_middle = y[lane] - middle;
            let off = from_middle.abs() - 4 * SCALE as i16;
            distance[lane] = off.wrapping_mul(off) >> SHIFT;
            turn[lane] |= if from_middle > 0 { 16 << pair } else { 0 };
        }
    }
    let old = *m;
    for (next, m) in m.iter_mut().enumerate() {
        // D0 of the next state was D1, which is also Z0; its D1 is D0 + X1. So it is reached from
        // D0 = 0 with X1 = its D1 (branch pair `next`) and from D0 = 1 with the other X1.
        let (from_0, from_1) = ((next & 1) << 1, (next & 1) << 1 | 1);
        let (pair_0, pair_1) = (next, next ^ 2);
        for lane in 0..LANES {
            let metric_0 = old[from_0][lane] + distance[pair_0][lane];
            let metric_1 = old[from_1][lane] + distance[pair_1][lane];
            m[lane] = metric_0.min(metric_1);
            turn[lane] |= if metric_1 < metric_0 { 1 << next } else { 0 };
        }
    }
    turn.map(|bits| bits as u8)
}

/// Runs [`trace`] with the states of all lanes in a vector, where the processor can.
fn follow(memory: &[[u8; LANES]], state: [u32; LANES], decisions: &mut [[u8; LANES]]) {
    #[cfg(avx512)]
    if is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vl") {
        // SAFETY: the processor has the features that this is compiled for, as just checked.
        return unsafe { wide::trace(memory, state, decisions) };
    }
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    // SAFETY: every processor with AArch64 has the feature (NEON).
    return unsafe { neon::trace(memory, state, decisions) };
    #[cfg_attr(target_arch = "aarch64", allow(unreachable_code))]
    trace(memory, state, decisions);
}

multiversion! {
    /// Follows the survivors back from the last row's `state`; writes Z2 (bit 1) and Z1 (bit 0) of
    /// the first `decisions.len()` rows.
    fn trace(memory: &[[u8; LANES]], state: [u32; LANES], decisions: &mut [[u8; LANES]]) =
        trace_body;
}

#[inline(always)]
fn trace_body<const FMA: bool>(
    memory: &[[u8; LANES]],
    mut state: [u32; LANES],
    decisions: &mut [[u8; LANES]],
) {
    let (early, late) = memory.split_at(decisions.len());
    for turn in late.iter().rev() {
        back(turn, &mut state);
    }
    for (turn, decision) in early.iter().zip(decisions).rev() {
        *decision = back(turn, &mut state);
    }
}

/// Steps one row back; returns the decisions there.
#[inline(always)]
fn back(turn: &[u8; LANES], state: &mut [u32; LANES]) -> [u8; LANES] {
    let mut decision = [0; LANES];
    for lane in 0..LANES {
        let (bits, s) = (u32::from(turn[lane]), state[lane]);
        let take_1 = bits >> s & 1;
        let pair = s ^ take_1 << 1;
        let z2 = bits >> (4 + pair) & 1;
        decision[lane] = (z2 << 1 | pair >> 1) as u8;
        state[lane] = (s & 1) << 1 | take_1;
    }
    decision
}
