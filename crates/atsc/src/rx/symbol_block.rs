//! Blocks of symbols.

use millstream_dsp::sampler::GROUP;

/// Symbols of a block: a quarter of a segment.
pub const BLOCK_SYMBOLS: usize = 208;

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

/// Requirements of a block of symbols.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockOrder {
    /// Whether there is no signal to follow.
    pub held: bool,
    /// Symbols that need an imaginary part, which costs as much as the real one.
    pub imaginary: Places,
}

/// A range of symbols of a block, in whole groups of the demodulator's filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// The first symbol.
    pub from: usize,
    /// The symbol behind the last one.
    pub to: usize,
}

impl Places {
    /// All symbols.
    pub const ALL: Self = Self { from: 0, to: BLOCK_SYMBOLS };

    /// Returns the groups that contain these symbols, within the block.
    #[must_use]
    pub fn around(from: usize, to: usize) -> Self {
        let to = to.next_multiple_of(GROUP).min(BLOCK_SYMBOLS);
        Self { from: (from / GROUP * GROUP).min(to), to }
    }
}
