//! The channel code: randomiser, Reed-Solomon, interleaver, trellis.

pub mod galois;
pub mod interleaver;
pub mod randomizer;
pub mod rs;
pub mod trellis;
pub mod viterbi;
