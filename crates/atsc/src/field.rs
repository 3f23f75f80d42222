//! The data field sync segment (A/53 Part 2, clause 5.5.2).

use crate::params::{SEGMENT_SYMBOLS, SYNC_LEVEL, SYNC_SYMBOLS};
use std::sync::LazyLock;

/// Length of the long pseudo-random sequence.
pub const PN511: usize = 511;

/// Length of each of the three short sequences.
pub const PN63: usize = 63;

/// First symbol of the long sequence in the segment.
pub const PN511_START: usize = SYNC_SYMBOLS;

/// First symbol of the middle short sequence, which is inverted in every other field.
pub const MIDDLE_PN63_START: usize = PN511_START + PN511 + PN63;

/// Known symbols at the start of the segment: syncs and sequences.
pub const KNOWN_SYMBOLS: usize = PN511_START + PN511 + 3 * PN63;

/// Symbols at the end that repeat the end of the previous segment, for comb-filter receivers.
pub const PRECODE_SYMBOLS: usize = 12;

/// The 24-bit VSB mode: filler, then P A B C and its complement for trellis-coded 8-VSB.
const VSB_MODE: u32 = 0b0000_1111_0000_1111_0101_1010;

/// The segment sync, as levels.
pub const SEGMENT_SYNC: [f32; SYNC_SYMBOLS] = [SYNC_LEVEL, -SYNC_LEVEL, -SYNC_LEVEL, SYNC_LEVEL];

/// The two alternating field syncs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Parity {
    /// The middle short sequence is not inverted.
    #[default]
    First,
    /// The middle short sequence is inverted.
    Second,
}

impl Parity {
    /// Returns the parity of the next field.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }
}

/// Returns a maximal-length sequence; the low bit of `taps` and `preset` is the stage that is sent
/// first.
fn sequence(len: usize, degree: u32, taps: u32, preset: u32) -> impl Iterator<Item = bool> {
    let mut register = preset;
    (0..len).map(move |_| {
        let out = register & 1 != 0;
        let feedback = (register & taps).count_ones() & 1;
        register = register >> 1 | feedback << (degree - 1);
        out
    })
}

fn to_level(bit: bool) -> f32 {
    if bit { SYNC_LEVEL } else { -SYNC_LEVEL }
}

/// The long sequence as levels.
pub static PN511_LEVELS: LazyLock<[f32; PN511]> = LazyLock::new(|| {
    let levels: Vec<f32> = pn511_bits().map(to_level).collect();
    levels.try_into().expect("the sequence has this length")
});

/// Returns the sequence of x^9 + x^7 + x^6 + x^4 + x^3 + x + 1, preset 010000000.
fn pn511_bits() -> impl Iterator<Item = bool> {
    sequence(PN511, 9, 0b0_1101_1011, 0b0_1000_0000)
}

/// Returns the sequence of x^6 + x + 1, preset 100111.
fn pn63_bits() -> impl Iterator<Item = bool> {
    sequence(PN63, 6, 0b00_0011, 0b10_0111)
}

/// The field sync segment of each parity, as levels, without the final precode symbols (zero here).
static FIELD_SYNC: LazyLock<[[f32; SEGMENT_SYMBOLS]; 2]> =
    LazyLock::new(|| [build(false), build(true)]);

fn build(invert_middle: bool) -> [f32; SEGMENT_SYMBOLS] {
    let short: Vec<bool> = pn63_bits().collect();
    let middle: Vec<bool> = short.iter().map(|bit| bit ^ invert_middle).collect();
    let mode = (0..24).rev().map(|bit| VSB_MODE >> bit & 1 != 0);
    // The reserved symbols continue the short sequence.
    let reserved = SEGMENT_SYMBOLS - KNOWN_SYMBOLS - 24 - PRECODE_SYMBOLS;
    let filler = short.iter().copied().cycle().take(reserved);
    let bits = pn511_bits()
        .chain(short.iter().copied())
        .chain(middle)
        .chain(short.iter().copied())
        .chain(mode)
        .chain(filler);
    let mut levels = [0.0; SEGMENT_SYMBOLS];
    levels[..SYNC_SYMBOLS].copy_from_slice(&SEGMENT_SYNC);
    levels[SYNC_SYMBOLS..].iter_mut().zip(bits).for_each(|(l, bit)| *l = to_level(bit));
    levels
}

/// Returns the field sync segment; the last [`PRECODE_SYMBOLS`] are zero, for the sender to fill.
#[must_use]
pub fn field_sync(parity: Parity) -> &'static [f32; SEGMENT_SYMBOLS] {
    &FIELD_SYNC[usize::from(parity == Parity::Second)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bits: impl Iterator<Item = bool>) -> String {
        bits.map(|bit| if bit { '1' } else { '0' }).collect()
    }

    #[test]
    fn sequences_are_those_of_the_standard() {
        let long = text(pn511_bits());
        let start = "0000000101111111110010101010111001100110100010001001111000011101";
        assert!(long.starts_with(start), "{long}");
        assert!(long.ends_with("000000100100000001110"), "{long}");
        let short = text(pn63_bits());
        assert_eq!(short, "111001001011011101100110101011111100000100001100010100111101000");
    }

    #[test]
    fn the_long_sequence_has_a_flat_circular_autocorrelation() {
        for lag in 1..PN511 {
            let sum: f32 =
                (0..PN511).map(|i| PN511_LEVELS[i] * PN511_LEVELS[(i + lag) % PN511]).sum();
            assert!((sum + 25.0).abs() < 1e-3, "lag {lag}: {sum}");
        }
    }

    #[test]
    fn parities_differ_in_the_middle_short_sequence_only() {
        let (first, second) = (field_sync(Parity::First), field_sync(Parity::Second));
        for i in 0..SEGMENT_SYMBOLS {
            let inside = (MIDDLE_PN63_START..MIDDLE_PN63_START + PN63).contains(&i);
            assert_eq!(first[i] == -second[i] && first[i] != 0.0, inside, "symbol {i}");
        }
    }
}
