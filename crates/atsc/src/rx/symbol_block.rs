//! Blocks of symbols.

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
    /// Imaginary parts, too, which cost as much again.
    pub whole: bool,
}
