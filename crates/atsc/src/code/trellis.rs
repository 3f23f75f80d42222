//! The trellis coder and its precoder (A/53 Part 2, clause 5.4.2).
//!
//! Symbols go to twelve identical coders in rotation, and the rotation advances by four coders with
//! every data segment. Each coder takes whole bytes, two bits per symbol, high bits first; twelve
//! bytes at a time go to the coders in the order of the segment in which their symbols begin. Of
//! the pair (X2, X1), X2 passes the precoder (Z2 = X2 + Z2 of the coder's previous symbol) and X1
//! drives the four-state code: Z1 = X1, Z0 is the second delay element.

use crate::params::{DATA_SYMBOLS, TRELLIS_CODERS};

/// Data segments after which the order of the coders, bytes and segments align again.
pub const UNIT_SEGMENTS: usize = 4;

/// Bytes that [`UNIT_SEGMENTS`] segments carry.
pub const UNIT_BYTES: usize = UNIT_SEGMENTS * DATA_SYMBOLS / 4;

/// Symbols of a group: one byte for each coder.
pub const GROUP_SYMBOLS: usize = 4 * TRELLIS_CODERS;

/// A symbol as its three bits Z2 Z1 Z0; its level is `2 * bits - 7`.
pub type SymbolBits = u8;

/// Returns the level of a symbol.
#[inline]
#[must_use]
pub const fn level(bits: SymbolBits) -> i8 {
    2 * bits as i8 - 7
}

/// One coder's memory: Z2 of the last symbol in bit 2, delay elements D1 (next Z0) and D0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoderState(u8);

impl CoderState {
    /// Creates the state with these bits.
    #[cfg(test)]
    pub(super) const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// Returns the bits of the state.
    #[cfg(test)]
    pub(super) const fn bits(self) -> u8 {
        self.0
    }

    /// Codes two bits (X2 in bit 1, X1 in bit 0).
    #[inline]
    #[must_use]
    pub const fn step(self, pair: u8) -> (Self, SymbolBits) {
        let (z2, d1, d0) = (self.0 >> 2 ^ pair >> 1, self.0 >> 1 & 1, self.0 & 1);
        let x1 = pair & 1;
        // D0 takes the output Z0, D1 takes the old D0 plus X1.
        (Self(z2 << 2 | (d0 ^ x1) << 1 | d1), z2 << 2 | x1 << 1 | d1)
    }
}

/// For every state and byte: the four symbols, first in the low bits, and the state after.
static BYTE_STEPS: [[(u16, u8); 256]; 8] = byte_steps();

const fn byte_steps() -> [[(u16, u8); 256]; 8] {
    let mut table = [[(0, 0); 256]; 8];
    let mut start = 0;
    while start < 8 {
        let mut byte = 0;
        while byte < 256 {
            let mut state = CoderState(start as u8);
            let (mut symbols, mut round) = (0, 0);
            while round < 4 {
                let (next, bits) = state.step((byte >> (6 - 2 * round) & 3) as u8);
                symbols |= (bits as u16) << (3 * round);
                state = next;
                round += 1;
            }
            table[start][byte] = (symbols, state.0);
            byte += 1;
        }
        start += 1;
    }
    table
}

/// The twelve coders.
#[derive(Clone, Debug, Default)]
pub struct TrellisEncoder {
    states: [CoderState; TRELLIS_CODERS],
}

impl TrellisEncoder {
    /// Coders with all memory at zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Codes the interleaved bytes of four data segments, the first of which is segment
    /// `first_segment` of its field (a multiple of four).
    pub fn encode_unit(
        &mut self,
        first_segment: usize,
        bytes: &[u8; UNIT_BYTES],
        segments: &mut [[SymbolBits; DATA_SYMBOLS]; UNIT_SEGMENTS],
    ) {
        debug_assert!(first_segment % UNIT_SEGMENTS == 0, "units start every four");
        let symbols = segments.as_flattened_mut();
        for (group, bytes) in bytes.chunks_exact(TRELLIS_CODERS).enumerate() {
            let start = group * GROUP_SYMBOLS;
            let first = first_coder(first_segment + start / DATA_SYMBOLS);
            let mut words = [0; TRELLIS_CODERS];
            for (i, byte) in bytes.iter().enumerate() {
                let coder = (first + i) % TRELLIS_CODERS;
                let state = &mut self.states[coder].0;
                (words[coder], *state) = BYTE_STEPS[*state as usize][*byte as usize];
            }
            for round in 0..4 {
                let at = start + round * TRELLIS_CODERS;
                let first = first_coder(first_segment + at / DATA_SYMBOLS);
                let turn = &mut symbols[at..at + TRELLIS_CODERS];
                for (i, symbol) in turn.iter_mut().enumerate() {
                    *symbol = (words[(first + i) % TRELLIS_CODERS] >> (3 * round) & 7) as u8;
                }
            }
        }
    }
}

/// Returns the coder whose symbol comes first in data segment `segment` of a field.
#[inline]
#[must_use]
pub const fn first_coder(segment: usize) -> usize {
    4 * segment % TRELLIS_CODERS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precoder_and_code_follow_the_block_diagram() {
        // X1 = 1 once, from zero: Z1 Z0 = 10, 00, 01, 00, 01, ... because D1 and D0 swap every
        // time.
        let mut state = CoderState::default();
        let mut seen = Vec::new();
        for pair in [0b01, 0b00, 0b00, 0b00, 0b10, 0b00] {
            let (next, bits) = state.step(pair);
            state = next;
            seen.push(bits);
        }
        assert_eq!(seen, [0b010, 0b001, 0b000, 0b001, 0b100, 0b101]);
    }

    #[test]
    fn levels_are_the_odd_numbers_to_seven() {
        let levels: Vec<i8> = (0..8).map(level).collect();
        assert_eq!(levels, [-7, -5, -3, -1, 1, 3, 5, 7]);
    }

    #[test]
    fn bytes_reach_their_coder_across_segment_boundaries() {
        // A unit with a single byte set differs from the unit of zeros only in the symbols of its
        // coder, from that byte on.
        let mut plain = [[0; DATA_SYMBOLS]; UNIT_SEGMENTS];
        TrellisEncoder::new().encode_unit(0, &[0; UNIT_BYTES], &mut plain);
        let mut bytes = [0; UNIT_BYTES];
        bytes[206] = 0xFF; // group 17, coder 2: one round in segment 0, three in segment 1
        let mut marked = [[0; DATA_SYMBOLS]; UNIT_SEGMENTS];
        TrellisEncoder::new().encode_unit(0, &bytes, &mut marked);
        let differ = |marked: &[[u8; DATA_SYMBOLS]; 4], segment: usize| -> Vec<usize> {
            let pairs = plain[segment].iter().zip(&marked[segment]).enumerate();
            pairs.filter(|(_, (a, b))| a != b).map(|(i, _)| i).collect()
        };
        assert_eq!(differ(&marked, 0), [816 + 2]);
        // Segment 1 begins with coder 4, so coder 2 is at position 10.
        assert!(differ(&marked, 1).iter().all(|i| i % 12 == 10));
        assert_eq!(differ(&marked, 1)[0], 10);
        // The group that begins in segment 1 follows the order of that segment: byte 216 goes to
        // coder 4.
        bytes[206] = 0;
        bytes[216] = 0xFF;
        TrellisEncoder::new().encode_unit(0, &bytes, &mut marked);
        assert_eq!(differ(&marked, 1)[0], 36);
    }
}
