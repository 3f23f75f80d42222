//! Blocks of symbols.

use millstream_dsp::sampler::GROUP;

/// Symbols of a block: an eighth of a segment.
pub const BLOCK_SYMBOLS: usize = 104;

/// Symbols taken at one timing.
#[derive(Clone, Copy, Debug)]
pub struct SymbolBlock {
    /// Real parts: in phase with the pilot once the carrier is recovered.
    pub re: [f32; BLOCK_SYMBOLS],
    /// Imaginary parts, or zeros.
    pub im: [f32; BLOCK_SYMBOLS],
}

impl Default for SymbolBlock {
    fn default() -> Self {
        Self { re: [0.0; BLOCK_SYMBOLS], im: [0.0; BLOCK_SYMBOLS] }
    }
}

/// What to make of the samples of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockOrder {
    /// There is no signal to follow.
    pub held: bool,
    /// Which symbols get an imaginary part, too, which costs as much again.
    pub imaginary: Places,
}

/// Symbols of a block: from one up to before another, in whole groups of the demodulator's filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// The first.
    pub from: usize,
    /// One behind the last.
    pub to: usize,
}

impl Places {
    /// All symbols.
    pub const ALL: Self = Self { from: 0, to: BLOCK_SYMBOLS };

    /// The groups that hold these symbols, as far as they are in the block.
    #[must_use]
    pub fn around(from: usize, to: usize) -> Self {
        let to = to.next_multiple_of(GROUP).min(BLOCK_SYMBOLS);
        Self { from: (from / GROUP * GROUP).min(to), to }
    }
}
