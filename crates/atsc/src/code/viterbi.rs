//! Twelve Viterbi decoders side by side.
//!
//! Each trellis coder's code has four states and, for every transition, two parallel branches that
//! differ in Z2 and lie eight levels apart. The decoders run in lanes; the decisions of the last 32
//! symbols are kept per state in two words (register exchange), so nothing is traced back.

use crate::params::TRELLIS_CODERS;
use millstream_dsp::multiversion;

/// Lanes: the twelve decoders, filled up for whole vectors.
const LANES: usize = 16;

/// Symbols of one decoder between its input and the last of a byte's four decided symbols.
pub const DELAY_SYMBOLS: usize = 32 - 4;

const STATES: usize = 4;

type Metrics = [f32; LANES];
type History = [u32; LANES];

/// The decoders. A state is the coder's D1 in bit 1 and D0 in bit 0.
#[derive(Clone, Debug)]
pub struct Decoders {
    metrics: [Metrics; STATES],
    /// Decisions on X1, newest in bit 0.
    x1: [History; STATES],
    /// Decisions on Z2.
    z2: [History; STATES],
    /// Z2 before the symbols that the next byte is made of.
    last_z2: [u8; TRELLIS_CODERS],
}

impl Decoders {
    /// Decoders that know nothing.
    #[must_use]
    pub fn new() -> Self {
        Self {
            metrics: [[0.0; LANES]; STATES],
            x1: [[0; LANES]; STATES],
            z2: [[0; LANES]; STATES],
            last_z2: [0; TRELLIS_CODERS],
        }
    }

    /// Says what Z2 of every coder was just before the first symbol.
    pub fn set_last_z2(&mut self, last_z2: [bool; TRELLIS_CODERS]) {
        self.last_z2 = last_z2.map(u8::from);
    }

    /// Takes turns of twelve symbols, the first of each turn from coder `first`.
    ///
    /// # Panics
    /// In debug builds, if the symbols are no whole number of turns.
    pub fn push(&mut self, first: usize, symbols: &[f32]) {
        debug_assert!(symbols.len().is_multiple_of(TRELLIS_CODERS), "whole turns");
        debug_assert!(first < TRELLIS_CODERS, "a coder");
        run(self, first, symbols);
    }

    /// The bytes of the coders, decided from the oldest four of the last 32 symbols.
    pub fn oldest_bytes(&mut self) -> [u8; TRELLIS_CODERS] {
        std::array::from_fn(|lane| {
            let better = |a: usize, b: usize| self.metrics[b][lane] < self.metrics[a][lane];
            let best = (1..STATES).fold(0, |best, s| if better(best, s) { s } else { best });
            let [x1, z2] = [&self.x1, &self.z2].map(|h| (h[best][lane] >> 28) as u8);
            // The precoder's inverse: X2 = Z2 + Z2 of the symbol before.
            let x2 = z2 ^ (z2 >> 1 | self.last_z2[lane] << 3);
            self.last_z2[lane] = z2 & 1;
            SPREAD[x2 as usize] << 1 | SPREAD[x1 as usize]
        })
    }
}

impl Default for Decoders {
    fn default() -> Self {
        Self::new()
    }
}

/// Four bits moved to the even places of a byte.
const SPREAD: [u8; 16] = {
    let mut table = [0; 16];
    let mut n = 0;
    while n < 16 {
        table[n] = (n & 1 | (n & 2) << 1 | (n & 4) << 2 | (n & 8) << 3) as u8;
        n += 1;
    }
    table
};

multiversion! {
    fn run(decoders: &mut Decoders, first: usize, symbols: &[f32]) = run_body;
}

#[inline(always)]
fn run_body<const FMA: bool>(decoders: &mut Decoders, first: usize, symbols: &[f32]) {
    let Decoders { metrics, x1, z2, .. } = decoders;
    let (mut m, mut h1, mut h2) = (*metrics, *x1, *z2);
    for turn in symbols.as_chunks::<TRELLIS_CODERS>().0 {
        // Put the turn in the order of the coders; unused lanes repeat symbols.
        let mut y = [0.0; LANES];
        y[..TRELLIS_CODERS - first].copy_from_slice(&turn[..TRELLIS_CODERS - first]);
        y[TRELLIS_CODERS - first..TRELLIS_CODERS].copy_from_slice(&turn[TRELLIS_CODERS - first..]);
        y[..TRELLIS_CODERS].rotate_right(first);
        step(&y, &mut m, &mut h1, &mut h2);
    }
    // Metrics only grow: keep them small.
    let lowest: Metrics = std::array::from_fn(|i| m[0][i].min(m[1][i]).min(m[2][i]).min(m[3][i]));
    for state in &mut m {
        for lane in 0..LANES {
            state[lane] -= lowest[lane];
        }
    }
    (*metrics, *x1, *z2) = (m, h1, h2);
}

/// One symbol for every decoder.
#[inline(always)]
fn step(
    y: &Metrics,
    m: &mut [Metrics; STATES],
    h1: &mut [History; STATES],
    h2: &mut [History; STATES],
) {
    // For each pair Z1 Z0 the squared distance to the nearer of its two levels, and that one's Z2.
    let mut distance = [[0.0; LANES]; STATES];
    let mut upper = [[0; LANES]; STATES];
    for pair in 0..STATES {
        let middle = 2.0 * pair as f32 - 3.0;
        for lane in 0..LANES {
            let from_middle = y[lane] - middle;
            let off = from_middle.abs() - 4.0;
            distance[pair][lane] = off * off;
            upper[pair][lane] = u32::from(from_middle > 0.0);
        }
    }
    let (old_m, old_h1, old_h2) = (*m, *h1, *h2);
    for next in 0..STATES {
        // D0 of the next state was D1, which is also Z0; its D1 is D0 + X1. So it is reached from
        // D0 = 0 with X1 = its D1 (branch pair `next`) and from D0 = 1 with the other X1.
        let (from_0, from_1) = ((next & 1) << 1, (next & 1) << 1 | 1);
        let (pair_0, pair_1) = (next, next ^ 2);
        let bit = (next >> 1) as u32;
        for lane in 0..LANES {
            let metric_0 = old_m[from_0][lane] + distance[pair_0][lane];
            let metric_1 = old_m[from_1][lane] + distance[pair_1][lane];
            let take_1 = metric_1 < metric_0;
            m[next][lane] = if take_1 { metric_1 } else { metric_0 };
            let (a1, b1) = (old_h1[from_0][lane] << 1 | bit, old_h1[from_1][lane] << 1 | (bit ^ 1));
            let a2 = old_h2[from_0][lane] << 1 | upper[pair_0][lane];
            let b2 = old_h2[from_1][lane] << 1 | upper[pair_1][lane];
            h1[next][lane] = if take_1 { b1 } else { a1 };
            h2[next][lane] = if take_1 { b2 } else { a2 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::trellis::{CoderState, level};

    /// Bytes of twelve coders, coded plainly, turn by turn.
    fn coded(bytes: &[[u8; TRELLIS_CODERS]]) -> Vec<f32> {
        let mut states = [CoderState::default(); TRELLIS_CODERS];
        let mut out = Vec::new();
        for group in bytes {
            for round in 0..4 {
                for (state, byte) in states.iter_mut().zip(group) {
                    let (next, symbol) = state.step(byte >> (6 - 2 * round) & 3);
                    *state = next;
                    out.push(f32::from(level(symbol)));
                }
            }
        }
        out
    }

    fn bytes(groups: usize) -> Vec<[u8; TRELLIS_CODERS]> {
        let byte = |n: usize| ((n as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8;
        (0..groups).map(|g| std::array::from_fn(|c| byte(g * TRELLIS_CODERS + c))).collect()
    }

    fn decode(symbols: &[f32]) -> Vec<[u8; TRELLIS_CODERS]> {
        let mut decoders = Decoders::new();
        let group = 4 * TRELLIS_CODERS;
        symbols
            .chunks_exact(group)
            .map(|turns| {
                decoders.push(0, turns);
                decoders.oldest_bytes()
            })
            .skip(DELAY_SYMBOLS / 4)
            .collect()
    }

    #[test]
    fn clean_symbols_decode_to_the_bytes_after_the_delay() {
        let sent = bytes(100);
        let received = decode(&coded(&sent));
        // The coders' first Z2 is not known in general: here it is zero, as the decoders assume.
        assert_eq!(received, sent[..received.len()]);
    }

    #[test]
    fn noise_beyond_half_the_level_distance_is_corrected() {
        let sent = bytes(200);
        let mut symbols = coded(&sent);
        // One symbol in 40 of each coder is off by 1.6: a plain slicer gets it wrong.
        for (n, symbol) in symbols.iter_mut().enumerate() {
            if (n / TRELLIS_CODERS + n).is_multiple_of(40) {
                *symbol += if n % 2 == 0 { 1.6 } else { -1.6 };
            }
        }
        assert_eq!(decode(&symbols), sent[..sent.len() - DELAY_SYMBOLS / 4]);
    }

    #[test]
    fn the_turn_order_is_followed() {
        let sent = bytes(50);
        let symbols = coded(&sent);
        for first in 0..TRELLIS_CODERS {
            let mut decoders = Decoders::new();
            let mut received = Vec::new();
            for turns in symbols.chunks_exact(4 * TRELLIS_CODERS) {
                let mut turned = turns.to_vec();
                turned.chunks_mut(TRELLIS_CODERS).for_each(|turn| turn.rotate_left(first));
                decoders.push(first, &turned);
                received.push(decoders.oldest_bytes());
            }
            assert_eq!(received[7..], sent[..43], "first coder {first}");
        }
    }

    #[test]
    fn the_fast_copy_decides_as_the_plain_one() {
        let mut symbols = coded(&bytes(100));
        for (n, symbol) in symbols.iter_mut().enumerate() {
            *symbol += ((n * 7919) % 1009) as f32 / 300.0 - 1.7;
        }
        let (mut fast, mut plain) = (Decoders::new(), Decoders::new());
        for turns in symbols.chunks_exact(4 * TRELLIS_CODERS) {
            fast.push(4, turns);
            run_body::<false>(&mut plain, 4, turns);
            assert_eq!(fast.oldest_bytes(), plain.oldest_bytes());
        }
    }
}
